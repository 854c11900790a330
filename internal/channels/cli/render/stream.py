"""A reply that grows: which of its rows are final and go into the scrollback, and its live tail."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from internal.channels.cli.render.text import Fragments, RenderedRow
from internal.channels.cli.render.theme import Glyphs

if TYPE_CHECKING:
    from internal.channels.cli.render.markdown import MarkdownBlock, Resume

TAIL_ROWS = 6
MAX_COMPLETE_TEXT = 10_000
"""An event never truncates a text of at most this many characters."""
_INDENT = 2
_MIN_INDENTED_WIDTH = 16
"""On narrower terminals a reply is not indented beside its glyph."""


class StreamRows(NamedTuple):
    """Rows to print now, permanently, and rows to show below until the next call."""

    final: list[Fragments]
    tail: list[Fragments]


class ReplyRows(NamedTuple):
    """As `StreamRows`. `starts` is True if the reply's first row is among the final ones."""

    final: list[Fragments]
    tail: list[Fragments]
    starts: bool


class _Printed(NamedTuple):
    """The printed part of the open block: the number of its rows at a width, their content.

    `width` is 0 if the number of rows is unknown.
    """

    rows: int
    width: int
    content: str


_NOTHING = _Printed(0, 0, "")


class BlockStream:
    """The text of one reply. Append to `text`, then call `advance`.

    Every block before the last is final once the line that starts the next one is complete. Of the
    last block, rows are final that lie `TAIL_ROWS` above its end and cannot change any more. The
    final rows of all calls are the rows of one render of the whole text.
    """

    def __init__(self, glyphs: Glyphs) -> None:
        self.text = ""
        self._glyphs = glyphs
        self._start = self._searched = 0
        """Offset in the text of the open block, and the offset up to which its end was searched."""
        self._resume: Resume | None = None
        self._printed = _NOTHING
        self._closed: list[str] = []
        """The sources of the blocks that are closed."""
        self._expected: list[str] = []
        """The closed blocks of an earlier attempt, which are not printed again if they recur."""
        self._expected_content = ""
        """Part of the block after those that an earlier attempt printed."""

    @property
    def has_printed(self) -> bool:
        """Return True if a row was printed, also by an earlier attempt."""
        return bool(self._closed or self._printed.rows or self._expected or self._expected_content)

    def restart(self) -> None:
        """Forget the text. Blocks of the next attempt that are printed already are left out."""
        if not (self._expected or self._expected_content):
            self._expected, self._expected_content = self._closed, self._printed.content
        self.text, self._closed = "", []
        self._open_block(0, None)

    def advance(self, width: int, *, complete: bool = False) -> StreamRows:
        """Return the rows that became final, and the tail. `complete`: no more text will come."""
        final: list[Fragments] = []
        for block, source in self._close_blocks(complete=complete):
            final += self._finish(block, source, width)
        blocks = self._parse(self.text[self._start :])
        if not blocks:
            return StreamRows(final, [])
        rows = blocks[0].render(width)
        remaining = self._remaining(rows, width)
        following: list[Fragments] = []
        for block in blocks[1:]:
            following += [()] if block.resume is None else []
            following += [row.fragments for row in block.render(width)]
        settled = self._count_settled(blocks[0], remaining, len(following))
        if settled:
            final += self._separator(blocks[0])
            final += [row.fragments for row in remaining[:settled]]
            self._printed = _Printed(
                len(rows) - len(remaining) + settled,
                width,
                self._printed.content + _content(remaining[:settled]),
            )
        tail = [*(row.fragments for row in remaining[settled:]), *following]
        above = self._separator(blocks[0]) if tail else []
        return StreamRows(final, [*above, *tail][-TAIL_ROWS:])

    def _parse(self, text: str) -> "list[MarkdownBlock]":
        # The one import point of rich, which is slow; no first frame needs it
        from internal.channels.cli.render import markdown  # noqa: PLC0415 - loads rich

        return markdown.parse_blocks(text, self._glyphs, self._resume)

    def _close_blocks(self, *, complete: bool) -> "Iterator[tuple[MarkdownBlock, str]]":
        """Yield the blocks after which another one has started, with their source."""
        end = len(self.text) if complete else self.text.rfind("\n") + 1
        if end == self._searched and not complete:
            return  # no line was completed since the last search
        self._searched = end
        text, base = self.text[self._start : end], self._start
        blocks = self._parse(text)
        lines = text.split("\n")
        closed = len(blocks) if complete else len(blocks) - 1
        at = 0
        for number, block in enumerate(blocks[:closed]):
            source = "\n".join(lines[at : block.end]).strip()
            yield block, source
            self._closed.append(source)
            at = block.end
            after = blocks[number + 1].resume if number + 1 < len(blocks) else None
            self._open_block(min(base + len("\n".join(lines[:at])) + 1, len(self.text)), after)

    def _open_block(self, start: int, resume: "Resume | None") -> None:
        self._start, self._resume, self._printed = start, resume, _NOTHING
        self._searched = max(self._searched, start) if start else 0

    def _finish(self, block: "MarkdownBlock", source: str, width: int) -> Iterator[Fragments]:
        """Yield the rows of a complete block that are not printed yet."""
        rows = block.render(width)
        if self._expected:
            if source == self._expected.pop(0):
                return
            self._expected, self._expected_content = [], ""
        elif self._expected_content:
            if _content(rows).startswith(self._expected_content):
                self._printed = _Printed(1, 0, self._expected_content)
            self._expected_content = ""
        yield from self._separator(block)
        for row in self._remaining(rows, width):
            yield row.fragments

    def _remaining(self, rows: Sequence[RenderedRow], width: int) -> Sequence[RenderedRow]:
        """Return the rows that are not printed yet.

        After a change of the width they are found by their content, and the first may be partial.
        """
        if width == self._printed.width or not self._printed.content:
            return rows[self._printed.rows :]
        printed = len(self._printed.content)
        for number, row in enumerate(rows):
            if printed < len(row.content):
                return [_drop_content(row, printed), *rows[number + 1 :]]
            printed -= len(row.content)
        return []

    def _count_settled(
        self, block: "MarkdownBlock", rows: Sequence[RenderedRow], following: int
    ) -> int:
        """Return how many of these rows of the open block are final."""
        if self._expected or self._expected_content:
            return 0
        unsettled = next((n for n, row in enumerate(rows) if not row.settled), None)
        if block.is_code:
            return max(len(rows) - 1, 0) if unsettled is None else unsettled
        limit = len(rows) + following - TAIL_ROWS
        if unsettled is not None:
            # where the row before it ends depends on the word with which it starts
            limit = min(limit, unsettled - 1)
        return max(min(limit, len(rows)), 0)

    def _separator(self, block: "MarkdownBlock") -> list[Fragments]:
        """Return the blank row above the open block, if it is due."""
        is_first = not self._closed or self._printed.rows
        return [] if is_first or block.resume is not None else [()]


class StreamedReply:
    """The reply of one node of one run, built from events, with its rows beside a glyph."""

    def __init__(self, run_id: str, node_id: str, glyphs: Glyphs, text: str = "") -> None:
        self.source = (run_id, node_id)
        self._blocks = BlockStream(glyphs)
        self._blocks.text = text
        self._glyph = ("class:accent", f"{glyphs.agent} ")
        self._deltas = 0
        self._has_gap = False
        self._started = False

    @property
    def text(self) -> str:
        """The text so far."""
        return self._blocks.text

    @property
    def started(self) -> bool:
        """True once a row has been printed."""
        return self._started

    def append(self, delta: Mapping[str, Any]) -> None:
        """Add a `workflow.node.output.delta`. After a gap wait for the next partial."""
        if delta["k"] - delta["n"] != self._deltas:
            self._has_gap = True
        if not self._has_gap:
            self._deltas = delta["k"]
            self._blocks.text += delta["text"]

    def replace(self, partial: Mapping[str, Any]) -> bool:
        """Set the text from a `partial`. Return True if the model restarted a shown reply."""
        text, restarted = partial["text"], False
        if not text.startswith(self._blocks.text):
            restarted = self._blocks.has_printed and not partial["k"]
            self._blocks.restart()
        self._blocks.text, self._deltas, self._has_gap = text, partial["k"], False
        return restarted

    def complete(self, content: str) -> None:
        """Set the whole text. A truncated one does not replace a longer one."""
        truncated = len(content) > MAX_COMPLETE_TEXT and len(self.text) >= len(content)
        if self._has_gap or not truncated:
            if not content.startswith(self.text):
                self._blocks.restart()
            self._blocks.text = content

    def render(self, width: int, *, complete: bool) -> ReplyRows:
        """Return the rows to print now and the rows that stay below."""
        indent = _INDENT if width >= _MIN_INDENTED_WIDTH else 0
        final, tail = self._blocks.advance(width - indent, complete=complete)
        starts = bool(final) and not self._started
        shown = self._indent(final, indent, first=starts)
        self._started = self._started or starts
        return ReplyRows(shown, self._indent(tail, indent, first=not self._started), starts)

    def _indent(self, rows: list[Fragments], indent: int, *, first: bool) -> list[Fragments]:
        if not indent:
            return rows
        return [
            (self._glyph if first and not number else ("", " " * indent), *row) if row else row
            for number, row in enumerate(rows)
        ]


def _content(rows: Sequence[RenderedRow]) -> str:
    return "".join(row.content for row in rows)


def _drop_content(row: RenderedRow, count: int) -> RenderedRow:
    """Return a row without its first `count` characters that are neither blank nor a marker."""
    kept: list[tuple[str, str]] = []
    left = count
    for style, text in row.fragments:
        if left and "class:marker" in style:
            continue
        at = 0
        while left and at < len(text):
            left -= not text[at].isspace()
            at += 1
        if text[at:]:
            kept.append((style, text[at:]))
    return row._replace(fragments=tuple(kept), content=row.content[count:])
