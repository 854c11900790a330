"""Connections that are kept, closed meanwhile, or refused, and redirects."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest

from internal.egress.messages import SessionRequest, SessionResponse, quoted_url
from internal.egress.policy import EgressPolicy
from internal.egress.proxies import Proxies
from internal.egress.session import HttpSession
from tests.support.connect_proxy import open_connect_proxy
from tests.support.raw_server import CLOSE, raw_server, response

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


@asynccontextmanager
async def open_session(proxy: str = "") -> AsyncGenerator[HttpSession]:
    policy = EgressPolicy(ssl.create_default_context(), Proxies({"all": proxy}))
    session = HttpSession(policy, keepalive_seconds=30.0)
    try:
        async with asyncio.timeout(20):
            yield session
    finally:
        await session.close()


async def fetch(session: HttpSession, port: int, method: str = "POST") -> SessionResponse:
    url = quoted_url(f"http://127.0.0.1:{port}/a%2Fb?q=c%20d+e")
    body = b"{}" if method.startswith("P") else None
    return await session.fetch(SessionRequest(method, url, {"x-a": "b"}, body))


@pytest.mark.parametrize("method", METHODS)
async def test_a_connection_is_kept_and_a_url_is_sent_as_it_is(method: str) -> None:
    async with raw_server(response()) as server, open_session() as session:
        for _ in range(3):
            assert (await fetch(session, server.port, method)).body == b"ok"
        assert server.connections == 1
    line = f"{method} /a%2Fb?q=c%20d+e HTTP/1.1\r\n".encode()
    assert all(request.startswith(line) for request in server.requests)


@pytest.mark.parametrize("method", METHODS)
async def test_a_kept_connection_that_was_closed_meanwhile_is_replaced_once(method: str) -> None:
    async with raw_server(response(), CLOSE, response(b"again")) as server:
        async with open_session() as session:
            await fetch(session, server.port, method)
            assert (await fetch(session, server.port, method)).body == b"again"
        assert (server.connections, len(server.requests)) == (2, 3)
    async with raw_server(response(), CLOSE) as server, open_session() as session:
        await fetch(session, server.port, method)
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await fetch(session, server.port, method)
        assert len(server.requests) == 3


@pytest.mark.parametrize("method", METHODS)
async def test_servers_that_close_after_each_response_are_used(method: str) -> None:
    async with raw_server((response(), CLOSE)) as server, open_session() as session:
        for _ in range(50):
            assert (await fetch(session, server.port, method)).body == b"ok"
        assert server.connections == 50


@pytest.mark.parametrize("is_idempotent", [True, False])
async def test_only_idempotent_requests_are_repeated_after_a_reset(*, is_idempotent: bool) -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            await reader.readuntil(b"{}")
            writer.write(response())
            await reader.readuntil(b"{}")
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        writer.close()

    server = await asyncio.start_server(reset, "127.0.0.1", 0)
    url = quoted_url(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    request = SessionRequest("POST", url, {}, b"{}", is_idempotent=is_idempotent)
    async with open_session() as session:
        await session.fetch(request)
        if is_idempotent:
            assert (await session.fetch(request)).body == b"ok"
        else:
            with pytest.raises(aiohttp.ClientOSError, match="reset"):
                await session.fetch(request)
    server.close()


async def test_a_repetition_that_cannot_connect_leaves_the_outcome_unknown() -> None:
    async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(response())
        await reader.readuntil(b"{}")
        server.close()  # accepts no more connections
        writer.close()

    server = await asyncio.start_server(answer_once, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with open_session() as session:
        await fetch(session, port)
        with pytest.raises(aiohttp.ServerDisconnectedError) as raised:
            await fetch(session, port)
    assert not isinstance(raised.value, session.unsent)
    assert isinstance(raised.value.__cause__, session.unsent)


async def test_a_server_that_cannot_be_reached_received_nothing() -> None:
    async with raw_server(response()) as gone:
        port = gone.port
    async with open_session() as session:
        with pytest.raises(session.unsent):
            await fetch(session, port)
    async with open_session(f"http://127.0.0.1:{port}") as session:
        with pytest.raises(session.unsent):
            await session.fetch(SessionRequest("POST", quoted_url("http://a.test/"), {}, b"{}"))
    async with open_connect_proxy("me:word") as proxy, open_session(proxy.url) as session:
        with pytest.raises(session.unsent, match="407"):
            await session.fetch(SessionRequest("POST", quoted_url("https://a.test/"), {}, b"{}"))


async def test_redirects_are_returned_and_cookies_are_not_kept() -> None:
    moved = response(b"", "location: /there", "set-cookie: a=b; path=/", status=302)
    async with raw_server(moved) as server, open_session() as session:
        for _ in range(2):
            answer = await fetch(session, server.port)
            assert (answer.status, answer.headers["Location"]) == (302, "/there")
            assert not answer.is_success
        assert len(server.requests) == 2
        assert not any(b"cookie" in request.lower() for request in server.requests)


async def test_a_cancelled_request_closes_its_connection() -> None:
    half = (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\no",)
    for answer in ((), half):
        async with raw_server(answer) as server, open_session() as session:
            task = asyncio.create_task(fetch(session, server.port))
            await server.asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.left.wait()
