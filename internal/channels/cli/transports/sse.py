"""Reads `text/event-stream` as the HTML standard describes it. Standard library only."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_END = re.compile(rb"\r?\n\r?\n")


class StreamFrame(NamedTuple):
    """One frame. `id` is None when it carries none, `data` is empty when it carries none."""

    id: str | None
    event: str
    data: bytes


class StreamParser:
    """Takes bytes as they come and gives the frames that are complete."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, received: bytes) -> Iterator[StreamFrame]:
        """Yield the frames that these bytes complete."""
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
                pass  # a comment, `retry`, or a field of the future
    return StreamFrame(name, event, b"\n".join(data))
