from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.simulators.lark.errors import LarkError
from internal.simulators.lark.rest.form_data import FormField, read_form

TYPE = "multipart/form-data; boundary=bound"
FIELD = b'--bound\r\nContent-Disposition: form-data; name="n"\r\n\r\nvalue\r\n'


@given(body=st.binary(max_size=200))
def test_any_bytes_are_a_form_or_rejected(body: bytes) -> None:
    with suppress(LarkError):
        read_form(TYPE, body)


@given(data=st.binary(max_size=300))
def test_file_content_is_read_unchanged(data: bytes) -> None:
    head = b'--bound\r\nContent-Disposition: form-data; name="file"; filename="a b"\r\n\r\n'
    if b"\r\n--bound" not in data:
        form = read_form(TYPE, head + data + b"\r\n--bound--\r\n")
        assert form["file"] == FormField(data, "a b")


def test_several_fields_are_read() -> None:
    other = FIELD.replace(b'"n"', '"名"'.encode())
    form = read_form(TYPE, FIELD + other + b"--bound--\r\n")
    assert form == {"n": FormField(b"value"), "名": FormField(b"value")}


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (TYPE, FIELD),
        (TYPE, b""),
        (TYPE, FIELD.replace(b' name="n"', b"") + b"--bound--\r\n"),
        ("multipart/form-data", FIELD + b"--bound--\r\n"),
        ("text/plain; boundary=bound", FIELD + b"--bound--\r\n"),
    ],
)
def test_incomplete_forms_and_unnamed_parts_are_rejected(content_type: str, body: bytes) -> None:
    with pytest.raises(LarkError):
        read_form(content_type, body)
