"""HTTP client of web_fetch and web_search: http and https, to permitted addresses only.

Every hop is resolved once and all its addresses are checked. The connection is made to one of the
checked addresses, so a name cannot resolve differently between the check and the connection. TLS is
verified against the name. No proxy or cookie is used, and no credential but the caller's. llhttp
(through httptools) parses the responses, whose size is bounded.
"""

import asyncio
import functools
import socket
import ssl
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httptools
import msgspec

from internal.agent.domain.errors import ToolError
from internal.normal_forms.addresses import address_refusal
from internal.normal_forms.http_status import status_phrase
from internal.text_encodings.labels import codec_of_label
from internal.tools.http_urls import PublicUrl

_HEAD_LIMIT = 65_536
_CHUNK = 65_536
_INFORMATIONAL = 200
_GZIP = zlib.MAX_WBITS | 16
_GZIP_START = b"\x1f"
_PACKED = frozenset({"br", "compress", "dcb", "dcz", "deflate", "gzip", "zstd"})
"""Content encodings that change the bytes. Every other label is no encoding, as in browsers."""
_HEADERS = {
    "User-Agent": "Mozilla/5.0 (compatible; Larkspur)",
    "Accept": "text/html, text/markdown, text/*;q=0.9, application/json;q=0.9, */*;q=0.1",
    "Accept-Encoding": "gzip",
    "Connection": "close",
}


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request: POST with a body, GET without one. `headers` replace the usual ones by name.

    Names and values of headers are ASCII without control characters.
    """

    url: PublicUrl
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = None

    def encode(self) -> bytes:
        """Return the request as it is sent."""
        headers = {"Host": self.url.authority, **_HEADERS, **self.headers}
        if self.body is not None:
            headers["Content-Length"] = str(len(self.body))
        method = "GET" if self.body is None else "POST"
        lines = [f"{method} {self.url.target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("ascii") + (self.body or b"")


class HttpResponse(msgspec.Struct):
    """A response.

    `truncated`: `body` is its beginning only, since it was too large, or ended early (`incomplete`:
    the connection was closed, or the compressed data has no end).
    """

    status: int = 0
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    body: bytes = b""
    truncated: bool = False
    incomplete: bool = False

    @property
    def media_type(self) -> str:
        """The media type in lower case without parameters, "" if there is none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str | None:
        """The declared text encoding, None if there is none or it is unknown."""
        for part in self.headers.get("content-type", "").split(";")[1:]:
            key, _, value = part.partition("=")
            if key.strip().lower() == "charset":
                return codec_of_label(value)
        return None


def describe_status(status: int) -> str:
    """Return a status with its phrase, such as "404 Not Found"."""
    try:
        return f"{status} {status_phrase(status)}"
    except ValueError:
        return str(status)


class _ResponseReader:
    """Callbacks of llhttp. Collects the decompressed response, with at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self.response = HttpResponse()
        self.complete = False
        self.started = False
        self.status: Callable[[], int] = lambda: 0
        self._limit = limit
        self._body = bytearray()
        self._has_body = False
        self._unpack: zlib._Decompress | None = None

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header; the last one of a name wins."""
        self.response.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Prepare for the body.

        Raises:
            ToolError: the content encoding was not requested.
        """
        self.response.status = self.status()
        if self.response.status < _INFORMATIONAL:
            return
        self.started = True
        labels = self.response.headers.get("content-encoding", "").lower().split(",")
        names = [label.strip().removeprefix("x-") for label in labels]
        packed = [name for name in names if name in _PACKED]
        if packed == ["gzip"]:
            self._unpack = zlib.decompressobj(_GZIP)
        elif packed:
            unread = ", ".join(packed)
            raise ToolError(f"the server sent an unrequested content encoding: {unread}")

    def on_body(self, chunk: bytes) -> None:
        """Add a chunk of the body."""
        self._has_body = True
        remaining = self._limit - len(self._body)
        if self._unpack is None:
            self._body += chunk[:remaining]
            self.response.truncated |= len(chunk) > remaining
            return
        while chunk and remaining:
            # gzip data may have several members; bytes after the last one are ignored
            if self._unpack.eof:
                if chunk[:1] != _GZIP_START:
                    return
                self._unpack = zlib.decompressobj(_GZIP)
            self._body += self._unpack.decompress(chunk, remaining)
            chunk = self._unpack.unused_data
            remaining = self._limit - len(self._body)
        self.response.truncated |= bool(self._unpack.unconsumed_tail) or not remaining

    def on_message_complete(self) -> None:
        """Record the end; an informational response (1xx) is followed by the final one."""
        if self.started:
            self.complete = True
        else:
            self.response = HttpResponse()

    def finish(self) -> HttpResponse:
        """Return the response with its body."""
        response = self.response
        response.body = bytes(self._body)
        if not response.truncated:
            framed = {"content-length", "transfer-encoding"} & response.headers.keys()
            is_open = self._unpack is not None and not self._unpack.eof and self._has_body
            response.incomplete = is_open or (bool(framed) and not self.complete)
            response.truncated = response.incomplete
        return response


async def send_request(
    request: HttpRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int
) -> HttpResponse:
    """Send a request on an open connection and return the response.

    At most `limit` bytes of the decompressed body are read.

    Raises:
        ToolError: the response is not HTTP, or its head is too large.
        OSError: the connection broke before a response.
    """
    writer.write(request.encode())
    await writer.drain()
    response = _ResponseReader(limit)
    parser = httptools.HttpResponseParser(response)
    response.status = parser.get_status_code
    head = 0
    while not response.complete and not response.response.truncated:
        chunk = await reader.read(_CHUNK)
        if not chunk:
            break
        _feed(parser, chunk)
        head += 0 if response.started else len(chunk)
        if head > _HEAD_LIMIT:
            raise ToolError("the response has too many headers")
    if not response.started:
        raise ToolError("the server closed the connection without a response")
    return response.finish()


def _feed(parser: httptools.HttpResponseParser, chunk: bytes) -> None:
    try:
        parser.feed_data(chunk)
    except httptools.HttpParserUpgrade as error:
        raise ToolError("the server switched to another protocol than HTTP") from error
    except httptools.HttpParserError as error:
        if isinstance(error.__context__, ToolError):
            raise error.__context__ from error
        if isinstance(error.__context__, zlib.error):
            raise ToolError("the response body cannot be decompressed") from error
        raise ToolError("the response is not HTTP") from error


Resolver = Callable[[str, int], Awaitable[list[str]]]
"""Returns all numeric addresses of a host; raises OSError without any."""

MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CONNECT_TIMEOUT_SECONDS = 8.0
_MAX_ADDRESSES = 4


class FetchedPage(msgspec.Struct, frozen=True):
    """A fetched page. `url` is the address after redirects."""

    url: PublicUrl
    response: HttpResponse


async def resolve_host(host: str, port: int) -> list[str]:
    """Return the addresses of a host from the system resolver.

    Raises:
        OSError: the name has no address.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


@functools.cache
def _system_tls() -> ssl.SSLContext:
    return ssl.create_default_context()  # loads all CA certificates: once, on first use


class Fetcher:
    """Fetches public addresses.

    Args:
        max_bytes: the largest decompressed body.
        timeout_seconds: the time for a fetch, redirects included.
        allow_private_networks: permit this machine and its networks; for trusted set-ups only.
        resolver: resolves host names.
        tls: the context that verifies servers; None for the CA certificates of the system.
    """

    def __init__(
        self,
        *,
        max_bytes: int = 2_000_000,
        timeout_seconds: float = 30.0,
        allow_private_networks: bool = False,
        resolver: Resolver = resolve_host,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.max_bytes = max_bytes
        self.timeout_seconds = timeout_seconds
        self._private = allow_private_networks
        self._resolve = resolver
        self._tls = tls

    async def fetch(self, url: PublicUrl) -> FetchedPage:
        """Fetch a URL, following at most five redirects within its site.

        Raises:
            ToolError: the address is not permitted, redirects to another site, cannot be reached or
                does not respond in time.
        """
        async with self._time_limit(url):
            return await self._follow(url)

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request. A redirect is returned, so that no header reaches another address.

        Raises:
            ToolError: the address is not permitted, cannot be reached or does not respond in time.
        """
        async with self._time_limit(request.url):
            return await self._exchange(request)

    @asynccontextmanager
    async def _time_limit(self, url: PublicUrl) -> AsyncGenerator[None]:
        try:
            async with asyncio.timeout(self.timeout_seconds):
                yield
        except TimeoutError as error:
            raise ToolError(
                f"{url.authority} did not respond in {self.timeout_seconds:g} s"
            ) from error

    async def _follow(self, url: PublicUrl) -> FetchedPage:
        for _ in range(MAX_REDIRECTS + 1):
            response = await self._exchange(HttpRequest(url))
            location = response.headers.get("location")
            if response.status not in _REDIRECTS or location is None:
                return FetchedPage(url, response)
            # some servers send raw UTF-8, although RFC 9110 15.4.2 does not allow it
            target = url.join(location.encode("latin-1").decode("utf-8", "replace"))
            if target.site != url.site:  # no rule or person allowed that site
                raise ToolError(
                    f"{url} redirects to another site: call web_fetch again with {target}"
                )
            url = target
        raise ToolError(f"more than {MAX_REDIRECTS} redirects, the last to {url}")

    async def _exchange(self, request: HttpRequest) -> HttpResponse:
        url = request.url
        reader, writer = await self._connect(url, await self._addresses(url))
        try:
            return await send_request(request, reader, writer, self.max_bytes)
        except OSError as error:
            raise ToolError(f"the connection to {url.authority} broke: {error}") from error
        finally:
            writer.transport.abort()  # close() would wait for the peer's TLS close_notify

    async def _addresses(self, url: PublicUrl) -> list[str]:
        """Return the addresses of the host; a single forbidden one rejects the host."""
        try:
            found = await self._resolve(url.host, url.port)
        except (OSError, UnicodeError) as error:
            raise ToolError(f"there is no host {url.host}") from error
        for address in found:
            if reason := address_refusal(address, private=self._private):
                raise ToolError(f"{url.host} may not be fetched: {reason}")
        if not found:
            raise ToolError(f"there is no host {url.host}")
        return list(dict.fromkeys(found))[:_MAX_ADDRESSES]

    async def _connect(
        self, url: PublicUrl, addresses: list[str]
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        tls = None
        if url.scheme == "https":
            tls = self._tls or await asyncio.to_thread(_system_tls)
        reason: OSError | None = None
        for address in addresses:
            try:
                async with asyncio.timeout(_CONNECT_TIMEOUT_SECONDS):
                    return await asyncio.open_connection(
                        address, url.port, ssl=tls, server_hostname=url.host if tls else None
                    )
            except ssl.SSLCertVerificationError as error:
                said = error.verify_message
                raise ToolError(f"the certificate of {url.host} is not valid: {said}") from error
            except OSError as error:  # TimeoutError is one
                reason = error
        why = (reason and (reason.strerror or str(reason))) or "no response"
        raise ToolError(f"{url.authority} cannot be reached: {why}") from reason
