"""Base64 in texts."""

import base64

import pytest

from internal.mcp.encoded_files import decoded, find_encoded

DATA = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256))).decode()


def test_a_file_is_found_with_its_place_and_its_type() -> None:
    text = f"é {DATA} and data:audio/wav;x=1;base64,{DATA}."
    first, second = find_encoded(text)
    assert text[first.start : first.end] == DATA
    assert text[second.start : second.end] == f"data:audio/wav;x=1;base64,{DATA}"
    assert (first.media_type, second.media_type) == ("", "audio/wav")
    assert decoded(first.data) == decoded(second.data) == base64.b64decode(DATA)


@pytest.mark.parametrize(
    "text", ["iVBORw0KGgo is a beginning", f"x{DATA}", f"data:text/html;base64,{DATA}"]
)
def test_words_names_and_texts_are_no_files(text: str) -> None:
    assert not [*find_encoded(text)]


@pytest.mark.parametrize("text", ["iVBORw0KGgo " * 200_000, "data:a/b;" * 200_000, DATA * 5_000])
def test_long_texts_are_searched_in_linear_time(text: str) -> None:
    assert len([*find_encoded(text)]) <= 1
