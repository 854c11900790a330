"""Styled text in cells: how wide it is, and how it breaks into rows."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from prompt_toolkit.utils import get_cwidth

from internal.channels.cli.output import sanitize_terminal

Fragment = tuple[str, str]
"""A style, as prompt_toolkit writes them, and text without line breaks."""
Fragments = tuple[Fragment, ...]

_TAB = 4
_LITTLE_ROOM = 6
"""With fewer cells than this a prefix is left out, so that there is room for the text itself."""

# East Asian text may break between any two characters, but not before closing punctuation nor
# behind opening; signs of an emoji sequence stay together
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
    rf"\s+|[{_OPENING}]*[{_WIDE}]{_JOINED}[{_CLOSING},.;:!?)]*|[^\s{_WIDE}]+|.", re.DOTALL
)


class StyledLine(NamedTuple):
    """A line before it is broken: `first` stands before its first row, `rest` before the others.

    A `verbatim` line breaks at the edge, wherever that is, and keeps its blanks.
    """

    body: Fragments
    first: Fragments = ()
    rest: Fragments = ()
    verbatim: bool = False


class WrappedRow(NamedTuple):
    """A row as it is printed, and where in the line's own text the next one begins."""

    shown: Fragments
    end: int


def sanitize(text: str) -> str:
    """Return text that a terminal may get: nothing in it moves the cursor or hides anything."""
    return sanitize_terminal(text).expandtabs(_TAB)


def plain_text(fragments: Iterable[Fragment]) -> str:
    """Return the text without its styles."""
    return "".join(text for _, text in fragments)


def cell_width(text: str) -> int:
    """Return how many columns the text takes.

    A sign that is asked to be shown as an emoji counts two: that is what most terminals do with it.
    """
    return get_cwidth(text) + text.count("\ufe0f")


def truncate_line(text: str, width: int) -> str:
    """Return the text on one line of at most `width` columns; an ellipsis stands for the rest."""
    line = " ".join(sanitize(text[: width * 4 + 100]).split())
    return (
        ellipsize(line, width) if cell_width(line) > width or len(text) > width * 4 + 100 else line
    )


def ellipsize(line: str, width: int) -> str:
    """Return as much of a line as fits before an ellipsis."""
    room, kept = width - 1, 0
    for char in line:
        room -= cell_width(char)
        if room < 0:
            break
        kept += 1
    return f"{line[:kept].rstrip()}…" if width > 0 else ""


def wrap_line(line: StyledLine, width: int, start: int = 0) -> Iterator[WrappedRow]:
    """Break a line, from `start` characters on, into rows of at most `width` columns.

    Where a row ended, another call may go on, at another width too.
    """
    text = plain_text(line.body)
    prefix = line.rest if start else line.first
    while True:
        room = width - cell_width(plain_text(prefix))
        if room < min(_LITTLE_ROOM, width):
            prefix, room = (), width
        end, after = _break(text, start, max(room, 1), verbatim=line.verbatim)
        shown = (*prefix, *slice_fragments(line.body, start, end))
        yield WrappedRow(shown if plain_text(shown).strip() else (), after)
        start, prefix = after, line.rest
        if start >= len(text):
            return


def slice_fragments(body: Fragments, start: int, end: int) -> Fragments:
    """Return the characters from `start` to `end`."""
    found: list[Fragment] = []
    at = 0
    for style, text in body:
        piece = text[max(start - at, 0) : max(end - at, 0)]
        if piece:
            found.append((style, piece))
        at += len(text)
    return tuple(found)


def _break(text: str, start: int, room: int, *, verbatim: bool) -> tuple[int, int]:
    """Return where the row that starts here ends, and where the next one starts."""
    if verbatim:
        end = _hard_break(text, start, room)
        return end, end
    end = at = start
    for unit in _UNIT.finditer(text, start):
        word, at = unit[0], unit.start()
        if word.isspace() and at > start:
            continue  # it counts once a word follows it
        taken = cell_width(text[end : unit.end()])
        if taken <= room:
            room -= taken
            end = unit.end()
        elif end == start:
            end = at = _hard_break(text, start, room)
            return end, at
        else:
            return end, at
    return end, len(text)


def _hard_break(text: str, start: int, room: int) -> int:
    at = start
    while at < len(text):
        room -= cell_width(text[at])
        if room < 0 and at > start:
            break
        at += 1
    return at
