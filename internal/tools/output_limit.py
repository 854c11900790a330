"""Limits for long output: the head and the tail are kept."""

import codecs

MAX_RESULT_CHARS = 30_000
"""The longest tool result that a model receives."""


class OutputBuffer:
    """Collects UTF-8 output and keeps its first and last characters, at most `limit`."""

    def __init__(self, limit: int = MAX_RESULT_CHARS) -> None:
        self._half = limit // 2
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._head = ""
        self._tail = ""
        self._total = 0

    def write(self, chunk: bytes) -> str:
        """Add a chunk and return it as text."""
        text = self._decoder.decode(chunk)
        self._keep(text)
        return text

    def text(self) -> str:
        """Return the output, with a line in place of the omitted middle."""
        self._keep(self._decoder.decode(b"", final=True))
        left_out = self._total - len(self._head) - len(self._tail)
        if not left_out:
            return self._head + self._tail
        return f"{self._head}\n… {left_out:,} characters left out …\n{self._tail}"

    def _keep(self, text: str) -> None:
        self._total += len(text)
        room = self._half - len(self._head)
        self._head += text[:room]
        self._tail = (self._tail + text[room:])[-self._half :]
