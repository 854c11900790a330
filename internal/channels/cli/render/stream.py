"""A reply that grows: what of it is final and goes above for good, and the tail below."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from internal.channels.cli.render.markdown import MarkdownBlock, parse_blocks
from internal.channels.cli.render.text import Fragments, WrappedRow, plain_text, wrap_line
from internal.channels.cli.render.theme import Glyphs

TAIL_ROWS = 6


class StreamRows(NamedTuple):
    """Rows to print above, once and for good, and those to show below until the next call."""

    final: list[Fragments]
    tail: list[Fragments]


class _Placed(NamedTuple):
    """A row, and the character of its block with which the next one begins."""

    shown: Fragments
    end: int


class BlockStream:
    """The text of one reply.

    Every block before the last is final once the line that begins the next is complete. Of the
    last one those rows are final that lie `TAIL_ROWS` above its end and cannot change any more.
    """

    def __init__(self, glyphs: Glyphs) -> None:
        self.text = ""
        self._glyphs = glyphs
        self._start = 0
        """Where in the text the open block begins."""
        self._spot = 0
        """How many characters of the open block are printed."""
        self._printed: list[str] = []
        self._expected: list[str] = []
        """What an earlier attempt printed, to be passed over if it comes again."""
        self._part = ""
        """What of the block behind those an earlier attempt printed."""

    @property
    def begun(self) -> bool:
        """Say whether anything is printed."""
        return bool(self._printed or self._spot or self._expected or self._part)

    def start_over(self) -> None:
        """Forget the text; of what comes now, blocks that are printed already are left out."""
        if not (self._expected or self._part):
            self._expected = self._printed
            self._part = self._open_text()[: self._spot]
        self.text, self._start, self._spot, self._printed = "", 0, 0, []

    def advance(self, width: int, *, complete: bool = False) -> StreamRows:
        """Return the rows that became final, and the tail. `complete`: no more text will come."""
        final: list[Fragments] = []
        for block in self._closed(width, complete=complete):
            final += self._finish(block, width)
        rest = parse_blocks(self.text[self._start :], width, self._glyphs)
        if not rest:
            return StreamRows(final, [])
        rows = list(_rows(rest[0], self._spot, width))
        more: list[Fragments] = []
        for block in rest[1:]:
            more += [(), *(row.shown for row in _rows(block, 0, width))]
        settled = 0 if self._expected or self._part else rest[0].settled
        most = len(rows) + len(more) - TAIL_ROWS
        if rest[0].lines[-1:] and rest[0].lines[-1].verbatim:
            most = len(rows)  # lines of code are final as they are complete
        fixed = [row for row in rows[: max(most, 0)] if row.end <= settled]
        if fixed:
            final += self._apart() if not self._spot else []
            final += [row.shown for row in fixed]
            self._spot = fixed[-1].end
        left = [*(row.shown for row in rows[len(fixed) :]), *more]
        above = self._apart() if left and not self._spot else []
        return StreamRows(final, [*above, *left][-TAIL_ROWS:])

    def _closed(self, width: int, *, complete: bool) -> Iterator[MarkdownBlock]:
        """Yield the blocks behind which another one has begun, and step over them."""
        whole = len(self.text) if complete else self.text.rfind("\n") + 1
        text = self.text[self._start : whole]
        found = parse_blocks(text, width, self._glyphs)
        lines = text.split("\n")
        base = self._start
        for block in found if complete else found[:-1]:
            yield block
            self._start = base + len("\n".join(lines[: block.source])) + 1
            self._spot = 0

    def _finish(self, block: MarkdownBlock, width: int) -> Iterator[Fragments]:
        """Yield what is left to print of a block that is complete."""
        text, self._printed = block.text, [*self._printed, block.text]
        if self._expected:
            if text == self._expected.pop(0):
                return
            self._expected, self._part = [], ""
        elif self._part:
            if text.startswith(self._part):
                self._spot = len(self._part)
            self._part = ""
        if not self._spot:
            yield from self._apart(1)
        if self._spot < len(text) or not text:
            for row in _rows(block, self._spot, width):
                yield row.shown

    def _apart(self, own: int = 0) -> list[Fragments]:
        return [()] if len(self._printed) > own else []

    def _open_text(self) -> str:
        found = parse_blocks(self.text[self._start :], 80, self._glyphs)
        return found[0].text if found else ""


def _rows(block: MarkdownBlock, start: int, width: int) -> Iterator[_Placed]:
    """Yield the rows of a block from a character on."""
    base = 0
    for number, line in enumerate(block.lines):
        length = len(plain_text(line.body))
        if base + length >= start and (start <= base or start < base + length):
            inside = max(start - base, 0)
            last = number == len(block.lines) - 1
            for row in wrap_line(line, width, inside):
                yield _Placed(row.shown, base + _end(row, length, last=last))
        base += length + 1


def _end(row: WrappedRow, length: int, *, last: bool) -> int:
    """Return behind which character of its line a row ends.

    The end of a line takes the line break along: it is as final as what follows it. So does an
    empty last line, which is not final before something does.
    """
    return length + 1 if row.end >= length and not (last and length) else row.end


_INDENT = 2
_INDENT_FROM = 16
"""From this width on a reply stands to the right of its sign."""
CLIPPED_FROM = 10_000
"""An event holds a text of this many characters whole for sure; a longer one may be clipped."""


class ReplyRows(NamedTuple):
    """Rows to print above now, and those below. `begins`: the reply's first row is among them."""

    final: list[Fragments]
    tail: list[Fragments]
    begins: bool


class ReplyStream:
    """The words of one node of one run."""

    def __init__(self, run_id: str, node_id: str, glyphs: Glyphs, text: str = "") -> None:
        self.place = (run_id, node_id)
        self._flow = BlockStream(glyphs)
        self._flow.text = text
        self._sign = ("class:accent", f"{glyphs.agent} ")
        self._k = 0
        self._hole = False
        self._begun = False

    @property
    def text(self) -> str:
        """What was said so far."""
        return self._flow.text

    def grow(self, delta: Mapping[str, Any]) -> None:
        """Take the next words; behind a hole nothing more until all words so far come again."""
        if delta["k"] - delta["n"] != self._k:
            self._hole = True
        if not self._hole:
            self._k = delta["k"]
            self._flow.text += delta["text"]

    def set(self, partial: Mapping[str, Any]) -> bool:
        """Take all words so far; True when the model begins anew what was shown already."""
        text, anew = partial["text"], False
        if not text.startswith(self._flow.text):
            anew = self._flow.begun and not partial["k"]
            self._flow.start_over()
        self._flow.text, self._k, self._hole = text, partial["k"], False
        return anew

    def complete(self, content: str) -> None:
        """Take the whole text. One so long that it may be clipped does not replace a longer one."""
        clipped = len(content) > CLIPPED_FROM and len(self.text) >= len(content)
        if self._hole or not clipped:
            if not content.startswith(self.text):
                self._flow.start_over()
            self._flow.text = content

    def rows(self, width: int, *, complete: bool) -> ReplyRows:
        """Return what goes above now and what stays below."""
        indent = _INDENT if width >= _INDENT_FROM else 0
        final, tail = self._flow.advance(width - indent, complete=complete)
        begins = bool(final) and not self._begun
        shown = self._beside(final, indent, first=begins)
        self._begun = self._begun or begins
        return ReplyRows(shown, self._beside(tail, indent, first=not self._begun), begins)

    @property
    def begun(self) -> bool:
        """Say whether a row of it is printed."""
        return self._begun

    def _beside(self, rows: list[Fragments], indent: int, *, first: bool) -> list[Fragments]:
        if not indent:
            return rows
        return [
            (self._sign if first and not number else ("", " " * indent), *row) if row else row
            for number, row in enumerate(rows)
        ]
