"""The data lines of a server-sent event stream, out of chunks cut anywhere."""

from internal.agent.domain.errors import ModelUnreachable

MAX_LINE_BYTES = 8 * 1024 * 1024


class EventStream:
    """Collects bytes and gives the `data` of every event that is complete.

    Event names are not looked at: the providers we know repeat them inside the data. Lines end with
    LF or CRLF. An event counts once its empty line has come (WHATWG HTML, 9.2.6).
    """

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes, return the data of the events that they complete.

        Raises:
            ModelUnreachable: a line is longer than any provider sends.
        """
        head, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            return self._hold(chunk)
        lines = b"".join((*self._held, head)).split(b"\n")
        self._held, self._held_bytes = [], 0
        if tail:
            self._hold(tail)
        return [data for line in lines if (data := self._line(line)) is not None]

    def _hold(self, piece: bytes) -> list[bytes]:
        self._held.append(piece)  # joined only when a newline comes: no quadratic copying
        self._held_bytes += len(piece)
        if self._held_bytes > MAX_LINE_BYTES:
            raise ModelUnreachable("The provider sent a line without end instead of a reply.")
        return []

    def _line(self, line: bytes) -> bytes | None:
        line = line.removesuffix(b"\r")
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif not line and self._data:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            self._data = []
            return data
        return None
