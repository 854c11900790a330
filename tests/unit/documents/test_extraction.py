"""The part of a text that was asked for."""

import pytest

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.extraction import clean, cut, table_row


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_reading_in_parts_returns_every_character_once(size: int) -> None:
    pieces = ["one", "", "二三", "four\n"]
    got, offset = "", 0
    while True:
        part = cut(iter(pieces), offset, size)
        got += part.text
        assert part.total == 10
        if part.next_offset is None:
            break
        offset = part.next_offset
    assert got == "".join(pieces)


def test_an_offset_beyond_the_end_names_the_length() -> None:
    assert cut(iter(["abc"]), 3, 10).text == ""
    with pytest.raises(DocumentUnreadable, match="3 characters: there is no character 4"):
        cut(iter(["abc"]), 4, 10)


def test_control_characters_are_removed_and_cells_stay_on_one_line() -> None:
    assert clean("a\r\nb\0\x1b[0m\tc\ufffe") == "a\nb[0m\tc-"
    assert table_row(["a\nb", "c|d"]) == "| a b | c\\|d |"
