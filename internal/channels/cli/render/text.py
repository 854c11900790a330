"""Styled text in terminal cells: how wide it is and where it breaks into rows."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from prompt_toolkit.utils import get_cwidth

from internal.channels.cli.output import sanitize_terminal

Fragment = tuple[str, str]
"""A prompt_toolkit style and text without line breaks."""
Fragments = tuple[Fragment, ...]

MIN_TEXT_WIDTH = 6
"""With fewer columns than this, prefixes are left out to leave columns for the text itself."""
_TAB_SIZE = 4

# East Asian text may break between any two characters, but not before closing punctuation nor
# after opening punctuation; the characters of an emoji sequence stay together
_WIDE = (
    "\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff"
    "\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\U0001f000-\U0001faff\U00020000-\U0003fffd"
)
_CLOSING = (
    "\u3001\u3002\uff0c\uff0e\uff1a\uff1b\uff01\uff1f\uff09\u300d\u300f\u3011\u300b\u201d\u2019"
)
_OPENING = "\uff08\u300c\u300e\u3010\u300a\u201c\u2018"
_JOINED = "(?:\u200d.|[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff])*"
_UNIT = re.compile(
    rf"\s+|[{_OPENING}]*(?:(?![{_OPENING}])[{_WIDE}]{_JOINED}[{_CLOSING},.;:!?)]*"
    rf"|[^\s{_WIDE}]+[{_CLOSING}]*)|.",
    re.DOTALL,
)


class StyledLine(NamedTuple):
    """A line before it is wrapped: `first` stands before its first row, `rest` before the others.

    A `verbatim` line breaks exactly at the edge and keeps its blanks.
    """

    body: Fragments
    first: Fragments = ()
    rest: Fragments = ()
    verbatim: bool = False


class RenderedRow(NamedTuple):
    """A row of a block. `settled` is False if more text of the block may change it."""

    fragments: Fragments
    settled: bool
    content: str
    """Its characters without blanks and markers, which do not depend on the width."""


def sanitize(text: str) -> str:
    """Return text with control and invisible characters escaped and tabs expanded."""
    return sanitize_terminal(text).expandtabs(_TAB_SIZE)


def plain_text(fragments: Iterable[Fragment]) -> str:
    """Return the text without its styles."""
    return "".join(text for _, text in fragments)


def cell_width(text: str) -> int:
    """Return the number of columns of a text.

    A character with an emoji variation selector counts two, as most terminals draw it.
    """
    return get_cwidth(text) + text.count("\ufe0f")


def truncate_line(text: str, width: int) -> str:
    """Return the text on one line of at most `width` columns, shortened with an ellipsis."""
    line = " ".join(sanitize(text[: width * 4 + 100]).split())
    if cell_width(line) <= width and len(text) <= width * 4 + 100:
        return line
    return ellipsize(line, width)


def ellipsize(line: str, width: int) -> str:
    """Return as much of a line as fits into `width` columns before an ellipsis."""
    available, kept = width - 1, 0
    for character in line:
        available -= cell_width(character)
        if available < 0:
            break
        kept += 1
    return f"{line[:kept].rstrip()}…" if width > 0 else ""


def wrap_line(line: StyledLine, width: int) -> Iterator[Fragments]:
    """Yield the rows of a line, of at most `width` columns each."""
    rest_width = _width_beside(line.rest, width)
    text = plain_text(line.body)
    first_width = _width_beside(line.first, width)
    ends = [*break_line(text, rest_width, first_width, verbatim=line.verbatim), len(text)]
    start = 0
    for number, end in enumerate(ends):
        prefix, available = (line.rest, rest_width) if number else (line.first, first_width)
        shown = text[start:end] if line.verbatim else text[start:end].rstrip()
        row = _slice(line.body, start, start + len(shown))
        row = row if available == width else (*prefix, *row)
        yield row if plain_text(row).strip() else ()
        start = end


def break_line(text: str, width: int, first: int | None = None, *, verbatim: bool) -> list[int]:
    """Return where each row of a line but the first starts.

    Rows have `width` columns, the first one `first` columns if that is given. Blanks at the end of
    a row belong to it and may exceed the width unless the line is `verbatim`.
    """
    starts: list[int] = []
    start, available = 0, width if first is None else first
    if len(text) <= available and cell_width(text) <= available:
        return starts  # most lines
    while True:
        start = _find_break(text, start, available, verbatim=verbatim)
        if start >= len(text):
            return starts
        starts.append(start)
        available = width


def _width_beside(prefix: Fragments, width: int) -> int:
    """Return the columns beside a prefix, all of them if the prefix is left out."""
    available = width - cell_width(plain_text(prefix))
    return max(width if available < min(MIN_TEXT_WIDTH, width) else available, 1)


def _slice(body: Fragments, start: int, end: int) -> Fragments:
    """Return the characters from `start` to `end`."""
    found: list[Fragment] = []
    offset = 0
    for style, text in body:
        piece = text[max(start - offset, 0) : max(end - offset, 0)]
        if piece:
            found.append((style, piece))
        offset += len(text)
    return tuple(found)


def _find_break(text: str, start: int, available: int, *, verbatim: bool) -> int:
    """Return where the row after the one at `start` starts."""
    if verbatim:
        return _break_at_edge(text, start, available)
    end = start
    for unit in _UNIT.finditer(text, start):
        if unit[0].isspace() and unit.start() > start:
            continue  # counts once a word follows
        width = cell_width(text[end : unit.end()])
        if width <= available:
            available -= width
            end = unit.end()
        elif end == start:
            return _break_at_edge(text, start, available)
        else:
            return unit.start()
    return len(text)


def _break_at_edge(text: str, start: int, available: int) -> int:
    end = start
    while end < len(text):
        available -= cell_width(text[end])
        if available < 0 and end > start:
            break
        end += 1
    return end
