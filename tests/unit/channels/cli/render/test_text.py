"""Widths in columns, shortening, and where lines break into rows."""

import pytest

from internal.channels.cli.render.text import (
    StyledLine,
    break_line,
    cell_width,
    ellipsize,
    plain_text,
    sanitize,
    truncate_line,
    wrap_line,
)


def wrapped(line: StyledLine, width: int) -> list[str]:
    return [plain_text(row) for row in wrap_line(line, width)]


def test_wide_characters_and_emoji_take_two_columns() -> None:
    assert [cell_width(text) for text in ("ab", "模型", "❤️", "😀")] == [2, 4, 2, 2]


def test_controls_are_escaped_and_tabs_expanded() -> None:
    assert sanitize("a\tb\x1b[31m\u202e") == r"a   b\u001b[31m\u202e"


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("short", 5, "short"),
        ("one  \n two", 20, "one two"),
        ("longer", 5, "long…"),
        ("模型模型", 6, "模型…"),
        ("x" * 1_000, 3, "xx…"),
        ("anything", 0, ""),
    ],
)
def test_a_truncated_line_fits_its_columns(text: str, width: int, expected: str) -> None:
    assert truncate_line(text, width) == expected


def test_an_ellipsis_does_not_follow_a_blank() -> None:
    assert ellipsize("one two", 5) == "one…"


def test_prefixes_stand_before_the_first_and_the_other_rows() -> None:
    line = StyledLine((("class:you", "one two three"),), (("", "> "),), (("", "  "),))
    assert wrapped(line, 9) == ["> one two", "  three"]


def test_prefixes_are_left_out_where_there_is_no_room() -> None:
    line = StyledLine((("", "abcdef"),), (("", "> "),), (("", "  "),))
    assert wrapped(line, 4) == ["abcd", "ef"]


def test_styles_are_kept_across_rows() -> None:
    line = StyledLine((("class:ok", "one "), ("class:failed", "two three")))
    assert list(wrap_line(line, 7)) == [
        (("class:ok", "one "), ("class:failed", "two")),
        (("class:failed", "three"),),
    ]


def test_a_verbatim_line_keeps_its_blanks_and_breaks_at_the_edge() -> None:
    assert wrapped(StyledLine((("", "  a  b"),), verbatim=True), 4) == ["  a ", " b"]


@pytest.mark.parametrize("verbatim", [True, False])
def test_a_line_that_fits_has_one_row(verbatim: bool) -> None:
    assert break_line("一二三", 6, verbatim=verbatim) == []
    assert break_line("一二三", 6, 5, verbatim=verbatim) == [2]
    assert break_line("", 6, verbatim=verbatim) == []


def test_blanks_at_the_end_of_a_row_do_not_start_another_one() -> None:
    assert break_line("abc   ", 3, verbatim=False) == []
    assert break_line("abc   ", 3, verbatim=True) == [3]


def test_an_emoji_sequence_is_not_split() -> None:
    family = "👨‍👩‍👧"
    assert wrapped(StyledLine((("", f"ab{family}"),)), 7) == ["ab", family]


def test_east_asian_punctuation_stays_with_a_latin_word() -> None:
    text = "运行 b.txt。原因「see x」"
    line = StyledLine((("", text),))
    assert wrapped(line, 11) == ["运行", "b.txt。原因", "「see x」"]
    for width in range(9, 24):
        rows = wrapped(line, width)
        assert not any(row.startswith(("。", "」")) or row.endswith("「") for row in rows)
