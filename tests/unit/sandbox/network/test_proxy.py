"""The proxy of isolated commands, over real sockets."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from internal.agent.domain.permissions.network import EVERY_HOST, NetworkAccess
from internal.agent.domain.permissions.rules import HostPattern
from internal.sandbox.network.proxy import EgressProxy

EXAMPLE = HostPattern("example.com", subdomains=False, port=None)


class Server:
    """A service on this machine that records received bytes and answers them."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.got.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
            await writer.drain()
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


class Proxied:
    """A proxy with the port of one client."""

    def __init__(self, proxy: EgressProxy, port: int) -> None:
        self.proxy = proxy
        self.port = port

    async def send(self, *pieces: bytes) -> bytes:
        """Send pieces over one connection; return the whole answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            return await reader.read()
        finally:
            writer.close()

    async def status(self, request: bytes) -> str:
        return (await self.send(request)).partition(b"\r\n")[0].decode().partition(" ")[2]


@asynccontextmanager
async def proxied(
    *allow: HostPattern,
    deny: tuple[HostPattern, ...] = (),
    private: bool = True,
    names: dict[str, str] | None = None,
) -> AsyncGenerator[Proxied]:
    """Open a proxy for which every host is this machine, or has the address in `names`."""

    async def resolve(host: str, _: int) -> list[str]:
        if host == "unknown.example":
            raise OSError
        return [(names or {}).get(host, "127.0.0.1")]

    proxy = EgressProxy(NetworkAccess(allow, deny), private=private, resolver=resolve)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    async with proxy.serve(listener):
        yield Proxied(proxy, listener.getsockname()[1])


@asynccontextmanager
async def served() -> AsyncGenerator[Server]:
    one = Server()
    async with await asyncio.start_server(one.answer, "127.0.0.1", 0) as server:
        one.port = server.sockets[0].getsockname()[1]
        yield one


async def test_a_tunnel_and_a_plain_request_reach_the_host() -> None:
    async with served() as server:
        site = HostPattern("example.com", subdomains=False, port=server.port)
        async with proxied(site) as one:
            tunnel = f"CONNECT Example.COM.:{server.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
            got = await one.send(tunnel, b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
            assert got.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK")
            assert got.endswith(b"hello")
            plain = (
                f"GET http://example.com:{server.port}/a?b#c HTTP/1.1\r\nHost: evil.example\r\n"
                "Proxy-Connection: keep-alive\r\nAccept: */*\r\n\r\n"
            )
            got = await one.send(plain.encode())
            assert got.startswith(b"HTTP/1.1 200 OK")
            assert not one.proxy.refused
    assert server.got[0] == b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"
    assert server.got[1].decode() == (
        f"GET /a?b HTTP/1.1\r\nHost: example.com:{server.port}\r\nAccept: */*\r\n"
        "Connection: close\r\n\r\n"
    )


@pytest.mark.parametrize(
    "target",
    [
        *(
            "evil.example:443",
            "example.com.evil.example:443",
            "xexample.com:443",
            "sub.example.com:443",
        ),
        *("example.com:22", "example.com:8443", "1.1.1.1:443", "127.0.0.1:443", "[::1]:443"),
    ],
)
async def test_other_hosts_and_ports_are_refused_and_named(target: str) -> None:
    async with proxied(EXAMPLE) as one:
        got = await one.send(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())
        assert got.startswith(b"HTTP/1.1 403 Forbidden")
        assert f"may not reach {target}".encode() in got
        assert list(one.proxy.refused) == [target]


@pytest.mark.parametrize(
    "request_line",
    [
        *(b"CONNECT example.com\0.evil.example:443 HTTP/1.1", b"CONNECT example.com HTTP/1.1"),
        *(b"CONNECT example.com:0 HTTP/1.1", b"CONNECT example.com:65536 HTTP/1.1"),
        *(b"CONNECT user@example.com:443 HTTP/1.1", b"CONNECT 127.1:443 HTTP/1.1"),
        *(b"CONNECT 0x7f000001:443 HTTP/1.1", b"CONNECT 2130706433:443 HTTP/1.1"),
        *(b"CONNECT 017700000001:443 HTTP/1.1", b"CONNECT [fe80::1%25eth0]:443 HTTP/1.1"),
        *(b"CONNECT example.com/x:443 HTTP/1.1", b"CONNECT  example.com:443 HTTP/1.1"),
        *(b"CONNECT exa\xffmple.com:443 HTTP/1.1", b"CONNECT a..example.com:443 HTTP/1.1"),
        *(
            b"GET / HTTP/1.1",
            b"GET https://example.com/ HTTP/1.1",
            b"GET ftp://example.com/ HTTP/1.1",
        ),
        *(b"GET http://user@example.com/ HTTP/1.1", b"GET http:///x HTTP/1.1", b"\x05\x01\x00"),
        *(b"CONNECT example.com:443 HTTP/2", b"hello", b"", b"GET http://a b/ HTTP/1.1"),
    ],
)
async def test_what_is_no_plain_request_is_answered_with_a_sentence(request_line: bytes) -> None:
    async with proxied(EVERY_HOST) as one:
        got = await one.send(request_line + b"\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 400 Bad Request")
    assert b"Larkspur: " in got


@pytest.mark.parametrize(
    "fields",
    [
        *(b"X: a\nHost: evil.example", b"X: a\rHost: evil.example", b"X: a\0Host: evil.example"),
        *(b"X: a\r\n Host: evil.example", b"X: a\r\n\tb", b"\nHost: evil.example"),
        *(b"Host : evil.example", b" Host: evil.example", b"Host", b": x", b"Ho\x0bst: x"),
        *(b"X: a\n\nGET / HTTP/1.1\nHost: evil.example", b"X: \x7f", b"X: a\x85\x0cHost: b"),
    ],
)
async def test_a_field_that_could_be_read_as_another_is_refused(fields: bytes) -> None:
    async with served() as server:
        site = HostPattern("example.com", subdomains=False, port=server.port)
        async with proxied(site) as one:
            for line in ("GET http://example.com:%d/", "CONNECT example.com:%d"):
                request = (line % server.port).encode() + b" HTTP/1.1\r\n" + fields + b"\r\n\r\n"
                assert await one.status(request) == "400 Bad Request"
    assert server.got == []


async def test_private_addresses_need_the_setting_and_denied_hosts_win() -> None:
    internal = {"internal.example": "10.0.0.1", "meta.example": "169.254.169.254"}
    async with proxied(EVERY_HOST, deny=(EXAMPLE,), private=False, names=internal) as one:
        for host in ("internal.example", "meta.example", "localhost", "example.com"):
            request = f"CONNECT {host}:443 HTTP/1.1\r\n\r\n".encode()
            assert await one.status(request) == "403 Forbidden", host
        assert [*one.proxy.refused] == ["example.com:443"]
        assert [*one.proxy.refused_addresses] == ["internal.example:443", "localhost:443"]
        assert [*one.proxy.forbidden] == ["meta.example:443"]
        unknown = await one.status(b"CONNECT unknown.example:443 HTTP/1.1\r\n\r\n")
        assert unknown == "502 Bad Gateway"
    async with proxied(EVERY_HOST, names=internal) as one:
        assert await one.status(b"CONNECT meta.example:80 HTTP/1.1\r\n\r\n") == "403 Forbidden"


async def test_too_long_and_incomplete_requests_are_answered() -> None:
    async with proxied(EXAMPLE) as one:
        long = b"CONNECT example.com:443 HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n"
        assert await one.status(long) == "431 Request Header Fields Too Large"
        reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
        writer.write(b"CONNECT example")
        writer.write_eof()
        assert (await reader.read()).startswith(b"HTTP/1.1 400")
        writer.close()


async def test_a_second_request_on_a_connection_is_not_answered_for_another_host() -> None:
    async with served() as server:
        site = HostPattern("example.com", subdomains=False, port=server.port)
        async with proxied(site) as one:
            first = f"GET http://example.com:{server.port}/ HTTP/1.1\r\n\r\n".encode()
            await one.send(first, b"GET http://evil.example/ HTTP/1.1\r\n\r\n")
            assert not one.proxy.refused  # it went to the first server, which ended the connection
    assert len(server.got) == 1


async def test_a_plain_response_says_that_the_connection_ends() -> None:
    answers = [
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n"
            b"Keep-Alive: timeout=5\r\nX-Connection: 1\r\n\r\nhello"
        ),
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\nhello",
        b"an odd server",
    ]
    ends = b"\r\nConnection: close\r\n\r\n"
    expected = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Connection: 1" + ends + b"hello",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content" + ends,
        *answers[2:],
    ]
    waiting = iter(answers)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(next(waiting))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        site = HostPattern("example.com", subdomains=False, port=port)
        async with proxied(site) as one:
            request = f"GET http://example.com:{port}/ HTTP/1.1\r\n\r\n".encode()
            assert [await one.send(request) for _ in answers] == expected


async def test_open_connections_end_with_the_command() -> None:
    async with served() as server:
        site = HostPattern("example.com", subdomains=False, port=server.port)
        async with proxied(site) as one:
            reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
            writer.write(f"CONNECT example.com:{server.port} HTTP/1.1\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
        assert await reader.read() == b""
        writer.close()
