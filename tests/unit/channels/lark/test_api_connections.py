"""Sent requests, and the outcome of calls and downloads over broken connections."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from internal.channels.lark.api import (
    LarkClient,
    LarkRejected,
    LarkRequest,
    LarkUnavailable,
    SendPolicy,
)
from internal.channels.lark.connection import AppCredentials
from internal.observability.clock import SystemClock
from tests.support.raw_server import CLOSE, RawServer, raw_server, response

ONCE = SendPolicy(max_attempts=1)
TOKEN = response(b'{"code": 0, "tenant_access_token": "t-1", "expire": 7200}')
DONE = b'{"code": 0, "data": {"a": "b"}}'
CALL = LarkRequest("POST", "/open-apis/a%2Fb", query={"q": "c d/é"}, body={"text": "你好"})


class Opened(NamedTuple):
    """A client and the server that it calls."""

    client: LarkClient
    server: RawServer


@asynccontextmanager
async def open_client(*answers: Sequence[bytes] | bytes) -> AsyncGenerator[Opened]:
    """Open a client and a server that gives these answers after the one with the token."""
    async with asyncio.timeout(20), raw_server(TOKEN, *answers) as server:
        origin = f"http://127.0.0.1:{server.port}"
        client = LarkClient(AppCredentials("cli_1", "secret", origin), SystemClock())
        try:
            yield Opened(client, server)
        finally:
            await client.close()


async def test_what_is_sent() -> None:
    async with open_client(response(DONE)) as (client, server):
        assert await client.call(CALL, ONCE) == {"a": "b"}
        head, _, body = server.requests[1].partition(b"\r\n\r\n")
        line, *headers = head.decode().split("\r\n")
        assert line == "POST /open-apis/a%2Fb?q=c+d%2F%C3%A9 HTTP/1.1"
        sent = dict(header.lower().split(": ", 1) for header in headers)
        assert sent.pop("host") == f"127.0.0.1:{server.port}"
        assert sent.pop("accept-encoding").startswith("gzip, deflate")
        assert sent == {
            "accept": "*/*",
            "authorization": "bearer t-1",
            "content-length": str(len(body)),
            "content-type": "application/json",
            "user-agent": "larkspur",
        }
        assert body.decode() == '{"text":"你好"}'
        assert b"authorization" not in server.requests[0].lower()
        assert server.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        response(gzip.compress(DONE), "content-encoding: gzip"),
        response(zlib.compress(DONE), "content-encoding: deflate"),
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
        % (len(DONE), DONE),
        (b"HTTP/1.1 200 OK\r\n\r\n" + DONE, CLOSE),
    ],
    ids=["gzip", "deflate", "chunks", "no length"],
)
async def test_responses_of_any_encoding_are_read(answer: Sequence[bytes] | bytes) -> None:
    async with open_client(answer) as (client, _):
        assert await client.call(CALL, ONCE) == {"a": "b"}


async def test_a_redirect_is_a_rejection() -> None:
    moved = response(b"moved", "location: /there", "X-Tt-Logid: 2026abc", status=302)
    async with open_client(moved) as (client, server):
        with pytest.raises(LarkRejected, match=r"302.*log id 2026abc") as raised:
            await client.call(CALL, ONCE)
        assert raised.value.code == 302
        assert len(server.requests) == 2


async def test_a_kept_connection_that_was_closed_meanwhile_costs_no_attempt() -> None:
    async with open_client(CLOSE, response(DONE)) as (client, server):
        assert await client.call(CALL, ONCE) == {"a": "b"}
        assert server.connections == 2


@pytest.mark.parametrize(
    "answer",
    [CLOSE, (response(DONE)[:-3], CLOSE), b"SSH-2.0-OpenSSH\r\n"],
    ids=["no answer", "short", "another protocol"],
)
async def test_a_lost_response_is_unconfirmed(answer: Sequence[bytes] | bytes) -> None:
    async with open_client(answer) as (client, _):
        with pytest.raises(LarkUnavailable, match="Lark's response was lost: ") as raised:
            await client.call(CALL, ONCE)
        assert raised.value.unconfirmed


async def test_a_late_response_is_unconfirmed() -> None:
    async with open_client([]) as (client, server):
        with pytest.raises(LarkUnavailable, match="response was lost: TimeoutError") as raised:
            await client.call(CALL, ONCE._replace(timeout=0.1))
        assert raised.value.unconfirmed
        await server.left.wait()


async def test_an_unreachable_lark_has_done_nothing() -> None:
    async with open_client((response(DONE, "connection: close"), CLOSE)) as (client, server):
        await client.call(CALL, ONCE)  # the token is known from now on
        server.close()
        with pytest.raises(LarkUnavailable, match=r"^Lark is unreachable: ") as raised:
            await client.call(CALL, ONCE)
        assert not raised.value.unconfirmed


async def read(client: LarkClient, received: list[bytes], stop: Exception | None = None) -> None:
    """Download a file; with `stop`, the reader fails so after the first piece."""
    async with client.download("/file", {"type": "image"}) as download:
        assert download.content_type == "image/png"
        async for chunk in download.chunks:
            received.append(chunk)
            if stop is not None:
                raise stop


BEGUN = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-type: image/png\r\n\r\nab"


async def test_a_download_that_breaks_off_is_unavailable() -> None:
    received = list[bytes]()
    async with open_client((BEGUN, CLOSE)) as (client, _):
        with pytest.raises(LarkUnavailable, match="the download broke off: "):
            await read(client, received)
    assert received == [b"ab"]


async def test_a_download_that_is_not_read_to_its_end_closes_its_connection() -> None:
    async with open_client((BEGUN,)) as (client, server):
        with pytest.raises(OSError, match="disk full"):
            await read(client, [], OSError("disk full"))
        await server.left.wait()
