"""A reply that grows: whatever the pieces, what is printed is one render of the whole."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from internal.channels.cli.render.stream import TAIL_ROWS, BlockStream
from internal.channels.cli.render.text import Fragments, cell_width, plain_text
from internal.channels.cli.render.theme import ASCII, UNICODE

WHOLE = Path(__file__).with_name("whole.md").read_text(encoding="utf-8")
"""Markdown that a model may write, with all that can be in it."""
WIDTHS = st.sampled_from([3, 7, 12, 20, 40, 80, 200])
PARTS = st.permutations(WHOLE.split("\n\n"))
SIZES = st.lists(st.sampled_from([1, 2, 3, 10, 40, 200]), min_size=1, max_size=40)


def shown(rows: list[Fragments]) -> list[str]:
    return [plain_text(row) for row in rows]


def rendered(text: str, width: int) -> list[str]:
    flow = BlockStream(UNICODE)
    flow.text = text
    return shown(flow.advance(width, complete=True).final)


def pieces(text: str, sizes: list[int]) -> list[str]:
    found, at, turn = [], 0, 0
    while at < len(text):
        found.append(text[at : at + sizes[turn % len(sizes)]])
        at += len(found[-1])
        turn += 1
    return found


def words(rows: list[str]) -> str:
    """What is left when rows are laid out anew: letters and digits, in order."""
    return re.sub(r"[\W_]+", "", "".join(rows))


@settings(max_examples=60, deadline=None)
@given(PARTS, SIZES, WIDTHS)
def test_the_rows_are_those_of_one_render(parts: list[str], sizes: list[int], width: int) -> None:
    text, flow, printed = "\n\n".join(parts), BlockStream(UNICODE), list[str]()
    for piece in pieces(text, sizes):
        flow.text += piece
        flowed = flow.advance(width)
        printed += shown(flowed.final)
        assert len(flowed.tail) <= TAIL_ROWS
    printed += shown(flow.advance(width, complete=True).final)
    assert printed == rendered(text, width)


@settings(max_examples=40, deadline=None)
@given(SIZES, st.lists(st.sampled_from([12, 30, 80]), min_size=1, max_size=8))
def test_nothing_is_lost_or_doubled_when_the_width_changes(
    sizes: list[int], widths: list[int]
) -> None:
    text = "\n\n".join(part for part in WHOLE.split("\n\n") if not part.startswith("|"))
    flow, printed = BlockStream(UNICODE), list[str]()
    for turn, piece in enumerate(pieces(text, sizes)):
        flow.text += piece
        printed += shown(flow.advance(widths[turn % len(widths)]).final)
    printed += shown(flow.advance(widths[0], complete=True).final)
    assert words(printed) == words(rendered(text, widths[0]))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, len(WHOLE)), SIZES, WIDTHS)
def test_a_reply_that_starts_over_the_same_is_printed_once(
    broken: int, sizes: list[int], width: int
) -> None:
    flow, printed = BlockStream(UNICODE), list[str]()
    for piece in pieces(WHOLE[:broken], sizes):
        flow.text += piece
        printed += shown(flow.advance(width).final)
    flow.restart()
    for piece in pieces(WHOLE, sizes):
        flow.text += piece
        printed += shown(flow.advance(width).final)
    printed += shown(flow.advance(width, complete=True).final)
    assert words(printed) == words(rendered(WHOLE, width))


def test_what_differs_after_a_start_over_is_printed_from_there_on() -> None:
    flow = BlockStream(UNICODE)
    flow.text = "same\n\nold\n\nx\n"
    printed = shown(flow.advance(40).final)
    flow.restart()
    flow.text = "same\n\nnew\n\nend"
    printed += shown(flow.advance(40, complete=True).final)
    assert [row for row in printed if row] == ["same", "old", "new", "end"]


def test_a_block_taller_than_the_tail_moves_up_row_by_row() -> None:
    flow = BlockStream(UNICODE)
    flow.text = " ".join(f"word{n}" for n in range(100))
    flowed = flow.advance(20)
    assert len(flowed.tail) == TAIL_ROWS
    assert flowed.final[0] == (("", "word0 word1 word2"),)


def test_lines_of_code_are_final_as_they_are_complete() -> None:
    flow = BlockStream(UNICODE)
    flow.text = "```\none\ntwo\nthr"
    flowed = flow.advance(40)
    assert (shown(flowed.final), shown(flowed.tail)) == (["  one", "  two"], ["  thr"])


def test_what_may_still_become_bold_waits() -> None:
    flow = BlockStream(UNICODE)
    flow.text = "**" + "bold " * 60
    assert flow.advance(20).final == []
    flow.text += "end**\n\nnext"
    assert flow.advance(20).final[0] == (("class:strong", "bold bold bold bold"),)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300), WIDTHS)
def test_any_text_is_shown_without_controls_and_within_the_width(text: str, width: int) -> None:
    for row in rendered(text, width):
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", row)
        assert cell_width(row) <= max(width, 2) or len(row.strip()) <= 2


def test_east_asian_text_breaks_anywhere_but_before_its_punctuation() -> None:
    comma, stop = "\N{FULLWIDTH COMMA}", "\N{IDEOGRAPHIC FULL STOP}"
    text = f"一二三四五{comma}六七八九十{stop}"
    assert rendered(text, 10) == ["一二三四", f"五{comma}六七八", f"九十{stop}"]


def test_a_table_without_room_for_columns_becomes_records() -> None:
    table = "| name | note |\n|---|---|\n| alpha | a longer note |\n| beta | b |"
    assert rendered(table, 9) == [
        *("name:", "  alpha", "note: a", "  longer", "  note"),
        *("", "name:", "  beta", "note: b"),
    ]


def test_plain_signs_are_plain() -> None:
    flow = BlockStream(ASCII)
    flow.text = "- one\n\n> two\n\n---"
    rows = shown(flow.advance(40, complete=True).final)
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


@pytest.mark.parametrize("width", range(16, 44))
@pytest.mark.parametrize("name", WIDE)
def test_wide_characters_stay_whole_and_within_the_width(name: str, width: int) -> None:
    text = WIDE[name]
    rows = rendered(text, width)
    assert all(cell_width(row) <= width for row in rows)
    wide = [character for character in "".join(rows) if cell_width(character) == 2]
    expected = [character for character in text if cell_width(character) == 2]
    assert sorted(wide) == sorted(expected)
    assert not any(row.lstrip("│ ").startswith((COMMA, "。")) for row in rows)


def test_columns_of_a_table_with_wide_characters_are_aligned() -> None:
    rows = rendered(WIDE["table"], 80)
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


@settings(max_examples=20, deadline=None)
@given(SIZES, st.sampled_from([20, 80]))
def test_long_code_and_lists_are_the_rows_of_one_render(sizes: list[int], width: int) -> None:
    code = "".join(f"def f{n}(x):\n    return {n}\n\n" for n in range(60))
    items = "".join(f"{n}. item *{n}* 项目\n\n   - nested\n" for n in range(7, 40))
    text = f"Look:\n\n```python\n{code}```\n\n{items}\nend"
    stream, printed = BlockStream(UNICODE), list[str]()
    for piece in pieces(text, [20 * size for size in sizes]):
        stream.text += piece
        printed += shown(stream.advance(width).final)
    printed += shown(stream.advance(width, complete=True).final)
    assert printed == rendered(text, width)
    assert "39. item 39 项目" in printed


def test_no_link_is_sent_to_the_terminal_as_a_hyperlink() -> None:
    rows = rendered("[click](https://example.com/x) <https://example.org>", 80)
    assert rows == ["click (https://example.com/x) https://example.org"]
