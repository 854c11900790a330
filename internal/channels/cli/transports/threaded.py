"""The HTTP transport of sessions: requests run in threads and never block the event loop."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Literal, TypeVar

from internal.channels.cli.transports.http import HttpEndpoint
from internal.channels.cli.transports.interface import (
    RefusedStream,
    Response,
    Unreachable,
    Upload,
)

T = TypeVar("T")


class ThreadedHttpTransport:
    """Speaks to the gateway that `find` returns; see `HttpTransport`."""

    via: Literal["gateway", "process"] = "gateway"

    def __init__(self, endpoint: HttpEndpoint, find: Callable[[], HttpEndpoint | None]) -> None:
        self._endpoint = endpoint
        self._find = find
        self._started: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        """The gateway's URL."""
        return self._endpoint.url

    async def request(self, method: str, path: str, body: bytes | Upload | None = None) -> Response:
        """Send a request."""
        return await in_thread(partial(self._endpoint.request, method, path, body))

    async def stream(self, path: str, last_id: str | None = None) -> AsyncGenerator[bytes]:
        """Yield the bytes of a response."""
        received: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        reader = _StreamReader(self._endpoint, received)
        threading.Thread(target=reader.read, args=(path, last_id), daemon=True).start()
        try:
            while (piece := await received.get()) is not None:
                if isinstance(piece, Exception):
                    raise piece
                yield piece
        finally:
            reader.closed = True

    async def reconnect(self) -> bool:
        """Look up the gateway's current address."""
        found = await in_thread(self._find)
        self._endpoint = self._endpoint if found is None else found
        return await in_thread(self._endpoint.answers)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def run_blocking(self, work: Callable[[], None]) -> None:
        """Run the work in a thread."""
        await in_thread(work)

    def start_from_signal(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start the work in the event loop."""
        asyncio.get_running_loop().call_soon_threadsafe(self._start, work)

    async def adopt(self, run_id: str) -> bool:  # noqa: ARG002 - as in Transport
        """Return False: the gateway executes all runs."""
        return False

    def _start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = asyncio.get_running_loop().create_task(work())
        self._started.add(task)
        task.add_done_callback(self._started.discard)


class _StreamReader:
    """Reads one stream in a thread. After `closed` is set it ends with the next chunk."""

    def __init__(
        self, endpoint: HttpEndpoint, received: asyncio.Queue[bytes | Exception | None]
    ) -> None:
        self.closed = False
        self._endpoint = endpoint
        self._received = received
        self._loop = asyncio.get_running_loop()

    def read(self, path: str, last_id: str | None) -> None:
        """Pass on all chunks, then None or the error that ended the stream."""
        end: Exception | None = None
        try:
            for piece in self._endpoint.stream(path, last_id):
                if self.closed:
                    return
                self._put(piece)
        except (Unreachable, RefusedStream) as error:
            end = error
        self._put(end)

    def _put(self, piece: bytes | Exception | None) -> None:
        with suppress(RuntimeError):  # the loop is closed: the session has ended
            self._loop.call_soon_threadsafe(self._received.put_nowait, piece)


async def in_thread(work: Callable[[], T]) -> T:
    """Run blocking work in a daemon thread, which does not keep the process from exiting."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(settled: Callable[[], None]) -> None:
        if not done.done():
            settled()

    def run() -> None:
        with suppress(RuntimeError):  # the loop is closed: there is no waiting task
            try:
                settled = partial(done.set_result, work())
            except Exception as error:  # noqa: BLE001 - raised again where it is awaited
                settled = partial(done.set_exception, error)
            loop.call_soon_threadsafe(settle, settled)

    threading.Thread(target=run, daemon=True).start()
    return await done
