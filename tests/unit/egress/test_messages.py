"""Forms with a file."""

import httpx
import pytest

from internal.egress.messages import encode_form


@pytest.mark.parametrize(
    "name", ["报告 1.pdf", 'a "quoted".txt', "back\\slash.txt", "two\r\nlines.txt"]
)
def test_a_form_is_the_one_that_httpx_sends(name: str) -> None:
    file = (name, b"\x00--\r\n\xff", "application/octet-stream")
    fields = {"file_type": "stream", "file_name": name}
    media_type, body = encode_form(fields, file, "image")
    sent = httpx.Request(
        "POST",
        "http://a.test",
        data=fields,
        files={"image": file},
        headers={"content-type": media_type},
    )
    assert sent.read() == body


def test_each_form_has_a_boundary_of_its_own() -> None:
    file = ("a", b"b", "text/plain")
    assert encode_form({}, file)[0] != encode_form({}, file)[0]
