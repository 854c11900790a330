"""The door's server: uvicorn inside the program's own loop. The entry owns the signals."""

import asyncio
import contextlib
import errno
import ipaddress
import socket
from collections.abc import Generator
from dataclasses import replace
from typing import NamedTuple

import uvicorn

from internal.channels.web.app import build_app
from internal.channels.web.channel import DoorRefused, WebDoor, WebSettings
from internal.channels.web.event_streams import Streams
from internal.channels.web.http_protocol import Connection
from internal.channels.web.routes.login import one_time_link

GRACE_SECONDS = 3.0
"""How long a stop waits for clients to take what they are owed."""
_BACKLOG = 2048


class Address(NamedTuple):
    """Where the door listens."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """The address as a browser takes it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


class WebServer:
    """Listens at once; serves while `serve` runs.

    Raises:
        DoorRefused: the port is taken, the host is none of this machine's, or it is not loopback.
    """

    def __init__(self, door: WebDoor) -> None:
        self._socket = _listen(door.settings)
        host, port = self._socket.getsockname()[:2]
        self.address = Address(host, port)
        self._settings = replace(door.settings, port=port)
        self._broadcaster = door.broadcaster
        self._ended = asyncio.Event()
        door = self._door = replace(door, settings=self._settings)
        self._streams = Streams(door)
        config = uvicorn.Config(
            build_app(door, self._streams),
            http=Connection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            workers=1,
            backlog=_BACKLOG,
        )
        self._server = _Server(config)

    def link(self) -> str:
        """Return a fresh address that logs one browser in, once, for five minutes."""
        return one_time_link(self._door)

    async def serve(self) -> None:
        """Serve until `stop`. Cancelling it closes the door at once."""
        try:
            async with asyncio.TaskGroup() as tasks:
                keeping = [
                    tasks.create_task(self._sweep()),
                    tasks.create_task(self._streams.keep_alive()),
                ]
                await self._server.serve([self._socket])
                for child in keeping:
                    child.cancel()
        finally:
            self._server.cut()
            self._socket.close()
            self._ended.set()

    async def ready(self) -> None:
        """Wait until requests are answered."""
        await self._server.open.wait()

    async def stop(self) -> None:
        """Accept nothing more, say bye to all streams and wait for the end of `serve`.

        Takes less than 5 s, however many clients do not read.
        """
        self._broadcaster.close()
        self._server.stopping.set()
        if not await self._ends_within(GRACE_SECONDS):
            self._server.cut()
            if not await self._ends_within(GRACE_SECONDS / 3):
                self._server.give_up()
        await self._ended.wait()

    async def _ends_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        return self._ended.is_set()

    async def _sweep(self) -> None:
        """Cut every connection whose client keeps us waiting too long."""
        loop = asyncio.get_running_loop()
        stall, head = self._settings.stall_seconds, self._settings.request_seconds
        while True:
            await asyncio.sleep(min(1.0, stall / 4, head / 4))
            now = loop.time()
            for connection in self._server.lines():
                if connection.stuck(now, stall, head):
                    connection.transport.abort()


class _Server(uvicorn.Server):
    """uvicorn without signals and without a clock of its own."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.servers = []
        self.open = asyncio.Event()
        self.stopping = asyncio.Event()

    def lines(self) -> list[Connection]:
        """Return the open connections."""
        return [one for one in self.server_state.connections if isinstance(one, Connection)]

    def cut(self) -> None:
        """Stop listening and cut every connection; what is under way ends by that."""
        for server in self.servers:
            server.close()
        for line in self.lines():
            line.transport.abort()

    def give_up(self) -> None:
        """End the requests that do not end by themselves."""
        for task in self.server_state.tasks:
            task.cancel()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        self.open.set()

    async def main_loop(self) -> None:
        """Wait for the stop; uvicorn would look ten times a second."""
        await self.stopping.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave the signals alone."""
        yield


def _listen(settings: WebSettings) -> socket.socket:
    host, port = settings.host, settings.port
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise DoorRefused(f"{host} is not an address to listen on: {error.strerror}.") from error
    if not ipaddress.ip_address(where[0]).is_loopback:
        raise DoorRefused(
            f"{host} is not a loopback address; while auth is local only 127.0.0.1, ::1 and"
            " localhost are listened on."
        )
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(where)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise DoorRefused(
                f"Port {port} of {host} is in use; end what listens there, or set server.port."
            ) from error
        raise DoorRefused(f"Cannot listen on {host}:{port}: {error.strerror}.") from error
    listening.setblocking(False)
    return listening
