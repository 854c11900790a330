"""Server-sent events: how frames look on the wire. docs/streams.md, events.md's contract.

Everything is one `data` line: JSON has no raw line ends.
"""

import secrets
from collections.abc import Generator, Iterable, Sequence
from typing import NamedTuple

import msgspec

from internal.agent.app.events.subscription import StreamItem
from internal.agent.domain.events.control import ControlFrame
from internal.agent.domain.events.record import EventRecord

RETRY_MS = 2000
RETRY_SPREAD = 0.25
LARGEST_WRITE = 65_536
"""Bytes after which a write is cut: all that a connection holds for a reader who does not read."""

HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


def retry_ms() -> int:
    """Return when a reader is to come back, ±25 %: readers of one server must not come together."""
    spread = int(RETRY_MS * RETRY_SPREAD)
    return RETRY_MS - spread + secrets.randbelow(2 * spread + 1)


def chunk(body: bytes) -> bytes:
    """Return a piece of a body in HTTP/1.1's chunked coding (RFC 9112, section 7.1)."""
    return b"%x\r\n%s\r\n" % (len(body), body)


def render_retry(milliseconds: int) -> bytes:
    """Return the word that sets a reader's delay."""
    return b"retry: %d\n\n" % milliseconds


def render_id(wire_id: str) -> bytes:
    """Return a frame that only moves a reader's cursor."""
    return b"id: %s\n\n" % wire_id.encode()


def render_control(control: ControlFrame) -> bytes:
    """Return a frame about the stream itself."""
    return b"event: %s\ndata: %s\n\n" % (control.name.encode(), msgspec.json.encode(control))


class Rendered(NamedTuple):
    """A batch as it is sent: in chunks of about `LARGEST_WRITE`.

    `seen` is the position of its last durable event, `told` that of the last one that is shown;
    0 without one.
    """

    chunks: Iterable[bytes]
    seen: int
    told: int


class Renderer:
    """Turns what a watcher is shown into bytes, each frame once for all who watch."""

    def __init__(self, epoch: str) -> None:
        self._id = f"id: {epoch}-".encode()
        self._batch: Sequence[StreamItem] = ()
        self._debug = False
        self._rendered = Rendered((), 0, 0)

    def rendered(self, batch: Sequence[StreamItem], *, debug: bool) -> Rendered:
        """Return a batch as it is sent, without what only `debug` shows.

        Watchers of one tail wake one after the other with the same frames: what the one before was
        given is kept for them. A large batch is not: it is made write by write.
        """
        if debug is self._debug and batch == self._batch:
            return self._rendered
        shown = [one for one in batch if debug or not _inner(one)]
        seen, told = _last_position(batch), _last_position(shown)
        if sum(len(one.json) for one in shown if isinstance(one, EventRecord)) > LARGEST_WRITE:
            return Rendered(self._chunks(shown), seen, told)
        joined = b"".join([self._render(one) for one in shown])
        self._batch, self._debug = batch, debug
        self._rendered = Rendered((chunk(joined),) if joined else (), seen, told)
        return self._rendered

    def _chunks(self, shown: Iterable[StreamItem]) -> Generator[bytes]:
        pieces: list[bytes] = []
        size = 0
        for one in shown:
            piece = self._render(one)
            if size and size + len(piece) > LARGEST_WRITE:
                yield chunk(b"".join(pieces))
                pieces.clear()
                size = 0
            pieces.append(piece)
            size += len(piece)
        yield chunk(b"".join(pieces))

    def _render(self, shown: StreamItem) -> bytes:
        if isinstance(shown, ControlFrame):
            return render_control(shown)
        if shown.rendered is None:
            wire_id = b"%s%d\n" % (self._id, shown.position) if shown.position else b""
            event = shown.event.encode()
            shown.rendered = b"%sevent: %s\ndata: %s\n\n" % (wire_id, event, shown.json)
        return shown.rendered


def _inner(shown: StreamItem) -> bool:
    return isinstance(shown, EventRecord) and shown.inner


def _last_position(batch: Sequence[StreamItem]) -> int:
    positions = (one.position for one in reversed(batch) if isinstance(one, EventRecord))
    return next(filter(None, positions), 0)
