"""Streamed replies: their printed rows equal the rows of one render of the whole text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.channels.cli.render.stream import TAIL_ROWS, BlockStream
from internal.channels.cli.render.text import cell_width
from internal.channels.cli.render.theme import ASCII, UNICODE
from tests.support.property_examples import examples
from tests.support.reply_streams import (
    CHANGING_WIDTHS,
    PARTS,
    RESTARTS,
    SIZES,
    WIDTHS,
    check_restart,
    check_rows_of_one_render,
    check_width_changes,
    render,
    split,
    texts,
)

# tests/chaos/test_reply_streams.py tries more examples of the first three


@examples(15)
@given(PARTS, SIZES, WIDTHS)
def test_printed_rows_are_those_of_one_render(
    parts: list[str], sizes: list[int], width: int
) -> None:
    check_rows_of_one_render(parts, sizes, width)


@examples(12)
@given(SIZES, CHANGING_WIDTHS)
def test_all_text_is_printed_once_while_the_width_changes(
    sizes: list[int], widths: list[int]
) -> None:
    check_width_changes(sizes, widths)


@examples(12)
@given(RESTARTS, SIZES, WIDTHS)
def test_a_reply_that_restarts_with_the_same_text_is_printed_once(
    at: int, sizes: list[int], width: int
) -> None:
    check_restart(at, sizes, width)


def test_a_reply_that_restarts_differently_is_printed_from_the_difference_on() -> None:
    stream = BlockStream(UNICODE)
    stream.text = "same\n\nold\n\nx\n"
    printed = texts(stream.advance(40).final)
    stream.restart()
    stream.text = "same\n\nnew\n\nend"
    printed += texts(stream.advance(40, complete=True).final)
    assert [row for row in printed if row] == ["same", "old", "new", "end"]


def test_rows_of_a_block_taller_than_the_tail_become_final() -> None:
    stream = BlockStream(UNICODE)
    stream.text = " ".join(f"word{n}" for n in range(100))
    rows = stream.advance(20)
    assert len(rows.tail) == TAIL_ROWS
    assert rows.final[0] == (("", "word0 word1 word2"),)


def test_complete_lines_of_code_are_final() -> None:
    stream = BlockStream(UNICODE)
    stream.text = "```\none\ntwo\nthr"
    rows = stream.advance(40)
    assert (texts(rows.final), texts(rows.tail)) == (["  one", "  two"], ["  thr"])


def test_text_that_may_become_bold_is_not_final() -> None:
    stream = BlockStream(UNICODE)
    stream.text = "**" + "bold " * 60
    assert stream.advance(20).final == []
    stream.text += "end**\n\nnext"
    assert stream.advance(20).final[0] == (("class:strong", "bold bold bold bold"),)


@examples(60)
@given(st.text(max_size=300), WIDTHS)
def test_any_text_is_rendered_without_controls_and_within_the_width(text: str, width: int) -> None:
    for row in render(text, width):
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", row)
        assert cell_width(row) <= max(width, 2) or len(row.strip()) <= 2


def test_east_asian_text_does_not_break_before_its_punctuation() -> None:
    comma, stop = "\N{FULLWIDTH COMMA}", "\N{IDEOGRAPHIC FULL STOP}"
    text = f"一二三四五{comma}六七八九十{stop}"
    assert render(text, 10) == ["一二三四", f"五{comma}六七八", f"九十{stop}"]


def test_a_table_without_room_for_columns_becomes_records() -> None:
    table = "| name | note |\n|---|---|\n| alpha | a longer note |\n| beta | b |"
    assert render(table, 9) == [
        *("name:", "  alpha", "note: a", "  longer", "  note"),
        *("", "name:", "  beta", "note: b"),
    ]


def test_ascii_glyphs_are_used_in_every_block() -> None:
    stream = BlockStream(ASCII)
    stream.text = "- one\n\n> two\n\n---"
    rows = texts(stream.advance(40, complete=True).final)
    assert "".join(rows).isascii()


COMMA = "\N{FULLWIDTH COMMA}"
WIDE = {
    "paragraph": "一二三四五六七八九十" * 6 + " 😀👍🎉 end",
    "list": "- 一二三四五六七八九十一二三四五六七八九十\n- a 😀😀😀😀😀😀😀😀😀😀😀😀 b\n",
    "code": "```python\nprint('一二三四五六七八九十', '😀😀😀😀😀😀😀😀😀😀')\n```\n",
    "quote": f"> 引用的文字也要在右边缘之前换行{COMMA}标点不在行首。😀😀😀😀\n",
    "table": (
        "| 名称 | 说明 |\n|---|--:|\n"
        f"| 一二三四 | 很长的说明文字{COMMA}需要换行 😀😀😀 |\n| b | 短 |\n"
    ),
}


@pytest.mark.parametrize("name", WIDE)
def test_wide_characters_stay_whole_and_within_the_width(name: str) -> None:
    text = WIDE[name]
    expected = sorted(character for character in text if cell_width(character) == 2)
    for width in range(16, 44):
        rows = render(text, width)
        assert all(cell_width(row) <= width for row in rows), width
        wide = [character for character in "".join(rows) if cell_width(character) == 2]
        assert sorted(wide) == expected, width
        assert not any(row.lstrip("│ ").startswith((COMMA, "。")) for row in rows), width


def test_columns_of_a_table_with_wide_characters_are_aligned() -> None:
    rows = render(WIDE["table"], 80)
    assert rows[0].index("说明") > 0
    assert len({cell_width(row) for row in rows if "短" in row or "很长" in row}) == 1


def test_code_is_highlighted_and_a_diff_shows_what_changed() -> None:
    stream = BlockStream(UNICODE)
    stream.text = "```python\nimport os  # why\n```\n\n```diff\n-old\n+new\n```\n"
    rows = stream.advance(40, complete=True).final
    styles = {text.strip(): style for row in rows for style, text in row}
    assert styles["import"] == "class:code.keyword"
    assert styles["# why"] == "class:code.comment"
    assert (styles["-old"], styles["+new"]) == ("class:failed", "class:ok")


def test_an_unknown_language_is_shown_as_plain_code() -> None:
    stream = BlockStream(UNICODE)
    stream.text = "```no-such-language\nx = 1\n```\n"
    assert stream.advance(40, complete=True).final == [
        (("class:marker", "  "), ("class:code", "x = 1"))
    ]


@examples(20)
@given(SIZES, st.sampled_from([20, 80]))
def test_rows_of_long_code_and_lists_are_those_of_one_render(sizes: list[int], width: int) -> None:
    code = "".join(f"def f{n}(x):\n    return {n}\n\n" for n in range(60))
    items = "".join(f"{n}. item *{n}* 项目\n\n   - nested\n" for n in range(7, 40))
    text = f"Look:\n\n```python\n{code}```\n\n{items}\nend"
    stream, printed = BlockStream(UNICODE), list[str]()
    for piece in split(text, [20 * size for size in sizes]):
        stream.text += piece
        printed += texts(stream.advance(width).final)
    printed += texts(stream.advance(width, complete=True).final)
    assert printed == render(text, width)
    assert "39. item 39 项目" in printed


def test_no_link_is_sent_to_the_terminal_as_a_hyperlink() -> None:
    rows = render("[click](https://example.com/x) <https://example.org>", 80)
    assert rows == ["click (https://example.com/x) https://example.org"]
