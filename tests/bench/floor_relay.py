"""Baseline: a model's socket, a decoder, an SSE write.

``python -m tests.bench.floor_relay PORT URL``. Protocols on uvloop and nothing between them: each
packet of the model is decoded and its text deltas are written on as events, in one write a packet.
A request's body is the model's request.
"""

import asyncio
import re
import sys
from urllib.parse import urlsplit

import msgspec
import uvloop

_HEALTH = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class Delta(msgspec.Struct):
    text: str = ""


class Event(msgspec.Struct):
    type: str
    delta: Delta | None = None


_decode = msgspec.json.Decoder(Event).decode
_encode = msgspec.json.Encoder().encode


class Model(asyncio.Protocol):
    """The connection to the model of one request."""

    def __init__(self, reader: asyncio.Transport) -> None:
        self._reader = reader
        self._held = b""

    def data_received(self, data: bytes) -> None:
        *lines, self._held = (self._held + data).split(b"\n")
        frames, ended = [], False
        for line in lines:
            if line.startswith(b"data: "):
                event = _decode(line[6:])
                ended = ended or event.type == "message_stop"
                if event.type == "content_block_delta" and event.delta is not None:
                    frames.append(b"event: text_delta\ndata: %s\n\n" % _encode(event.delta))
        if frames:
            joined = b"".join(frames)
            self._reader.write(b"%x\r\n%s\r\n" % (len(joined), joined))
        if ended:
            self._reader.write(b"0\r\n\r\n")


class Reader(asyncio.Protocol):
    """A caller."""

    def __init__(self) -> None:
        self._held = b""
        self._transport: asyncio.Transport
        self._asking: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # TCP
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._held += data
        head, end, body = self._held.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not end or len(body) < (size := int(length[1]) if length else 0):
            return
        self._held = b""
        if head.startswith(b"GET"):
            self._transport.write(_HEALTH)
        else:
            self._transport.write(_HEAD)
            self._asking = asyncio.get_running_loop().create_task(self._ask(body[:size]))

    async def _ask(self, body: bytes) -> None:
        url = urlsplit(sys.argv[2])
        transport, _ = await asyncio.get_running_loop().create_connection(
            lambda: Model(self._transport), url.hostname or "", url.port or 0
        )
        head = f"POST /v1/messages HTTP/1.1\r\nhost: model\r\ncontent-length: {len(body)}\r\n\r\n"
        transport.write(head.encode() + body)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(
        Reader, "127.0.0.1", int(sys.argv[1]), backlog=512
    )
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
