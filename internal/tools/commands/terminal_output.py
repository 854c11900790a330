"""The output of a command for the model: the final contents of a terminal."""

import codecs

from internal.terminal_screen.screen import OutputScreen
from internal.text_encodings.stream import StreamDecoder, decode_escaped
from internal.tools.tool import MAX_RESULT_CHARS, OutputBuffer


class TerminalOutput:
    """Collects the output of a command, and keeps the first and last characters of its lines."""

    def __init__(self, limit: int = MAX_RESULT_CHARS) -> None:
        self._live = StreamDecoder()
        # the model gets the encoding that fits all of the output, people the one known so far
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._screen = OutputScreen()
        self._kept = OutputBuffer(limit)
        self._is_binary = False

    def write(self, chunk: bytes) -> str:
        """Add a chunk and return it as text for people, with all that a terminal obeys."""
        self._is_binary = self._is_binary or b"\0" in chunk
        self._kept.add(self._screen.feed(self._decoder.decode(chunk)))
        return self._live.decode(chunk)

    def text(self) -> str:
        """Return the output so far, with a line in place of an omitted middle."""
        torn = self._decoder.getstate()[0].decode("utf-8", "surrogateescape")
        whole = self._kept.copy()
        whole.add(self._screen.rest() + torn)
        (head, tail), encoding = decode_escaped(whole.head, whole.tail, is_binary=self._is_binary)
        text = whole.join(head, tail)
        return f"{encoding.remark}\n{text}" if encoding.remark and text else text
