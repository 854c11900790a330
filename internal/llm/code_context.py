"""Recognition of code and quotations around the next character of a streamed Markdown text."""

import re

_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")
_MAX_HEAD = 200
_INDENTED = 4
_QUOTATION_MARKS = frozenset("\"'`“‘「『«‹")  # noqa: RUF001 - what people quote with
_PAIRS = {"“": "”", "「": "」", "『": "』", "«": "»"}


class CodeContext:
    """Follows a text, however it is cut: code fences, code spans and quotations of its last line.

    The text is read when it is asked about, so a text without anything to ask about costs nothing.
    """

    def __init__(self) -> None:
        self._unread: list[str] = []
        self._fence = ""
        self._head = ""
        self._ticks = 0
        self._quotes = 0
        self._open = dict.fromkeys(_PAIRS, 0)
        self._last = ""

    def feed(self, text: str) -> None:
        """Take the next piece of the text."""
        self._unread.append(text)

    @property
    def is_literal(self) -> bool:
        """True in code and in quotations, where a mark is an example."""
        self._read()
        return (
            bool(self._fence)
            or self._ticks % 2 == 1
            or self._quotes % 2 == 1
            or any(count > 0 for count in self._open.values())
            or self._last in _QUOTATION_MARKS
            or self.is_quoted_line
        )

    @property
    def is_in_fence(self) -> bool:
        """True inside of a fenced block of code."""
        self._read()
        return bool(self._fence)

    @property
    def is_line_start(self) -> bool:
        """True if the line has only blanks so far."""
        self._read()
        return not self._head.strip()

    @property
    def is_quoted_line(self) -> bool:
        """True on a line that is quoted with `>`, or that is code because it is indented."""
        self._read()
        head = self._head.expandtabs(_INDENTED)
        stripped = head.lstrip()
        return stripped.startswith(">") or len(head) - len(stripped) >= _INDENTED

    def _read(self) -> None:
        if not self._unread:
            return
        text = "".join(self._unread)
        self._unread.clear()
        first, *others = text.split("\n")
        self._continue_line(first)
        for line in others:
            self._end_line()
            self._continue_line(line)

    def _continue_line(self, piece: str) -> None:
        if not piece:
            return
        self._head += piece[: _MAX_HEAD - len(self._head)]
        self._ticks += piece.count("`")
        self._quotes += piece.count('"')
        for opening, closing in _PAIRS.items():
            self._open[opening] += piece.count(opening) - piece.count(closing)
        self._last = piece[-1]

    def _end_line(self) -> None:
        if found := _FENCE.match(self._head):
            run, info = found[1], found[2].strip()
            if not self._fence:
                # three ticks with a tick behind them are a code span of one line
                self._fence = "" if run[0] == "`" and "`" in info else run
            elif run.startswith(self._fence) and not info:
                self._fence = ""
        self._head = self._last = ""
        self._ticks = self._quotes = 0
        self._open = dict.fromkeys(_PAIRS, 0)
