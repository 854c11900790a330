"""The server in the program's own loop: where it listens, how it starts and how it ends."""

import asyncio
import json
import signal
import socket
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.supervision import Supervisor
from internal.channels.web.auth import Logins
from internal.channels.web.http_protocol import MAX_WITHOUT_LOGIN
from internal.channels.web.server import WebServer
from internal.channels.web.services import WebServerError, WebServices, WebTimeouts
from internal.documents.reader import ChildDocumentReader
from internal.observability.clock import SystemClock
from tests.support.http_client import read_reply
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


@pytest.mark.parametrize("cut", [0, 60, 260, -5], ids=str)
async def test_a_request_that_offers_another_protocol_keeps_its_body(
    tmp_path: Path, cut: int
) -> None:
    body = json.dumps({"task": "write a report"}).encode()
    offered = {
        "connection": "Upgrade, HTTP2-Settings",
        "upgrade": "h2c",
        "http2-settings": "AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
        "content-type": "application/json",
        "content-length": str(len(body)),
    }
    async with open_web_app(tmp_path) as app:
        reader, writer = await app.client.connect()
        sent = app.client.head("POST", "/api/tasks", offered) + body
        for part in (sent[:cut], sent[cut:]):
            writer.write(part)
            await writer.drain()
        assert (await read_reply(reader)).status == 201
        writer.write(app.client.head("GET", "/api/me"))
        assert (await read_reply(reader)).status == 200
        writer.close()


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
    async with open_web_app(tmp_path, timeouts=WebTimeouts(head_seconds=0.2)) as app:
        for sent in (b"", b"GET /health HTTP/1.1\r\nhost: "):
            reader, writer = await app.client.connect()
            writer.write(sent)
            assert await reader.read() == b""
            writer.close()
        assert (await app.client.get("/health")).status == 200


async def test_connections_without_a_login_are_few_and_those_with_one_stay(tmp_path: Path) -> None:
    async with open_web_app(tmp_path) as app, AsyncExitStack() as opened:
        stream = await opened.enter_async_context(app.client.stream("sessions=*&replay=none"))
        asked = [await app.client.connect() for _ in range(2)]
        for (_, writer), headers in zip(asked, ({}, {"authorization": None}), strict=True):
            opened.callback(writer.close)
            writer.write(app.client.head("GET", "/health", headers))
        for reader, _ in asked:
            assert (await read_reply(reader)).status == 200
        silent = []
        for _ in range(MAX_WITHOUT_LOGIN + 10):
            silent.append(await app.client.connect())
            opened.callback(silent[-1][1].close)
        assert (await app.client.get("/health")).status == 200
        for reader, _ in silent[:9]:
            assert await reader.read() == b"", "the oldest are closed"
        assert await asked[1][0].read() == b"", "it has no login"
        asked[0][1].write(app.client.head("GET", "/api/me"))
        assert (await read_reply(asked[0][0])).status == 200
        app.broadcaster.close()
        assert (await stream.rest())[-1].event == "bye"


async def test_a_connection_that_is_answered_outlives_silent_ones(tmp_path: Path) -> None:
    async with open_web_app(tmp_path) as app, AsyncExitStack() as opened:
        head = {"content-type": "application/json", "content-length": "11", "authorization": None}
        reader, writer = await app.client.connect()
        opened.callback(writer.close)
        writer.write(app.client.head("POST", "/api/login", head))
        for _ in range(2 * MAX_WITHOUT_LOGIN):
            opened.callback((await app.client.connect())[1].close)
        writer.write(b'{"code":""}')
        assert (await read_reply(reader)).status == 403


async def test_the_body_of_a_request_without_a_login_arrives_within_seconds(
    tmp_path: Path,
) -> None:
    async with open_web_app(tmp_path, timeouts=WebTimeouts(head_seconds=0.2)) as app:
        head = {"content-type": "application/json", "content-length": "11", "authorization": None}
        reply = await app.client.exchange(app.client.head("POST", "/api/login", head))
        assert (reply.status, reply.error["code"]) == (408, "timeout")
