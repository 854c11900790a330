"""Properties of streamed replies. Unit tests try few examples of them, chaos tests many."""

import re
from pathlib import Path

from hypothesis import strategies as st

from internal.channels.cli.render.stream import TAIL_ROWS, BlockStream
from internal.channels.cli.render.text import Fragments, plain_text
from internal.channels.cli.render.theme import UNICODE

SAMPLE = Path(__file__).with_name("sample_reply.md").read_text(encoding="utf-8")
"""Markdown with every kind of block that a model may write."""
WIDTHS = st.sampled_from([3, 7, 12, 20, 40, 80, 200])
PARTS = st.permutations(SAMPLE.split("\n\n"))
SIZES = st.lists(st.sampled_from([1, 2, 3, 10, 40, 200]), min_size=1, max_size=40)
CHANGING_WIDTHS = st.lists(st.sampled_from([12, 30, 80]), min_size=1, max_size=8)
RESTARTS = st.integers(0, len(SAMPLE))


def texts(rows: list[Fragments]) -> list[str]:
    return [plain_text(row) for row in rows]


def render(text: str, width: int) -> list[str]:
    """Return the rows of a whole text."""
    stream = BlockStream(UNICODE)
    stream.text = text
    return texts(stream.advance(width, complete=True).final)


def split(text: str, sizes: list[int]) -> list[str]:
    """Split a text into pieces of these sizes, repeated as often as needed."""
    pieces: list[str] = []
    start = 0
    while start < len(text):
        pieces.append(text[start : start + sizes[len(pieces) % len(sizes)]])
        start += len(pieces[-1])
    return pieces


def letters(rows: list[str]) -> str:
    """Return the letters and digits in order, which no width changes."""
    return re.sub(r"[\W_]+", "", "".join(rows))


def check_rows_of_one_render(parts: list[str], sizes: list[int], width: int) -> None:
    """Assert that streamed rows equal the rows of one render of the whole text."""
    text, stream, printed = "\n\n".join(parts), BlockStream(UNICODE), list[str]()
    for piece in split(text, sizes):
        stream.text += piece
        rows = stream.advance(width)
        printed += texts(rows.final)
        assert len(rows.tail) <= TAIL_ROWS
    printed += texts(stream.advance(width, complete=True).final)
    assert printed == render(text, width)


def check_width_changes(sizes: list[int], widths: list[int]) -> None:
    """Assert that all text is printed once while the width changes.."""
    text = "\n\n".join(part for part in SAMPLE.split("\n\n") if not part.startswith("|"))
    stream, printed = BlockStream(UNICODE), list[str]()
    for number, piece in enumerate(split(text, sizes)):
        stream.text += piece
        printed += texts(stream.advance(widths[number % len(widths)]).final)
    printed += texts(stream.advance(widths[0], complete=True).final)
    assert letters(printed) == letters(render(text, widths[0]))


def check_restart(at: int, sizes: list[int], width: int) -> None:
    """Assert that a reply that is restarted with the same text is printed once."""
    stream, printed = BlockStream(UNICODE), list[str]()
    for piece in split(SAMPLE[:at], sizes):
        stream.text += piece
        printed += texts(stream.advance(width).final)
    stream.restart()
    for piece in split(SAMPLE, sizes):
        stream.text += piece
        printed += texts(stream.advance(width).final)
    printed += texts(stream.advance(width, complete=True).final)
    assert letters(printed) == letters(render(SAMPLE, width))
