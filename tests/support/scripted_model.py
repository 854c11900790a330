"""Scripted model servers: the part shared by all wire formats.

In process::

    async with ScriptedAnthropic([Reply(text="hello")]) as server:
        ...  # server.base_url, server.requests, await server.until_open(1)

As a process: ``python -m tests.support.anthropic_server --port 0 --script FILE.json`` prints its
address as one line. FILE holds a list of replies. Each may have a ``when``; the first reply whose
``when`` matches answers, and nothing is consumed, so that a resumed run that repeats a request gets
the same reply, byte for byte, also from a restarted server. ``GET /_fake`` returns the received
requests, ``POST /_fake/release/NAME`` releases replies that wait for this ``hold``.

A script is a list of replies used up in order, `Rules`, or a function of the parsed request.
"""

import argparse
import asyncio
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Literal, Protocol, Self

import msgspec

encode = msgspec.json.Encoder().encode
_REASONS = {200: "OK", 529: "Overloaded"}


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call of a reply. `raw` is sent as the argument text instead of `input`.

    `opaque` are more fields of the call, in Chat Completions.
    """

    name: str
    input: dict[str, Any] = {}
    raw: str | None = None
    id: str | None = None
    opaque: dict[str, Any] = {}


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fault that replaces or interrupts a reply.

    - `status`: an error response with `status`, `error`, `message`, `retry_after`, `location`, or
      with `body` as it stands.
    - `error_in_stream` (`overloaded_in_stream`): a 200 whose stream has an error after
      `after_pieces` deltas.
    - `cut_after_bytes`: the stream ends after `bytes`; with `clean`, as if that were all of it.
    - `garbage`: a 200 with `body` (or noise) instead of the stream.
    - `garbage_in_stream`: `body` (or noise) that breaks the framing of the connection after
      `after_pieces` deltas; the connection stays open.
    - `drop`: the connection closes without an answer.

    It applies to the first `times` requests that its reply would have answered, and to all of them
    if None. In a list, a fault without `times` applies once and uses the reply up.
    """

    kind: Literal[
        "status",
        "error_in_stream",
        "overloaded_in_stream",
        "cut_after_bytes",
        "garbage",
        "garbage_in_stream",
        "drop",
    ]
    status: int = 529
    error: str | None = None
    message: str = "Overloaded"
    retry_after: float | None = None
    location: str | None = None
    after_pieces: int = 0
    bytes: int = 0
    clean: bool = False
    body: str | None = None
    content_type: str = "text/event-stream; charset=utf-8"
    times: int | None = None


class When(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Condition of a rule.

    `last_user` is part of the last user message with text and without results, `results` the number
    of tool results after that message, `all_results` the number in the whole request, `last_result`
    part of the last tool result, `last_text` part of the very last text, `model` the model's name.
    """

    last_user: str | None = None
    results: int | None = None
    all_results: int | None = None
    last_result: str | None = None
    last_text: str | None = None
    model: str | None = None

    def fits(self, seen: "Seen") -> bool:
        return (
            (self.last_user is None or self.last_user in seen.last_user)
            and (self.results is None or self.results == seen.results)
            and (self.all_results is None or self.all_results == seen.all_results)
            and (self.last_result is None or self.last_result in seen.last_result)
            and (self.last_text is None or self.last_text in seen.last_text)
            and (self.model is None or self.model == seen.model)
        )


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One reply. `thinking=""` is thinking whose text is withheld: only its signature is sent.

    `delay_seconds`, `hang` (until the client closes) and `hold` (until released by that name) come
    before the first byte, or after `after_pieces` text deltas. `packets`: the stream in one write,
    or one write per event. `chunks`: sizes in bytes, repeated, to cut the stream into. `times` is
    how many requests of a list it answers. `quirks` are ways in which servers of one wire format
    differ; the server that knows them says which there are. `opaque` are more fields of the
    message, in Chat Completions.
    """

    text: str = ""
    pieces: int = 1
    thinking: str | None = None
    redacted: str | None = None
    calls: list[Call] = []
    usage: dict[str, int] = {}
    stop_reason: str | None = None
    delay_seconds: float = 0.0
    hang: bool = False
    hold: str | None = None
    after_pieces: int | None = None
    packets: Literal["burst", "each"] = "burst"
    chunks: list[int] = []
    crlf: bool = False
    fault: Fault | None = None
    times: int = 1
    quirks: list[str] = []
    opaque: dict[str, Any] = {}
    when: When | None = None


class Rules(msgspec.Struct, frozen=True):
    """Replies chosen by their `when`, never used up."""

    replies: list[Reply]


Script = Sequence[Reply] | Rules | Callable[[dict[str, Any]], Reply]


class Seen(msgspec.Struct, frozen=True):
    """Values of one request that rules compare with."""

    last_user: str = ""
    results: int = 0
    all_results: int = 0
    last_result: str = ""
    last_text: str = ""
    model: str = ""


class Refusal(Exception):
    """The API's answer to a request that it will not take."""

    def __init__(self, status: int, message: str, error: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.error = error


def need(condition: object, message: str) -> None:
    """Refuse the request unless the condition holds."""
    if not condition:
        raise Refusal(400, message)


class Answer(Protocol):
    """A reply to one request, in the shapes in which the API gives it."""

    reply: Reply

    def events(self) -> list[bytes]:
        """Return the events of the stream, encoded."""
        ...

    def whole(self) -> bytes:
        """Return the reply as one JSON body."""
        ...


def pieces_of(text: str, count: int) -> list[str]:
    """Return the text in `count` pieces of about one length (fewer when it is shorter)."""
    count = max(1, min(count, len(text)))
    size, rest = divmod(len(text), count)
    pieces, start = [], 0
    for n in range(count):
        end = start + size + (n < rest)
        pieces.append(text[start:end])
        start = end
    return pieces


def after_deltas(events: Sequence[bytes], count: int, mark: bytes) -> int:
    """Return how many events to send so that `count` text deltas are among them."""
    seen = 0
    for n, event in enumerate(events):
        if seen == count and n:
            return n
        seen += mark in event
    return len(events)


class ScriptedServer(ABC):
    """The server. Use it as an async context manager; leaving it closes every connection."""

    path: ClassVar[str]
    id_header: ClassVar[str]
    delta_mark: ClassVar[bytes]
    """Bytes that occur only in the event of a text delta."""

    @abstractmethod
    def check(self, headers: Mapping[str, str], body: Any, api_key: str | None) -> None:
        """Raise Refusal where the real API would refuse."""

    @abstractmethod
    def seen(self, body: Mapping[str, Any]) -> Seen:
        """Return the values of a request that rules compare with."""

    @abstractmethod
    def answer(self, reply: Reply, body: Mapping[str, Any], raw: bytes) -> Answer:
        """Return the reply in the API's shapes."""

    @abstractmethod
    def error(self, status: int, message: str, kind: str | None) -> dict[str, Any]:
        """Return the body of an error; `kind` is its type, that of the status when None."""

    @abstractmethod
    def error_event(self, kind: str | None, message: str) -> bytes:
        """Return an error as it comes inside a stream."""

    def __init__(
        self, script: Script = (), *, port: int = 0, api_key: str | None = None, record: bool = True
    ) -> None:
        self.requests: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.count = 0
        self.connections = 0
        self.open_requests = 0
        self.busy = asyncio.Event()
        self._script = script
        self._queue = deque(script) if isinstance(script, Sequence) else deque[Reply]()
        self._port, self._api_key, self._record = port, api_key, record
        self._struck: dict[int, tuple[Fault, int]] = {}  # the fault too: an id outlives nothing
        self._released: dict[str, asyncio.Event] = {}
        self._changed = asyncio.Condition()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def add(self, *replies: Reply) -> None:
        """Append replies to a list script."""
        self._queue.extend(replies)

    def release(self, name: str) -> None:
        """Let every reply go, now and later, that holds for `name`."""
        self._released.setdefault(name, asyncio.Event()).set()

    async def until_open(self, count: int) -> None:
        """Return as soon as exactly `count` requests are being answered."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.open_requests == count)

    async def until_asked(self, count: int) -> None:
        """Return as soon as at least `count` requests have come."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.count >= count)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self._port, limit=64 * 1024 * 1024
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        async with self._changed:
            await self._changed.wait_for(lambda: not self._writers)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        self.connections += 1
        try:
            while (request := await _read_request(reader)) is not None:
                if not await self._route(request, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left: that is one of the things being tested
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            async with self._changed:
                self._writers.discard(writer)
                self._changed.notify_all()

    async def _route(
        self, request: "_Request", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        if request.path.startswith("/_fake"):
            writer.write(self._control(request))
            await writer.drain()
            return True
        if (request.method, request.path) != ("POST", self.path):
            writer.write(self._error(404, "Not found", None))
            await writer.drain()
            return True
        async with self._counted():
            return await self._asked(request, reader, writer)

    def _control(self, request: "_Request") -> bytes:
        if request.method == "POST":
            self.release(request.path.rpartition("/")[2])
        state = {"count": self.count, "open": self.open_requests, "requests": self.requests}
        return self._response(200, encode(state), "application/json")

    def _counted(self) -> "_Counted":
        return _Counted(self._count)

    async def _count(self, step: int) -> None:
        async with self._changed:
            self.open_requests += step
            self.count += step > 0
            (self.busy.set if self.open_requests else self.busy.clear)()
            self._changed.notify_all()

    async def _asked(
        self, request: "_Request", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        try:
            try:
                body = msgspec.json.decode(request.body)
            except msgspec.DecodeError as error:
                raise Refusal(400, f"The request body is not valid JSON: {error}") from None
            self.check(request.headers, body, self._api_key)
            if self._record:
                self.requests.append(body)
                self.bodies.append(request.body)
                self.headers.append(request.headers)
            reply, struck = self._choose(body)
        except Refusal as error:
            writer.write(self._error(error.status, str(error), error.error))
            await writer.drain()
            return True
        if reply.after_pieces is None and not await self._wait(reply, reader):
            return False
        answer = self.answer(reply, body, request.body)
        fault = reply.fault if struck else None
        if fault is not None and fault.kind in {"status", "drop", "garbage"}:
            return await self._fail(fault, writer)
        if not body.get("stream"):
            writer.write(self._response(200, answer.whole(), "application/json"))
            await writer.drain()
            return True
        writer.write(self._stream_head())
        return await self._stream(answer, fault, reader, writer)

    def _choose(self, body: dict[str, Any]) -> tuple[Reply, bool]:
        if callable(self._script):
            reply = self._script(body)
            return reply, reply.fault is not None
        if isinstance(self._script, Rules):
            seen = self.seen(body)
            for reply in self._script.replies:
                if reply.when is None or reply.when.fits(seen):
                    return reply, self._strikes(reply)
            raise Refusal(400, "the script has no reply for this request")
        if not self._queue:
            raise Refusal(400, "the script has no more replies")
        reply = self._queue[0]
        struck = self._strikes(reply)
        if struck and reply.fault is not None and reply.fault.times is not None:
            return reply, True
        self._queue.popleft()
        if reply.times > 1:
            self._queue.appendleft(msgspec.structs.replace(reply, times=reply.times - 1))
        return reply, struck

    def _strikes(self, reply: Reply) -> bool:
        if reply.fault is None:
            return False
        if reply.fault.times is None:
            return True
        _, strikes = self._struck.get(id(reply.fault), (reply.fault, 0))
        self._struck[id(reply.fault)] = (reply.fault, strikes + 1)
        return strikes < reply.fault.times

    async def _wait(self, reply: Reply, reader: asyncio.StreamReader) -> bool:
        """Wait as the reply says. Return False when the client left meanwhile."""
        if reply.delay_seconds:
            await asyncio.sleep(reply.delay_seconds)
        if reply.hang:
            return bool(await reader.read(1))
        if reply.hold is not None:
            released = self._released.setdefault(reply.hold, asyncio.Event())
            return await _first(reader, released)
        return True

    async def _fail(self, fault: Fault, writer: asyncio.StreamWriter) -> bool:
        if fault.kind == "drop":
            writer.transport.abort()
            return False
        if fault.kind == "garbage":
            body = (fault.body or "data: \x00\x01 no protocol {{{\n\n").encode("utf-8", "replace")
            writer.write(self._response(200, body, fault.content_type))
        else:
            extra = [] if fault.retry_after is None else [f"retry-after: {fault.retry_after:g}"]
            extra += [] if fault.location is None else [f"location: {fault.location}"]
            if fault.body is None:
                writer.write(self._error(fault.status, fault.message, fault.error, extra))
            else:
                body = fault.body.encode("utf-8", "replace")
                writer.write(self._response(fault.status, body, fault.content_type, extra))
        await writer.drain()
        return True

    async def _stream(
        self,
        answer: Answer,
        fault: Fault | None,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        reply, events = answer.reply, answer.events()
        if fault is not None and fault.kind in {"error_in_stream", "overloaded_in_stream"}:
            cut = after_deltas(events, fault.after_pieces, self.delta_mark)
            events = [*events[:cut], self.error_event(fault.error, fault.message)]
        if fault is not None and fault.kind == "garbage_in_stream":
            sent = b"".join(events[: after_deltas(events, fault.after_pieces, self.delta_mark)])
            noise = fault.body.encode() if fault.body else b"\xff\xfe\x00 noise\r\n" * 3
            writer.write(_chunk(sent) + noise)
            await writer.drain()
            return bool(await reader.read(1))
        if reply.after_pieces is not None:
            cut = after_deltas(events, reply.after_pieces, self.delta_mark)
            writer.write(_chunk(b"".join(events[:cut])))
            await writer.drain()
            events = events[cut:]
            if not await self._wait(reply, reader):
                return False
        clean = True
        if fault is not None and fault.kind == "cut_after_bytes":
            events, clean = [b"".join(events)[: fault.bytes]], fault.clean
        for packet in _packets(reply, events):
            writer.write(_chunk(packet))
            if reply.packets == "each" or reply.chunks:
                await writer.drain()
                await asyncio.sleep(0)
        if clean:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return clean

    def request_id(self) -> str:
        """Return the id of the newest request."""
        return f"req_{self.count:020d}"

    def _error(
        self, status: int, message: str, kind: str | None, extra: Sequence[str] = ()
    ) -> bytes:
        body = encode(self.error(status, message, kind))
        return self._response(status, body, "application/json", extra)

    def _response(
        self, status: int, body: bytes, content_type: str, extra: Sequence[str] = ()
    ) -> bytes:
        lines = [
            f"HTTP/1.1 {status} {_REASONS.get(status, 'Error')}",
            f"content-type: {content_type}",
            f"content-length: {len(body)}",
            f"{self.id_header}: {self.request_id()}",
            *extra,
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body

    def _stream_head(self) -> bytes:
        return (
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
            f"cache-control: no-cache\r\n{self.id_header}: {self.request_id()}\r\n"
            "transfer-encoding: chunked\r\n\r\n"
        ).encode()


class _Counted:
    """Counts a request until its answer is complete."""

    def __init__(self, count: Callable[[int], Awaitable[None]]) -> None:
        self._count = count

    async def __aenter__(self) -> None:
        await self._count(1)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._count(-1)


class _Request(msgspec.Struct, frozen=True):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


async def _read_request(reader: asyncio.StreamReader) -> _Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")
    method, target, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return _Request(method, target.partition("?")[0], headers, body)


async def _first(reader: asyncio.StreamReader, released: asyncio.Event) -> bool:
    """Wait for the event or for the client to leave; return whether it is still there."""
    left = asyncio.create_task(reader.read(1))
    freed = asyncio.create_task(released.wait())
    try:
        done, _ = await asyncio.wait({left, freed}, return_when=asyncio.FIRST_COMPLETED)
        return freed in done
    finally:
        left.cancel()
        freed.cancel()
        await asyncio.wait({left, freed})  # the reader takes one waiter at a time


def _chunk(payload: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(payload), payload) if payload else b""


def _packets(reply: Reply, events: Sequence[bytes]) -> Iterable[bytes]:
    if reply.chunks:
        whole, start, n = b"".join(events), 0, 0
        while start < len(whole):
            size = max(1, reply.chunks[n % len(reply.chunks)])
            yield whole[start : start + size]
            start, n = start + size, n + 1
    elif reply.packets == "each":
        yield from events
    else:
        yield b"".join(events)


async def _lines() -> AsyncGenerator[bytes, None]:
    """Yield the lines of standard input, so that a closed pipe ends the process with its parent."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield line


async def serve(kind: type[ScriptedServer], about: str | None) -> None:
    """Be a server as a process: print the address as one line, serve until killed."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--api-key", default=None)
    parser.add_argument("--no-record", action="store_true", help="keep no requests (for benches)")
    parser.add_argument("--until-stdin-closes", action="store_true")
    options = parser.parse_args()
    replies = msgspec.json.decode(options.script.read_bytes(), type=list[Reply])
    fake = kind(
        Rules(replies), port=options.port, api_key=options.api_key, record=not options.no_record
    )
    async with fake as server:
        sys.stdout.write(server.base_url + "\n")
        sys.stdout.flush()
        if options.until_stdin_closes:
            async for _ in _lines():
                pass
        else:
            await asyncio.Event().wait()
