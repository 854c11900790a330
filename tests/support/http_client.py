"""A small HTTP/1.1 client over raw sockets: it sends exactly the bytes of a test, broken or not."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Headers = list[tuple[str, str]]


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, str]:
        """The one shape of errors; fails when the body has another one.

        Those of OpenAI's API have two more members, and so have others with a code of their reason.
        """
        body = self.json()
        assert set(body) == {"error"}, body
        more = {"type", "param"} if "type" in body["error"] else set()
        more |= {"reason_code", "params"} if "reason_code" in body["error"] else set()
        assert set(body["error"]) == {"code", "message", "request_id", *more}, body
        assert body["error"]["message"], body
        error: dict[str, str] = body["error"]
        return error


class SseFrame(NamedTuple):
    id: str
    event: str
    data: str
    raw: bytes

    def json(self) -> Any:
        return json.loads(self.data)


@dataclass
class Frames:
    """Cuts a body into frames as it arrives, like a browser. `retry` is the last one received."""

    body: bytearray = field(default_factory=bytearray)
    retry: int = 0
    last_id: str = ""
    _done: int = 0

    def feed(self, data: bytes) -> list[SseFrame]:
        self.body += data
        frames = []
        while (end := self.body.find(b"\n\n", self._done)) >= 0:
            raw = bytes(self.body[self._done : end + 2])
            self._done = end + 2
            frames.append(self._frame(raw))
        return frames

    def _frame(self, raw: bytes) -> SseFrame:
        fields: dict[str, str] = {}
        for line in raw.decode().removesuffix("\n\n").split("\n"):
            name, _, value = line.partition(": ")
            assert name not in fields, f"two lines of {name}"
            fields[name] = value
        self.retry = int(fields.get("retry", self.retry))
        self.last_id = fields.get("id", self.last_id)
        return SseFrame(fields.get("id", ""), fields.get("event", ""), fields.get("data", ""), raw)


class HttpClient:
    """Talks to one address. Every request has the token unless its headers say otherwise."""

    def __init__(self, host: str, port: int, token: str) -> None:
        self.host, self.port, self.token = host, port, token

    async def connect(
        self, *, receive_buffer: int | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(sock, (self.host, self.port))
        except OSError:
            sock.close()
            raise
        return await asyncio.open_connection(sock=sock, limit=receive_buffer or 65_536)

    def head(
        self, method: str, path: str, headers: Mapping[str, str | None] | None = None
    ) -> bytes:
        """A request's head; a header that is None is left out."""
        all_headers: dict[str, str | None] = {
            "host": f"{self.host}:{self.port}",
            "authorization": f"Bearer {self.token}",
            **(headers or {}),
        }
        lines = [f"{method} {path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in all_headers.items() if value is not None]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> Reply:
        """Send a request and return its answer; `body` is JSON, or bytes as they are."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        given: dict[str, str | None] = {}
        if body is not None:
            given = {"content-type": "application/json", "content-length": str(len(content))}
        head = self.head(method, path, {**given, **(headers or {})})
        return await self.exchange(head + (content if body is not None else b""), method)

    async def get(self, path: str, headers: Mapping[str, str | None] | None = None) -> Reply:
        return await self.request("GET", path, headers=headers)

    async def post(
        self, path: str, body: object = None, headers: Mapping[str, str | None] | None = None
    ) -> Reply:
        return await self.request("POST", path, body, headers)

    async def exchange(self, sent: bytes, method: str = "GET") -> Reply:
        """Send bytes as they are and return the first answer."""
        reader, writer = await self.connect()
        try:
            # beside reading: a server may answer, and close, before it has read everything
            async with asyncio.TaskGroup() as tasks:
                sending = tasks.create_task(_send(writer, sent))
                reply = await read_reply(reader, method)
                sending.cancel()
            return reply
        finally:
            writer.close()

    @asynccontextmanager
    async def stream(
        self,
        query: str,
        headers: Mapping[str, str | None] | None = None,
        *,
        receive_buffer: int | None = None,
    ) -> AsyncGenerator["EventStream"]:
        """Open an event stream; it is cut when the block is left."""
        reader, writer = await self.connect(receive_buffer=receive_buffer)
        try:
            writer.write(self.head("GET", f"/api/sse?{query}", headers))
            status, given = await read_head(reader)
            if status != 200:
                body = await reader.readexactly(int(given["content-length"]))
                raise StreamRefused(Reply(status, given, body))
            yield EventStream(reader, given)
        finally:
            writer.transport.abort()


class StreamRefused(Exception):
    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


class EventStream:
    """Received frames of a stream. `ended`: the server ended it in order."""

    def __init__(self, reader: asyncio.StreamReader, headers: dict[str, str]) -> None:
        self.headers = headers
        self.frames = Frames()
        self.ended = False
        self._reader = reader
        self._ready: list[SseFrame] = []

    async def chunk(self) -> bytes:
        """The next chunk; b"" at the end."""
        line = await self._reader.readline()
        if not line:
            return b""
        size = int(line, 16)
        data = await self._reader.readexactly(size + 2)
        self.ended = size == 0
        return data[:-2]

    async def frame(self) -> SseFrame | None:
        """The next frame; None at the end."""
        while not self._ready:
            data = await self.chunk()
            if not data:
                return None
            self._ready += self.frames.feed(data)
        return self._ready.pop(0)

    async def until(self, event: str) -> list[SseFrame]:
        """All frames up to the next one of this event, with it."""
        frames = []
        while (frame := await self.frame()) is not None:
            frames.append(frame)
            if frame.event == event:
                return frames
        raise AssertionError(f"the stream ended before {event}: {[f.event for f in frames]}")

    async def rest(self) -> list[SseFrame]:
        """All frames up to the end."""
        frames = []
        while (frame := await self.frame()) is not None:
            frames.append(frame)
        return frames


async def _send(writer: asyncio.StreamWriter, sent: bytes) -> None:
    try:
        writer.write(sent)
        await writer.drain()
    except ConnectionError:
        pass  # the answer says why


async def read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers: dict[str, str] = {}
    for line in head[1:-2]:
        name, _, value = line.partition(": ")
        name = name.lower()  # a proxy writes them in its own way
        assert name not in headers or name == "vary", f"two headers {name}"
        headers[name] = value
    return int(head[0].split(" ")[1]), headers


async def read_reply(reader: asyncio.StreamReader, method: str = "GET") -> Reply:
    status, headers = await read_head(reader)
    if method == "HEAD" or status == 204:
        return Reply(status, headers, b"")
    if "content-length" in headers:
        return Reply(status, headers, await reader.readexactly(int(headers["content-length"])))
    stream, body = EventStream(reader, headers), b""
    while data := await stream.chunk():
        body += data
    return Reply(status, headers, body)
