"""The HTTP proxy of isolated commands: the only way from a command to the network.

A command speaks HTTP to the proxy (RFC 9110 7.3.2 and 9.3.6): CONNECT for https and other
protocols, a request with the whole address for http. The proxy resolves the host once, checks every
address, and connects to one that it has checked.
"""

import asyncio
import contextlib
import re
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from typing import NamedTuple

from internal.agent.domain.permissions.network import NetworkAccess
from internal.normal_forms.addresses import address_refusal, parse_host
from internal.sandbox.network.streams import Connection, close, join, serve

PORT = 3128
"""Port of the proxy, on 127.0.0.1 in the network namespace of a command."""

MAX_CONNECTIONS = 256
"""Maximum number of open connections of a command."""

CROWDED = "503 Service Unavailable"
UNREACHABLE = "502 Bad Gateway"

_LOCAL = "localhost,127.0.0.1,::1"
_MAX_HEAD_BYTES = 65_536
_MAX_REFUSED = 20
_MAX_PORT = 65_535
_HEAD_TIMEOUT_SECONDS = 30.0
_CONNECT_TIMEOUT_SECONDS = 20.0
_REQUEST_LINE = re.compile(rb"([A-Z]{1,20}) ([\x21-\x7e]{1,8000}) HTTP/1\.[01]")
# Strictly RFC 9112: a line that a server may read as two, such as one with a bare line feed, would
# give it another Host than the one that was checked.
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t\x20-\x7e\x80-\xff]*")
_INTERIM = re.compile(rb"HTTP/1\.[01] 1(?!01)[0-9]{2}")
_HOP_BY_HOP = re.compile(rb"(?i)(?:proxy-)?connection[ \t]*:|keep-alive[ \t]*:")
_AUTHORITY = re.compile(
    r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\[\]:@/?#]+)):(?P<port>[0-9]{1,5})"
)
_NOT_FORWARDED = (
    b"host",
    b"proxy-connection",
    b"proxy-authorization",
    b"connection",
    b"keep-alive",
    b"upgrade",
)

Resolver = Callable[[str, int], Awaitable[list[str]]]


class RefusedConnection(Exception):
    """Answer in place of a connection: a status, and a sentence for people."""

    def __init__(self, status: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Site(NamedTuple):
    """A host, in the spelling of `parse_host`, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class _Request(NamedTuple):
    """The first request of a connection. `forward` is the part that the server receives."""

    site: Site
    forward: bytes


def proxy_variables(port: int = PORT) -> dict[str, str]:
    """Return the environment variables that lead programs to the proxy at a port of 127.0.0.1."""
    url = f"http://127.0.0.1:{port}"
    return {
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), url),
        **dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), url),
        **dict.fromkeys(("NO_PROXY", "no_proxy"), _LOCAL),
        "NODE_USE_ENV_PROXY": "1",  # Node 24 and newer: fetch and http read the variables above
    }


async def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host from the system's resolver.

    Raises:
        OSError: the name has no address.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class EgressProxy:
    """Connects a command to the hosts that it may reach.

    Args:
        access: the hosts.
        private: allow addresses of this machine and of private networks.
        resolver: resolves host names.
    """

    def __init__(
        self, access: NetworkAccess, *, private: bool = False, resolver: Resolver = resolve
    ) -> None:
        self._access = access
        self._private = private
        self._resolve = resolver
        self._open = 0
        self.refused: dict[str, None] = {}
        """The sites that may not be reached, as host:port, in the order of the attempts."""
        self.refused_addresses: dict[str, None] = {}
        """The sites whose host is allowed, and whose address is private."""
        self.forbidden: dict[str, None] = {}
        """The sites whose host is allowed, and whose address is never reached."""

    @asynccontextmanager
    async def serve(self, listener: socket.socket) -> AsyncGenerator[None]:
        """Answer the connections to a listening socket, which is closed at the end."""
        async with serve(listener, self._handle, _MAX_HEAD_BYTES):
            yield

    @asynccontextmanager
    async def open(self, site: Site) -> AsyncGenerator[Connection]:
        """Connect to a host; the connection ends with the block.

        Raises:
            RefusedConnection: it may not be reached, or does not answer.
        """
        with self._counted():
            target = await self._open_target(site)
            try:
                yield target
            finally:
                await close(target[1])

    def allows_private(self, site: Site) -> bool:
        """Return True if a permitted host may have an address of this machine or its networks."""
        return self._private or self._access.permits_private(*site)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with self._counted(), contextlib.suppress(OSError):
            await self._connect(reader, writer)

    @contextlib.contextmanager
    def _counted(self) -> Generator[None]:
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_TIMEOUT_SECONDS):
                request = _parse(await _read_head(reader))
            target_reader, target = await self._open_target(request.site)
        except (RefusedConnection, TimeoutError) as error:
            status = error.status if isinstance(error, RefusedConnection) else "408 Request Timeout"
            await _answer(writer, status, str(error) or "the request did not arrive in time")
            return
        try:
            if request.forward:
                target.write(request.forward)
                await join((reader, writer), (target_reader, target), _forward_response)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await join((reader, writer), (target_reader, target))
        finally:
            await close(target)

    async def _open_target(self, site: Site) -> Connection:
        """Connect to a host.

        Raises:
            RefusedConnection: it may not be reached, or does not answer.
        """
        if self._open > MAX_CONNECTIONS:
            raise RefusedConnection(CROWDED, "too many connections are open")
        if not self._access.permits(*site):
            raise self._refuse(site, f"this command may not reach {site}")
        reason: OSError | None = None
        for address in await self._addresses(site):
            try:
                async with asyncio.timeout(_CONNECT_TIMEOUT_SECONDS):
                    return await asyncio.open_connection(address, site.port)
            except OSError as error:  # TimeoutError is one
                reason = error
        why = (reason and (reason.strerror or str(reason))) or "no response"
        raise RefusedConnection(UNREACHABLE, f"{site} cannot be reached: {why}")

    async def _addresses(self, site: Site) -> list[str]:
        """Return the addresses of the host; a single forbidden one rejects the host.

        Raises:
            RefusedConnection: it has none, or one that may not be reached.
        """
        try:
            found = await self._resolve(*site)
        except (OSError, UnicodeError):
            found = []
        if not found:
            raise RefusedConnection(UNREACHABLE, f"there is no host {site.host}")
        for address in found:
            if why := address_refusal(address, private=self.allows_private(site)):
                is_private = address_refusal(address, private=True) is None
                noted = self.refused_addresses if is_private else self.forbidden
                if len(noted) < _MAX_REFUSED:
                    noted[str(site)] = None
                raise RefusedConnection("403 Forbidden", f"{site.host} may not be reached: {why}")
        return found

    def _refuse(self, site: Site, sentence: str) -> RefusedConnection:
        if len(self.refused) < _MAX_REFUSED:
            self.refused[str(site)] = None
        return RefusedConnection("403 Forbidden", sentence)


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    """Return the first line and the header fields of a request.

    Raises:
        RefusedConnection: it is too long, or ends early.
    """
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        long = "431 Request Header Fields Too Large"
        raise RefusedConnection(long, "the head of the request is too long") from error
    except asyncio.IncompleteReadError as error:
        raise RefusedConnection("400 Bad Request", "the request is not complete") from error


def _parse(head: bytes) -> _Request:
    """Return the request of a head.

    Raises:
        RefusedConnection: it is not a request to a proxy.
    """
    line, _, fields = head.partition(b"\r\n")
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        raise RefusedConnection("400 Bad Request", "this is not an HTTP request to a proxy")
    kept = _kept_fields(fields)
    method, target = match[1], match[2].decode("ascii")
    if method == b"CONNECT":
        return _Request(_site(target), b"")
    scheme, separator, rest = target.partition("://")
    if scheme.lower() != "http" or not separator:
        raise RefusedConnection("400 Bad Request", "the address must begin with http://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    path = rest[len(authority) :].partition("#")[0]
    site = _site(authority if re.search(r":[0-9]+$", authority) else f"{authority}:80")
    origin = path if path.startswith("/") else f"/{path}"
    return _Request(site, _forwarded(method, origin, authority, kept))


def _site(authority: str) -> Site:
    """Return the host and the port of host:port.

    Raises:
        RefusedConnection: the spelling is not plain, such as 127.1:80.
    """
    match = _AUTHORITY.fullmatch(authority)
    port = int(match["port"]) if match else 0
    if match is None or not 0 < port <= _MAX_PORT:
        raise RefusedConnection("400 Bad Request", "the address must be host:port")
    try:
        host = parse_host(match["ipv6"] or match["host"], bracketed=bool(match["ipv6"]))
    except ValueError as error:
        raise RefusedConnection("400 Bad Request", str(error)) from error
    return Site(host, port)


def _kept_fields(fields: bytes) -> list[bytes]:
    """Return the header lines that a server gets.

    Raises:
        RefusedConnection: a line is not a field, or could be read as several.
    """
    kept = []
    for line in filter(None, fields.split(b"\r\n")):
        match = _FIELD.fullmatch(line)
        if match is None:
            raise RefusedConnection("400 Bad Request", "a header field of the request is not plain")
        if match[1].lower() not in _NOT_FORWARDED:
            kept.append(line)
    return kept


def _forwarded(method: bytes, path: str, authority: str, kept: list[bytes]) -> bytes:
    """Return the head of a request for the server itself, which ends the connection after it.

    The field Host is made anew from the address, so that it names the host that was checked.
    """
    first = b"%s %s HTTP/1.1" % (method, path.encode("ascii"))
    host = b"Host: %s" % authority.encode("ascii")
    return b"\r\n".join([first, host, *kept, b"Connection: close", b"", b""])


async def _forward_response(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on the head of a response; it says that the connection ends, as the request did.

    A server need not say so, and a client that has not been told uses the connection again.
    """
    is_final = False
    while not is_final:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:  # the rest is copied as it is
            return
        except asyncio.IncompleteReadError as error:
            writer.write(error.partial)
            return
        is_final = _INTERIM.match(head) is None
        writer.write(_closing(head) if is_final else head)
        await writer.drain()


def _closing(head: bytes) -> bytes:
    first, *fields = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    kept = [one for one in fields if not _HOP_BY_HOP.match(one)]
    return b"\r\n".join([first, *kept, b"Connection: close", b"", b""])


async def _answer(writer: asyncio.StreamWriter, status: str, sentence: str) -> None:
    body = f"Larkspur: {sentence}.\n".encode(errors="replace")
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode("ascii") + body)
    with contextlib.suppress(OSError):
        await writer.drain()
        writer.write_eof()
        writer.close()
        await writer.wait_closed()
