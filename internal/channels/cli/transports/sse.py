"""Parser for `text/event-stream` (WHATWG HTML, section 9.2). Standard library only."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_END = re.compile(rb"\r?\n\r?\n")


class StreamFrame(NamedTuple):
    """One frame. `id` is None and `data` is empty if the frame has no such field."""

    id: str | None
    event: str
    data: bytes


class StreamParser:
    """Incremental parser: takes chunks of bytes, yields the complete frames."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, received: bytes) -> Iterator[StreamFrame]:
        """Yield the frames that this chunk completes."""
        searched = max(len(self._rest) - 3, 0)
        self._rest += received
        while end := _END.search(self._rest, searched):
            block = bytes(self._rest[: end.start()])
            del self._rest[: end.end()]
            searched = 0
            yield _frame(block)


def _frame(block: bytes) -> StreamFrame:
    name: str | None = None
    event = "message"
    data: list[bytes] = []
    for line in block.split(b"\n"):
        field, _, value = line.rstrip(b"\r").partition(b":")
        value = value.removeprefix(b" ")
        match field:
            case b"id":
                name = value.decode("utf-8", "replace")
            case b"event":
                event = value.decode("utf-8", "replace")
            case b"data":
                data.append(value)
            case _:
                pass  # a comment, `retry`, or an unknown field
    return StreamFrame(name, event, b"\n".join(data))
