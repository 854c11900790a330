"""Load generators: cheap clients of a gateway that record arrival times."""

import asyncio
import json
import re
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")

_FRAME = re.compile(
    rb"event: workflow\.(node\.output\.delta|result\.final|result\.cancelled)\n"
    rb'data: ([^\n]*?"run_id":"([^"]+)"[^\n]*)\n'
)
_FINAL = b'"stop_reason":"final_answer"'


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run work on the loop that the gateway uses as well."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work())


class Line:
    """A connection that is kept, and opened anew when the server has closed it meanwhile."""

    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._head = (
            f"HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n"
            "content-type: application/json\r\n"
        )

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def _ask(self, path: str, body: bytes) -> None:
        if self._reader.at_eof():
            self.close()
            await self.open()
        head = f"POST {path} {self._head}content-length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)

    async def submit(self, task: str, session: object = None, **options: object) -> str:
        """Hand a task in; return the id of its run once it is on disk."""
        return (await self.create(task, session, **options))["run_id"]

    async def create(self, task: str, session: object = None, **options: object) -> dict[str, str]:
        """Create a task; return the gateway's response, sent once the task is on disk."""
        given: dict[str, object] = {"task": task, "options": options}
        if session is not None:
            given["session_id"] = session
        await self._ask("/api/tasks", json.dumps(given).encode())
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        assert length is not None, head
        body = await self._reader.readexactly(int(length[1]))
        assert head.startswith(b"HTTP/1.1 201"), body
        created: dict[str, str] = json.loads(body)
        return created

    async def talk(self, path: str, body: bytes) -> tuple[float, int]:
        """Post, and read a chunked answer to its end; return when its first delta came."""
        await self._ask(path, body)
        await self._reader.readuntil(b"\r\n\r\n")
        first, size = 0.0, 0
        while length := int(await self._reader.readuntil(b"\r\n"), 16):
            chunk = await self._reader.readexactly(length + 2)
            size += length
            if not first and b"_delta" in chunk:
                first = time.perf_counter()
        await self._reader.readexactly(2)
        return first, size

    def close(self) -> None:
        self._writer.transport.abort()


@asynccontextmanager
async def line(port: int, token: str = "") -> AsyncGenerator[Line]:
    opened = Line(port, token)
    await opened.open()
    try:
        yield opened
    finally:
        opened.close()


class Watch(asyncio.Protocol):
    """One event stream over all sessions that notes the first text and the end of each run."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.first: dict[bytes, float] = {}
        self.ended: defaultdict[bytes, asyncio.Future[float]] = defaultdict(loop.create_future)
        self.live = loop.create_future()
        self._held = b""

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        whole, _, self._held = (self._held + data).rpartition(b"\n\n")
        if not self.live.done() and b"event: replay.done" in whole:
            self.live.set_result(None)
        for event, frame, run_id in _FRAME.findall(whole + b"\n\n"):
            if event == b"node.output.delta":
                self.first.setdefault(run_id, now)
            elif event == b"result.final" and _FINAL in frame:
                self.ended[run_id].set_result(now)
            else:
                self.ended[run_id].set_exception(AssertionError(frame))


@asynccontextmanager
async def watching(port: int, token: str) -> AsyncGenerator[Watch]:
    """Watch all events from now on."""
    transport, watch = await asyncio.get_running_loop().create_connection(Watch, "127.0.0.1", port)
    transport.write(
        f"GET /api/sse?sessions=*&replay=none HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
        f"authorization: Bearer {token}\r\n\r\n".encode()
    )
    try:
        async with asyncio.timeout(10):
            await watch.live
        yield watch
    finally:
        transport.abort()


class Taken:
    """Times of a flood in seconds: wall time, and each message's time to first delta and to end."""

    def __init__(self) -> None:
        self.wall = 0.0
        self.first: list[float] = []
        self.whole: list[float] = []


async def flood(
    port: int,
    token: str,
    task: str,
    *,
    count: int,
    at_once: int,
    kept: bool = False,
    **options: object,
) -> Taken:
    """Hand `count` tasks in, `at_once` under way, and watch each.

    Each has a session of its own; with `kept` there are only as many as are under way.
    """
    taken, left = Taken(), iter(range(count))

    async def work(watch: Watch) -> None:
        async with line(port, token) as mine:
            session = None
            for _ in left:
                begun = time.perf_counter()
                made = await mine.create(task, session, **options)
                run_id, session = made["run_id"].encode(), made["session_id"] if kept else None
                end = await watch.ended[run_id]
                if run_id in watch.first:
                    taken.first.append(watch.first[run_id] - begun)
                taken.whole.append(end - begun)

    async with watching(port, token) as watch:
        begun = time.perf_counter()
        async with asyncio.TaskGroup() as workers:
            for _ in range(at_once):
                workers.create_task(work(watch))
        taken.wall = time.perf_counter() - begun
    return taken


async def bare_flood(port: int, path: str, body: bytes, *, count: int, at_once: int) -> Taken:
    """The same against a server that streams its answer to the caller."""
    taken, left = Taken(), iter(range(count))

    async def work() -> None:
        async with line(port) as mine:
            for _ in left:
                begun = time.perf_counter()
                first, size = await mine.talk(path, body)
                assert size, "an empty answer"
                taken.first.append(first - begun)
                taken.whole.append(time.perf_counter() - begun)

    begun = time.perf_counter()
    async with asyncio.TaskGroup() as workers:
        for _ in range(at_once):
            workers.create_task(work())
    taken.wall = time.perf_counter() - begun
    return taken
