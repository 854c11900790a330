"""Output of programs as a terminal shows it in the end."""

import time
import unicodedata

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyte import modes
from wcwidth import wcwidth

from internal.terminal_screen.screen import ROWS, OutputScreen, screen_text

COLUMNS = 600
WIDE = 2


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("first line\r\nsecond\r\n", "first line\nsecond\n"),
        ("\r10 %\r 50 %\r100 %\n", "100 %\n"),
        ("\x1b[32mdone\x1b[0m \x1b[1;38;5;9mresult 4711\x1b[m\n", "done result 4711\n"),
        ("Downloading\r\x1b[KBuilt\n", "Built\n"),
        ("long progress\r\x1b[2Kok", "ok"),
        ("a: 1\nb: 1\n\x1b[2A\x1b[2Ka: 9\n\x1b[2Kb: 9\n", "a: 9\nb: 9\n"),
        ("\x1b]0;a title\x07text", "text"),
        ("\x1b]8;;https://a.example\x1b\\link\x1b]8;;\x1b\\!", "link!"),
        ("\x1b]0;no end\nnext", "\nnext"),
        ("N\bNA\bAM\bME\bE", "NAME"),
        ("\x1b(B\x1b=\x1b>plain\x1b[?25l\x1b[?2004h", "plain"),
        ("match\x1b[m\x1b[Ked\x1b[K\n", "matched\n"),
        ("old\n\x1b[H\x1b[2J\x1b[3Jnew", "new\n"),
        ("中文字\r国", "国文字"),
        ("中\rx", "x"),
        ("中文\rx", "x 文"),
        ("中文a\x1b[4Dx", " x文a"),
        ("ring\x07 nul\0 del\x7f", "ring nul del"),
        ("/ \b| \b- \b\\ \bdone", "/|-\\done"),
        ("50%\x1b[3D99%", "99%"),
        ("a\x1b7b\x1b8c", "ac"),
    ],
)
def test_the_final_state_remains(output: str, shown: str) -> None:
    assert screen_text(output) == shown


@given(st.text(st.characters(exclude_categories=["Cc"], include_characters="\n\t")))
def test_text_without_control_characters_is_not_changed(text: str) -> None:
    assert screen_text(text) == text


PIECES = st.sampled_from(
    [
        *("a", "word", "   ", "中文", "e\u0301", "x" * 30, "\n", "\r", "\r\n", "\b", "\x1b[31m"),
        *("\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[J", "\x1b[1J", "\x1b[2J", "\x1b[0m", "\x1b[7X"),
        *("\x1b[A", "\x1b[3A", "\x1b[B", "\x1b[2C", "\x1b[4D", "\x1b[9G", "\x1b[H", "\x1b[2;5H"),
        *("\x1b[E", "\x1b[2F", "\x1b[3d", "\x1b]0;title\x07", "\x1b]8;;u\x1b\\", "\x1b(B", "\x07"),
    ]
)


def shown_by_pyte(output: str) -> list[str]:
    screen = pyte.HistoryScreen(COLUMNS, ROWS, history=100_000)
    screen.set_mode(modes.LNM)
    pyte.Stream(screen).feed(output)
    rows = [*screen.history.top, *(screen.buffer[row] for row in range(screen.lines))]
    return trimmed([text_of([row[column].data for column in range(COLUMNS)]) for row in rows])


def text_of(cells: list[str]) -> str:
    """Return the text of a row, in which half of a wide character is blank.

    pyte leaves a half where the other one was overwritten: a wide character without the empty cell
    that belongs to it, or the empty cell.
    """
    text, at = "", 0
    while at < len(cells):
        is_wide = cells[at] != "" and wcwidth(cells[at][0]) == WIDE
        is_whole = is_wide and cells[at + 1 : at + 2] == [""]
        text += cells[at] if is_whole or (cells[at] and not is_wide) else " "
        at += 2 if is_whole else 1
    return text


def trimmed(rows: list[str]) -> list[str]:
    rows = [row.rstrip() for row in rows]
    while rows and not rows[-1]:
        rows.pop()
    return rows


@settings(deadline=None, max_examples=60)
@given(st.lists(PIECES, max_size=120))
def test_the_screen_is_that_of_a_terminal(pieces: list[str]) -> None:
    output = "".join(pieces)
    # pyte composes characters
    shown = unicodedata.normalize("NFC", screen_text(output))
    assert trimmed(shown.split("\n")) == shown_by_pyte(output)


@given(st.lists(PIECES, max_size=40), st.integers(1, 7))
def test_torn_sequences_change_nothing(pieces: list[str], size: int) -> None:
    output = "".join(pieces)
    screen = OutputScreen()
    fed = "".join(screen.feed(output[at : at + size]) for at in range(0, len(output), size))
    assert fed + screen.rest() == screen_text(output)


def test_rows_above_the_screen_are_final() -> None:
    screen = OutputScreen()
    final = screen.feed("".join(f"{number}\n" for number in range(ROWS + 10)))
    assert final.split() == [str(number) for number in range(11)]
    assert screen.feed("\x1b[999A\x1b[2Kchanged\n").count("\n") == 0
    assert screen.rest().startswith("changed\n12\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        *("x", "\r", "\x1b", "\x1b[", "a\b", "\x1b[65535Gx\x1b[2K", "\x1b[1K", "\x1b[50B\x1b[2J"),
        *("\x1b]0;", "\rframe 中文", "\u0301", "\x1b[9999999999C", "\t\r"),
    ],
)
def test_hostile_output_takes_linear_time(piece: str) -> None:
    def seconds(size: int) -> float:
        screen, began = OutputScreen(), time.process_time()
        chunk = (piece * (65_536 // len(piece) + 1))[:65_536]
        for _ in range(size):
            screen.feed(chunk)
        return time.process_time() - began

    seconds(1)
    small = seconds(2) + 0.05
    assert seconds(16) < 8 * small * 2
