"""Kinds of failures, from servers that fail so."""

import asyncio

import pytest

from internal.egress.messages import Failure, FailureKind, SessionRequest, quoted_url
from internal.egress.policy import EgressPolicy
from internal.egress.proxies import Proxies
from internal.egress.session import MAX_HEADERS, HttpSession
from tests.support.raw_server import CLOSE, raw_server, response


async def failure(url: str, proxy: str = "") -> Failure:
    session = HttpSession(EgressPolicy(proxies=Proxies({"all": proxy})), keepalive_seconds=0)
    try:
        with pytest.raises(HttpSession.errors) as caught:
            await session.fetch(SessionRequest("GET", quoted_url(url), {}))
    finally:
        await session.close()
    return session.explain(caught.value)


@pytest.mark.parametrize(
    ("answer", "kind", "reason"),
    [
        ((CLOSE,), "closed", ""),
        ((b"HTTP/1.1 200 OK\r\nA:", CLOSE), "closed", ""),
        ((b"SSH-2.0-OpenSSH\r\n",), "not_http", "this is not HTTP"),
        (
            (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 2 * MAX_HEADERS + b"\r\n",),
            "large_head",
            "this is not HTTP",
        ),
        ((b"HTTP/1.1 200 OK\r\nA: " + b"b" * 90_000,), "large_head", "this is not HTTP"),
        ((response()[:-1], CLOSE), "broken_off", "the answer breaks off"),
    ],
    ids=["closed", "half a head", "SSH", "many headers", "a large header", "half a body"],
)
async def test_the_kind_is_that_of_the_response(
    answer: tuple[bytes, ...], kind: FailureKind, reason: str
) -> None:
    async with raw_server(answer) as server:
        assert await failure(f"http://127.0.0.1:{server.port}/") == (kind, reason)


async def test_a_server_that_speaks_no_tls_is_known() -> None:
    async with await asyncio.start_server(_greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert (await failure(f"https://127.0.0.1:{port}/")).kind == "no_tls"


async def _greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 mail.example ESMTP\r\n")
    await writer.drain()
    writer.close()


async def test_a_server_that_is_not_reached_has_the_reason_of_the_system() -> None:
    async with raw_server(response()) as gone:
        url = f"http://127.0.0.1:{gone.port}/"
    assert await failure(url) == ("refused", "Connection refused")
    assert await failure("http://a.test/", url) == ("proxy", "Connection refused")
    unknown = await failure("http://no-such-name.invalid/")
    assert (unknown.kind, "Errno" in unknown.reason) == ("unknown_host", False)
    unusable = await failure("http://a.test/", "socks5://127.0.0.1")
    assert (unusable.kind, "set HTTPS_PROXY" in unusable.reason) == ("unusable", True)
