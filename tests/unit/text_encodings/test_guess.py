"""Guesses about encodings, where the statistics alone are not enough."""

# ruff: noqa: RUF001 - signs that people write

import pytest

from internal.text_encodings.guess import guess_codec, is_escaped_japanese


@pytest.mark.parametrize(
    "text", ["10 €", "it’s – “done”", "25 °C", "« oui »", "naïve café", "på færgen"]
)
def test_short_western_texts_are_western(text: str) -> None:
    assert guess_codec(text.encode("cp1252")) == "cp1252"


def test_only_valid_escape_sequences_are_japanese() -> None:
    assert is_escaped_japanese("注文".encode("iso2022_jp"))
    assert not is_escaped_japanese(b"\x1b$B\xff")
    assert not is_escaped_japanese(b"\x1b[32mgreen")
