"""The text of a document as pieces, and the part of it that was asked for."""

import re
import time
from collections.abc import Iterator
from typing import NamedTuple

from internal.agent.domain.errors import DocumentUnreadable

COUNT_SECONDS = 4.0
"""Time for which reading goes on after the wanted part is complete, to count the rest."""
EXTRACT_SECONDS = 20.0
"""Time limit of reading a document; a slower document is returned up to there."""

_CONTROL_CHARACTERS = re.compile("[\0-\x08\x0b-\x1f\x7f\ufffe\uffff]")


class OtherReaderNeeded(Exception):
    """A file turned out to be of a kind, the argument, whose reader was not imported."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class ExtractedDocument(NamedTuple):
    """A document whose text is read piece by piece, such as page by page.

    `if_empty` is the text for an empty document.
    """

    parts: int
    pieces: Iterator[str]
    if_empty: str = ""


class Extract(NamedTuple):
    """The part of a text that was asked for; `total` is None if the rest was not counted."""

    text: str
    next_offset: int | None
    total: int | None


def cut(pieces: Iterator[str], offset: int, size: int) -> Extract:
    """Return the characters from `offset` on, at most `size`.

    Raises:
        DocumentUnreadable: there is text, and it ends before `offset`.
    """
    kept: list[str] = []
    total, end, ended = 0, offset + size, False
    started = time.monotonic()
    for piece in pieces:
        if total + len(piece) > offset and total < end:
            kept.append(piece[max(offset - total, 0) : end - total])
        total += len(piece)
        limit = COUNT_SECONDS if total > end else EXTRACT_SECONDS
        if ended := time.monotonic() - started > limit:
            break
    if offset > total > 0:
        raise DocumentUnreadable(_beyond(offset, total, ended=ended))
    text = "".join(kept)
    if total > end:
        return Extract(text, end, None if ended else total)
    if ended:
        text += f"\n[Reading ended after {EXTRACT_SECONDS:g} seconds: the rest is missing.]"
        return Extract(text, None, None)
    return Extract(text, None, total)


def _beyond(offset: int, total: int, *, ended: bool) -> str:
    if ended:
        return f"The document takes too long to read up to character {offset:,}."
    return f"The text has {total:,} characters: there is no character {offset:,}."


def clean(text: str) -> str:
    r"""Return extracted text with `\n` line ends and without control characters."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\ufffe", "-")
    return _CONTROL_CHARACTERS.sub("", text)


def table_row(cells: list[str]) -> str:
    """Return a row of a Markdown table, without a line end."""
    shown = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(shown)} |"


def table_rule(columns: int) -> str:
    """Return the line below the first row of a Markdown table."""
    return f"|{' --- |' * columns}"
