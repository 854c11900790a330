"""The web server: uvicorn in the application's own event loop, without signal handling."""

import asyncio
import contextlib
import errno
import socket
from collections.abc import Generator, Sequence
from typing import NamedTuple

import uvicorn
from msgspec.structs import replace

from internal.agent.app.background_task import background_task
from internal.agent.app.supervision import Supervisor
from internal.channels.web.app import build_app
from internal.channels.web.endpoints import Endpoint
from internal.channels.web.event_streams import EventStreams
from internal.channels.web.http_protocol import HttpConnection, OpenConnections, max_connections
from internal.channels.web.routes.login import one_time_link
from internal.channels.web.routes.table import ROUTES
from internal.channels.web.services import WebServerError, WebServices
from internal.normal_forms.addresses import is_loopback
from internal.settings.server import ServerSettings

GRACE_SECONDS = 3.0
"""Longest wait of a stop for clients to read their responses."""
_BACKLOG = 256
"""Number of connections that can be accepted before the first of them is counted."""


class Address(NamedTuple):
    """The address that the server listens on."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """The address as a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


class WebServer:
    """Binds its socket when created; serves while `serve` runs.

    Args:
        routes: the endpoints that it serves.
        port_key: the setting of its port, which is named if the port is in use.

    Raises:
        WebServerError: The port is in use, or the host is unknown or not a loopback address.
    """

    def __init__(
        self,
        services: WebServices,
        routes: Sequence[Endpoint] = ROUTES,
        *,
        port_key: str = "server.port",
    ) -> None:
        self._socket = _listen(services.settings, port_key)
        host, port = self._socket.getsockname()[:2]
        self.address = Address(host, port)
        settings = services.settings.model_copy(update={"port": port})
        self._services = replace(services, settings=settings)
        self._stopped = asyncio.Event()
        self._streams = EventStreams(self._services)
        config = uvicorn.Config(
            build_app(self._services, self._streams, routes),
            http=HttpConnection,
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
        self._server = _UvicornServer(config)

    def link(self) -> str:
        """Return a new URL that logs in one browser, once, within five minutes."""
        return one_time_link(self._services)

    async def serve(self, supervisor: Supervisor) -> None:
        """Serve until `stop`. When cancelled, close all connections at once."""
        timeouts = self._services.timeouts
        interval = min(1.0, timeouts.stall_seconds / 4, timeouts.head_seconds / 4)
        close_stalled = supervisor.repeat(
            "stalled connections", self._close_stalled_connections, interval=interval
        )
        try:
            async with (
                background_task(close_stalled),
                background_task(self._streams.keep_alive(supervisor)),
            ):
                await self._server.serve([self._socket])
        finally:
            self._server.abort_connections()
            self._socket.close()
            self._stopped.set()

    async def ready(self) -> None:
        """Wait until requests are answered."""
        await self._server.started_event.wait()

    async def stop(self) -> None:
        """Stop accepting connections, end all streams with `bye` and wait until `serve` returns.

        Takes less than 5 s, also with clients that do not read.
        """
        self._services.broadcaster.close()
        self._server.stop_event.set()
        if not await self._is_stopped_within(GRACE_SECONDS):
            self._server.abort_connections()
            if not await self._is_stopped_within(GRACE_SECONDS / 3):
                self._server.cancel_requests()
        await self._stopped.wait()

    async def _is_stopped_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopped.wait()
        return self._stopped.is_set()

    async def _close_stalled_connections(self) -> None:
        now, timeouts = asyncio.get_running_loop().time(), self._services.timeouts
        stall_seconds, head_seconds = timeouts.stall_seconds, timeouts.head_seconds
        for connection in self._server.connections():
            if connection.is_stalled(now, stall_seconds=stall_seconds, head_seconds=head_seconds):
                connection.transport.abort()


class _UvicornServer(uvicorn.Server):
    """uvicorn without signal handlers and without its polling main loop."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.servers = []
        self.server_state = OpenConnections(max_connections())
        self.started_event = asyncio.Event()
        self.stop_event = asyncio.Event()

    def connections(self) -> list[HttpConnection]:
        """Return the open connections."""
        return [
            connection
            for connection in self.server_state.connections
            if isinstance(connection, HttpConnection)
        ]

    def abort_connections(self) -> None:
        """Stop listening and abort every connection, which ends the requests on them."""
        for server in self.servers:
            server.close()
        for connection in self.connections():
            connection.transport.abort()

    def cancel_requests(self) -> None:
        """Cancel the tasks of all requests."""
        for task in self.server_state.tasks:
            task.cancel()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen and set `started_event`."""
        await super().startup(sockets)
        self.started_event.set()

    async def main_loop(self) -> None:
        """Wait for `stop_event`; uvicorn would poll ten times a second."""
        await self.stop_event.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Install no signal handlers."""
        yield


def _advice(port_key: str) -> str:
    option = " with --port, or for good" if port_key == "server.port" else ""
    return f"choose another port{option} with the setting {port_key}"


def _listen(settings: ServerSettings, port_key: str) -> socket.socket:
    host, port = settings.host, settings.port
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise WebServerError(f"Cannot listen on {host}: {error.strerror}.") from error
    if not is_loopback(str(address[0])):
        raise WebServerError(
            f"{host} is not a loopback address. server.host must be 127.0.0.1, ::1 or localhost."
        )
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise WebServerError(
                f"Port {port} on {host} is already in use. Stop the other program or"
                f" {_advice(port_key)}."
            ) from error
        raise WebServerError(f"Cannot listen on {host}:{port}: {error.strerror}.") from error
    listener.setblocking(False)
    return listener
