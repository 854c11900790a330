"""One reply of the agent on its way: its pieces, and its rows beside the sign of the agent."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from internal.channels.cli.render.stream import Flow
from internal.channels.cli.render.text import Fragments
from internal.channels.cli.render.theme import Glyphs

_INDENT = 2
_INDENT_FROM = 16
"""From this width on a reply stands to the right of its sign."""
CLIPPED_FROM = 10_000
"""An event holds a text of this many characters whole for sure; a longer one may be clipped."""


class Rows(NamedTuple):
    """Rows to print above now, and those below. `begins`: the reply's first row is among them."""

    final: list[Fragments]
    tail: list[Fragments]
    begins: bool


class Reply:
    """The words of one node of one run."""

    def __init__(self, run_id: str, node_id: str, glyphs: Glyphs, text: str = "") -> None:
        self.place = (run_id, node_id)
        self._flow = Flow(glyphs)
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

    def rows(self, width: int, *, complete: bool) -> Rows:
        """Return what goes above now and what stays below."""
        indent = _INDENT if width >= _INDENT_FROM else 0
        final, tail = self._flow.advance(width - indent, complete=complete)
        begins = bool(final) and not self._begun
        shown = self._beside(final, indent, first=begins)
        self._begun = self._begun or begins
        return Rows(shown, self._beside(tail, indent, first=not self._begun), begins)

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
