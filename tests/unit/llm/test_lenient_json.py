"""JSON with broken text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.llm.lenient_json import decode_json, encode_json, one_line

surrogates = st.text(st.characters(categories=["L", "Cs", "Cc"]), max_size=50)


@given(st.dictionaries(surrogates, st.one_of(surrogates, st.lists(surrogates), st.integers())))
def test_any_text_can_be_encoded(value: dict[str, object]) -> None:
    assert encode_json(value)


@given(surrogates)
def test_one_line_is_short_and_can_be_encoded(text: str) -> None:
    assert len(one_line(text, 20).encode()) <= 80
    assert len(one_line(text, 20)) <= 20


def test_broken_text_is_decoded_with_replacements() -> None:
    assert decode_json(b'{"a": "\xff\\ud800\x01"}') == {"a": "\ufffd\ufffd\x01"}
    with pytest.raises(ValueError, match="Expecting"):
        decode_json(b"{nonsense")
