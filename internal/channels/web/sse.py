"""Encoding of server-sent events. The contract is in docs/streams.md.

Each frame has one `data` line, as JSON contains no raw line breaks. Unnamed frames have no `event`
line: browsers hand them to `onmessage`.
"""

import secrets
from collections.abc import Generator, Iterable, Sequence
from functools import cache
from typing import NamedTuple

import msgspec

from internal.agent.app.events.subscription import StreamItem
from internal.agent.domain.events.control import ControlFrame
from internal.agent.domain.events.envelope import INNER_EVENTS, EventRecord

RETRY_MS = 2000
RETRY_JITTER = 0.25
MAX_WRITE_BYTES = 65_536
"""Size at which a batch is split: the memory that a client that does not read can occupy."""

HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


def retry_ms() -> int:
    """Return a reconnection delay, ±25 % so that clients do not reconnect at the same time."""
    jitter = int(RETRY_MS * RETRY_JITTER)
    return RETRY_MS - jitter + secrets.randbelow(2 * jitter + 1)


def encode_chunk(body: bytes) -> bytes:
    """Return bytes in HTTP/1.1 chunked transfer coding (RFC 9112, section 7.1)."""
    return _join_chunk((body,), len(body))


def _join_chunk(parts: Iterable[bytes], size: int) -> bytes:
    """Return the parts of a body of this size as `encode_chunk` does."""
    return b"".join((b"%x\r\n" % size, *parts, b"\r\n"))


def decode_chunk(chunk: bytes) -> bytes:
    """Return the content of one chunk that `encode_chunk` returned."""
    return chunk[chunk.index(b"\n") + 1 : -2]


# Some readers hand on frames without data, which their callers then decode as JSON. A field that
# belongs to no event is therefore a part of the frame after it.


def render_retry(milliseconds: int) -> bytes:
    """Return the field of the next frame that sets the client's reconnection delay."""
    return b"retry: %d\n" % milliseconds


def render_id(wire_id: str) -> bytes:
    """Return the field of the next frame that moves the client's cursor."""
    return b"id: %s\n" % wire_id.encode()


def render_control(control: ControlFrame, *, named: bool = True) -> bytes:
    """Return a frame about the stream itself."""
    data = b"data: %s\n\n" % msgspec.json.encode(control)
    return b"event: %s\n%s" % (control.name.encode(), data) if named else data


class RenderedBatch(NamedTuple):
    """A batch in chunks of about `MAX_WRITE_BYTES`.

    Attributes:
        chunks: The encoded chunks.
        only_chunk: The bytes of all chunks if there is at most one, else None.
        last_position: Position of the last durable event; 0 if there is none.
        last_shown_position: The same, of the events that are sent.
    """

    chunks: Iterable[bytes]
    only_chunk: bytes | None
    last_position: int
    last_shown_position: int


class FrameRenderer:
    """Encodes batches; each named frame is encoded once for all clients."""

    def __init__(self, epoch: str, *, named: bool = True) -> None:
        self.named = named
        self._id_prefix = f"id: {epoch}-".encode()
        empty: tuple[Sequence[StreamItem], RenderedBatch] = ((), RenderedBatch((), b"", 0, 0))
        self._last = {False: empty, True: empty}  # by `debug`

    def render_batch(self, batch: Sequence[StreamItem], *, debug: bool) -> RenderedBatch:
        """Return the encoded batch; debug events are left out unless `debug` is set.

        The last result is cached, because the clients of one buffer get the same frames one after
        the other. A large batch is not cached but encoded chunk by chunk.
        """
        last, rendered = self._last[debug]
        if batch is last or batch == last:
            return rendered
        shown = batch if debug else _without_debug(batch)
        positions = _last_position(batch), _last_position(shown)
        if _is_large(shown):
            return RenderedBatch(self._chunks(shown), None, *positions)
        body = b"".join([self._render(item) for item in shown])
        chunk = encode_chunk(body) if body else b""
        rendered = RenderedBatch((chunk,) if chunk else (), chunk, *positions)
        self._last[debug] = batch, rendered
        return rendered

    def _chunks(self, shown: Iterable[StreamItem]) -> Generator[bytes]:
        """Encode items that usually only one client reads: frames are not cached, copied once."""
        frames: list[bytes] = []
        size = 0
        for item in shown:
            frame = self._frame(item)
            length = len(frame)
            if size and size + length > MAX_WRITE_BYTES:
                yield _join_chunk(frames, size)
                frames.clear()
                size = 0
            frames.append(frame)
            size += length
        yield _join_chunk(frames, size)

    def _render(self, item: StreamItem) -> bytes:
        """Return the frame of an item, and keep it for other clients."""
        frame = self._frame(item)
        if self.named and isinstance(item, EventRecord):
            item.rendered = frame
        return frame

    def _frame(self, item: StreamItem) -> bytes:
        if not isinstance(item, EventRecord):
            return render_control(item, named=self.named)
        if self.named and item.rendered is not None:
            return item.rendered
        line = _event_line(item.event) if self.named else b"\ndata: "
        if item.position:
            return b"".join((self._id_prefix, b"%d" % item.position, line, item.json, b"\n\n"))
        return b"%s%s\n\n" % (line[1:], item.json)


class LiveFrames:
    """Encodes live events for all streams that show the same ones: a `LiveEncoder`.

    Attributes:
        last_position: Position of the last durable event that was encoded; 0 if there is none.
        last_shown_position: The same, of the events that are sent.
    """

    def __init__(self, renderer: FrameRenderer, *, debug: bool) -> None:
        self._renderer = renderer
        self._debug = debug
        self.last_position = 0
        self.last_shown_position = 0

    def encode(self, events: Sequence[EventRecord]) -> bytes | None:
        """Return one encoded chunk; None if the events take more than one."""
        rendered = self._renderer.render_batch(events, debug=self._debug)
        if rendered.only_chunk is not None:
            self.last_position = rendered.last_position or self.last_position
            self.last_shown_position = rendered.last_shown_position or self.last_shown_position
        return rendered.only_chunk


@cache
def _event_line(event: str) -> bytes:
    """Return the line between the id and the data of an event."""
    return b"\nevent: %s\ndata: " % event.encode()


def _is_large(items: Iterable[StreamItem]) -> bool:
    size = 0
    for item in items:
        if isinstance(item, EventRecord):
            size += len(item.json)
            if size > MAX_WRITE_BYTES:
                return True
    return False


def _without_debug(batch: Iterable[StreamItem]) -> list[StreamItem]:
    return [
        item
        for item in batch
        if not isinstance(item, EventRecord) or item.event not in INNER_EVENTS
    ]


def _last_position(batch: Sequence[StreamItem]) -> int:
    positions = (item.position for item in reversed(batch) if isinstance(item, EventRecord))
    return next(filter(None, positions), 0)
