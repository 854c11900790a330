"""Connections to providers: kept and broken ones, hostile servers, proxies and certificates."""

import asyncio
import gzip
import ssl
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Sequence
from typing import Never

import pytest

from internal.agent.domain.errors import ModelError, ModelRejected, ModelUnreachable
from internal.llm.errors import ProviderInfo
from internal.llm.transport import (
    MAX_BODY_BYTES,
    MAX_REDIRECTS,
    ApiKey,
    ProviderErrorResponse,
    ProviderHttpClient,
)
from tests.support.certificates import Authority, make_authority
from tests.support.connect_proxy import open_connect_proxy
from tests.support.raw_server import CLOSE, RawServer, raw_server, response

HOST = "model.test"
PEER = ProviderInfo("Acme", "ACME_API_KEY")
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"


def refused(answer: ProviderErrorResponse) -> ModelError:
    return ModelRejected(f"{answer.status} {answer.body}")


def never_called(answer: ProviderErrorResponse) -> Never:
    raise AssertionError(answer)


def client_of(address: str, *, silence_seconds: float = 20.0) -> ProviderHttpClient:
    return ProviderHttpClient(PEER, address, ApiKey("k-0123"), silence_seconds=silence_seconds)


@pytest.fixture
async def clients() -> AsyncIterator[list[ProviderHttpClient]]:
    """The clients of a test, which are closed after it."""
    opened: list[ProviderHttpClient] = []
    yield opened
    for client in opened:
        await client.close()


async def ask(client: ProviderHttpClient) -> bytes:
    async with asyncio.timeout(30):
        return await client.upload("/chat", {"a": "b"}, ("f", b"x", "text/plain"), refused)


@pytest.mark.parametrize(
    "answer",
    [
        response(),
        CHUNKED,
        CHUNKED.replace(b"0\r\n\r\n", b"0\r\nx-trailer: a\r\n\r\n"),
        b"HTTP/1.1 103 Early\r\nlink: a\r\n\r\n" + response(status=201),
        response(gzip.compress(b"ok"), "content-encoding: gzip"),
        response(zlib.compress(b"ok"), "content-encoding: deflate"),
    ],
    ids=["length", "chunked", "trailer", "early hints", "gzip", "deflate"],
)
async def test_a_response_may_arrive_in_pieces_of_any_size(
    answer: bytes, clients: list[ProviderHttpClient]
) -> None:
    pieces = [answer[n : n + 1] for n in range(len(answer))]
    async with raw_server(answer, pieces) as server:
        clients.append(client := client_of(server_url(server)))
        assert await ask(client) == b"ok"
        assert await ask(client) == b"ok"
        assert server.connections == 1


def server_url(server: RawServer) -> str:
    return f"http://127.0.0.1:{server.port}"


@pytest.mark.parametrize(
    "answer",
    [
        response(b"ok", "connection: close"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"o", b"k", CLOSE),
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    ],
    ids=["asked to close", "no length", "HTTP/1.0"],
)
async def test_a_connection_that_cannot_be_used_again_is_closed(
    answer: Sequence[bytes] | bytes, clients: list[ProviderHttpClient]
) -> None:
    async with raw_server(answer, response()) as server:
        clients.append(client := client_of(server_url(server)))
        assert await ask(client) == b"ok"
        assert await ask(client) == b"ok"
        assert server.connections == 2


async def test_a_kept_connection_that_was_closed_meanwhile_is_replaced_once(
    clients: list[ProviderHttpClient],
) -> None:
    async with raw_server(response(), CLOSE, response(b"again")) as server:
        clients.append(client := client_of(server_url(server)))
        await ask(client)
        assert await ask(client) == b"again"
        assert (server.connections, len(server.requests)) == (2, 3)
    async with raw_server(response(), CLOSE) as server:
        clients.append(client := client_of(server_url(server)))
        await ask(client)
        with pytest.raises(ModelUnreachable):
            await ask(client)
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    "begun",
    [
        b"H",
        b"HTTP/1.1 2",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\no",
    ],
    ids=["first byte", "status", "header", "body"],
)
async def test_a_request_is_not_repeated_once_something_was_received(
    begun: bytes, clients: list[ProviderHttpClient]
) -> None:
    async with raw_server(response(), (begun, CLOSE), response()) as server:
        clients.append(client := client_of(server_url(server)))
        await ask(client)
        with pytest.raises(ModelUnreachable):
            await ask(client)
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    "answer",
    [
        CLOSE,
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nok", CLOSE),
        (CHUNKED[:-5], CLOSE),
        b"SSH-2.0-OpenSSH\r\n",
        CHUNKED.replace(b"2\r\nok", b"zz\r\nok"),
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nx-long: " + b"a" * 70_000,
        b"HTTP/1.1 200 OK\r\n" + b"x-one: a\r\n" * 4_000,
        response(b"not packed", "content-encoding: gzip"),
    ],
    ids=[
        *("no answer", "short", "short chunks", "another protocol", "bad chunk", "two lengths"),
        *("long header", "many headers", "bad gzip"),
    ],
)
async def test_a_broken_response_is_an_error(
    answer: Sequence[bytes] | bytes, clients: list[ProviderHttpClient]
) -> None:
    async with raw_server(answer) as server:
        clients.append(client := client_of(server_url(server)))
        with pytest.raises(ModelUnreachable, match="Cannot connect to Acme"):
            await ask(client)


async def test_a_compressed_body_is_unpacked_in_small_pieces(
    clients: list[ProviderHttpClient],
) -> None:
    packed = gzip.compress(bytes(100_000_000))
    async with raw_server(response(packed, "content-encoding: gzip")) as server:
        clients.append(client := client_of(server_url(server)))
        assert await ask(client) == bytes(MAX_BODY_BYTES)
        answer = await client.post("/chat", b"{}", never_called)
        assert max([len(await answer.content.readany()) for _ in range(20)]) <= 1024 * 1024
        answer.close()


async def test_a_cancelled_request_closes_its_connection(
    clients: list[ProviderHttpClient],
) -> None:
    async with raw_server([]) as server:  # it never answers
        clients.append(client := client_of(server_url(server)))
        task = asyncio.create_task(ask(client))
        await server.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.left.wait()


async def test_a_server_that_sends_nothing_is_given_up(clients: list[ProviderHttpClient]) -> None:
    async with raw_server([]) as server:
        clients.append(client := client_of(server_url(server), silence_seconds=0.1))
        with pytest.raises(ModelUnreachable, match=r"sent nothing for 0\.1 s"):
            await ask(client)
        await server.left.wait()


async def test_a_server_that_cannot_be_reached_is_an_error(
    clients: list[ProviderHttpClient],
) -> None:
    async with raw_server(response()) as gone:
        address = server_url(gone)
    clients.append(client := client_of(address))
    with pytest.raises(ModelUnreachable, match="Cannot connect to Acme"):
        await ask(client)


def redirect(location: str, status: int = 307) -> bytes:
    return response(b"moved", f"location: {location}", status=status)


async def test_a_redirect_repeats_the_request_and_keeps_the_key_from_other_servers(
    clients: list[ProviderHttpClient],
) -> None:
    async with raw_server(response(b"there")) as other:
        there = redirect(f"http://127.0.0.1:{other.port}/b", 308)
        async with raw_server(redirect("/a?x=1"), there) as server:
            clients.append(client := client_of(f"{server_url(server)}/v1"))
            assert await ask(client) == b"there"
    sent = [*server.requests, *other.requests]
    lines = [request.partition(b" HTTP")[0] for request in sent]
    assert lines == [b"POST /v1/chat", b"POST /a?x=1", b"POST /b"]
    assert [b"Bearer k-0123" in request for request in sent] == [True, True, False]
    assert len({request.partition(b"\r\n\r\n")[2] for request in sent}) == 1


async def test_redirects_end_after_a_few(clients: list[ProviderHttpClient]) -> None:
    async with raw_server(redirect("/again")) as server:
        clients.append(client := client_of(server_url(server)))
        with pytest.raises(ModelRejected, match="307 moved"):
            await ask(client)
        assert len(server.requests) == MAX_REDIRECTS + 1


@pytest.mark.parametrize("location", ["ftp://host/", "http://host:port/"])
async def test_a_redirect_to_no_http_url_is_an_error(
    location: str, clients: list[ProviderHttpClient]
) -> None:
    async with raw_server(redirect(location)) as server:
        clients.append(client := client_of(server_url(server)))
        with pytest.raises(ModelUnreachable, match="Cannot connect to Acme"):
            await ask(client)


async def test_a_proxy_gets_requests_to_http_servers_with_its_login(
    clients: list[ProviderHttpClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with raw_server(response(b"by proxy")) as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:p%40ss@127.0.0.1:{proxy.port}")
        clients.append(client := client_of(f"http://{HOST}/v1"))
        assert await ask(client) == b"by proxy"
    (request,) = proxy.requests
    assert request.startswith(b"POST http://model.test/v1/chat HTTP/1.1\r\n")
    assert b"proxy-authorization: basic bwu6cebzcw==\r\n" in request.lower()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("authority"), HOST)


PROGRAM = """
import asyncio, sys
from internal.agent.domain.errors import ModelError
from tests.unit.llm.test_connections import ask, client_of

async def main():
    client = client_of(sys.argv[1])
    try:
        for _ in range(2):
            print((await ask(client)).decode())
    except ModelError as error:
        print(error.detail)
    await client.close()

asyncio.run(main())
"""


async def ask_twice(address: str, **environment: str) -> str:
    """Ask in a new process, which reads certificates once, and return its output."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM, address),
        env=environment,
        stdout=subprocess.PIPE,
    )
    output, _ = await process.communicate()
    return output.decode()


def server_tls(authority: Authority) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.server.certificate, authority.server.key)
    return context


@pytest.mark.needs("openssl")
@pytest.mark.parametrize(
    ("login", "trusts", "says", "tunnels"),
    [
        ("me:word", True, "safe\nsafe\n", 1),
        ("me:other", True, "407", 0),
        ("me:word", False, "certificate verify failed", 1),
    ],
    ids=["accepted", "refused by the proxy", "unknown authority"],
)
@pytest.mark.first_rows(1)
async def test_https_goes_through_a_tunnel_of_the_proxy_that_is_kept(
    authority: Authority, *, login: str, trusts: bool, says: str, tunnels: int
) -> None:
    trusted = {"SSL_CERT_FILE": str(authority.ca_file)} if trusts else {}
    async with (
        raw_server(response(b"safe"), tls=server_tls(authority)) as server,
        open_connect_proxy("me:word") as proxy,
    ):
        proxy_url = f"http://{login}@127.0.0.1:{proxy.port}"
        printed = await ask_twice(f"https://{HOST}:{server.port}", https_proxy=proxy_url, **trusted)
    assert says in printed
    assert proxy.tunnels == [f"{HOST}:{server.port}"] * tunnels
    assert len(server.requests) == printed.count("safe")
    assert not any(b"proxy-authorization" in request.lower() for request in server.requests)


@pytest.mark.needs("openssl")
async def test_a_certificate_for_another_host_is_rejected(authority: Authority) -> None:
    async with raw_server(response(), tls=server_tls(authority)) as server:
        address = f"https://127.0.0.1:{server.port}"
        printed = await ask_twice(address, SSL_CERT_FILE=str(authority.ca_file))
    assert "certificate" in printed
    assert server.requests == []
