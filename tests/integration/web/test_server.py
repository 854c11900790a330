"""The server in the program's own loop: where it listens, how it starts and how it ends."""

import asyncio
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.supervision import Supervisor
from internal.channels.web.auth import Logins
from internal.channels.web.server import WebServer
from internal.channels.web.services import WebServerError, WebServices, WebTimeouts
from internal.documents.reader import ChildDocumentReader
from internal.observability.clock import SystemClock
from tests.support.tools import native_sandbox
from tests.support.web_app import (
    TOKEN,
    WebApp,
    defaults,
    open_web_app,
    report_healthy,
    server_settings,
)


def services_for(app: WebApp, folder: Path, token: str = TOKEN, **settings: Any) -> WebServices:
    return WebServices(
        gateway=app.gateway,
        broadcaster=app.broadcaster,
        defaults=defaults(),
        token=lambda: token,
        settings=server_settings(settings),
        health=report_healthy,
        version="1.2.3",
        clock=SystemClock(),
        documents=ChildDocumentReader(native_sandbox(folder)),
        logins=Logins(),
    )


async def test_a_port_in_use_is_reported(tmp_path: Path) -> None:
    async with open_web_app(tmp_path) as app:
        taken = app.server.address.port
        with pytest.raises(WebServerError, match=f"Port {taken} on 127.0.0.1 is already in use"):
            WebServer(services_for(app, tmp_path, port=taken))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])  # noqa: S104 - refused
async def test_hosts_other_than_loopback_are_rejected(tmp_path: Path, host: str) -> None:
    async with open_web_app(tmp_path) as app:
        with pytest.raises(WebServerError, match="not a loopback address"):
            WebServer(services_for(app, tmp_path, host=host))


async def test_an_unknown_host_is_reported(tmp_path: Path) -> None:
    async with open_web_app(tmp_path) as app:
        with pytest.raises(WebServerError, match="Cannot listen on no such host"):
            WebServer(services_for(app, tmp_path, host="no such host"))


@pytest.mark.parametrize("token", ["", " ", "\n"])
async def test_a_blank_token_is_rejected(tmp_path: Path, token: str) -> None:
    async with open_web_app(tmp_path) as app:
        with pytest.raises(WebServerError, match="blank"):
            services_for(app, tmp_path, token)


async def test_a_ready_server_answers_and_installs_no_signal_handlers(
    tmp_path: Path,
) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    async with open_web_app(tmp_path) as app:
        assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
        assert app.server.address.url == f"http://127.0.0.1:{app.server.address.port}"
        assert (await app.client.get("/health")).status == 200
        await app.server.stop()
        with pytest.raises(ConnectionError):
            await app.client.get("/health")


async def test_the_port_can_be_reused_at_once(tmp_path: Path) -> None:
    async with open_web_app(tmp_path) as app:
        port = app.server.address.port
        assert (await app.client.get("/health")).status == 200
    async with open_web_app(tmp_path, port=port) as app:
        assert app.server.address.port == port
        assert (await app.client.get("/health")).status == 200


async def test_the_server_listens_on_ipv6_loopback(tmp_path: Path) -> None:
    async with open_web_app(tmp_path, host="::1") as app:
        port = app.server.address.port
        assert app.server.address.url == f"http://[::1]:{port}"
        sock = socket.socket(socket.AF_INET6)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("::1", port))
        reader, writer = await asyncio.open_connection(sock=sock)
        writer.write(f"GET /health HTTP/1.1\r\nhost: [::1]:{port}\r\n\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_a_cancelled_server_releases_its_port(tmp_path: Path) -> None:
    async with open_web_app(tmp_path) as app:
        server = WebServer(services_for(app, tmp_path))
        serving = asyncio.create_task(server.serve(Supervisor(SystemClock())))
        await server.ready()
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        with pytest.raises(ConnectionError):
            await asyncio.open_connection(*server.address)


async def test_a_request_head_that_does_not_arrive_times_out(tmp_path: Path) -> None:
    async with open_web_app(tmp_path, timeouts=WebTimeouts(request_seconds=0.2)) as app:
        for sent in (b"", b"GET /health HTTP/1.1\r\nhost: "):
            reader, writer = await app.client.connect()
            writer.write(sent)
            assert await reader.read() == b""
            writer.close()
        assert (await app.client.get("/health")).status == 200
