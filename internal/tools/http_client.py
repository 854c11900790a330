"""HTTP client of web_fetch and web_search: http and https, to permitted addresses only.

Every hop is resolved once, all its addresses are checked, and the connection is made to one of them
(`internal.egress`). No proxy or cookie is used, and no credential but the caller's. The size of
responses is bounded.
"""

import asyncio
import zlib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec

from internal.agent.domain.errors import ToolError
from internal.egress.addresses import AddressRefused, Resolver, resolve_host
from internal.egress.messages import Failure, FailureKind, SessionRequest, quoted_url
from internal.egress.policy import checked_policy
from internal.egress.session_loader import load_sessions
from internal.normal_forms.http_status import status_phrase
from internal.text_encodings.labels import codec_of_label
from internal.tools.http_urls import PublicUrl

if TYPE_CHECKING:
    import ssl

    from aiohttp import ClientResponse

    from internal.egress.session import HttpSession

MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CONNECT_TIMEOUT_SECONDS = 8.0
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


_FAILURES: Mapping[FailureKind, str] = {
    "unknown_host": "there is no host {url.host}",
    "certificate": "the certificate of {url.host} is not valid: {reason}",
    "closed": "the server closed the connection without a response",
    "not_http": "the response is not HTTP",
    "large_head": "the response has too many headers",
}


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


class _Body:
    """The decompressed body of a response, of at most `limit` bytes.

    Raises:
        ToolError: the content encoding was not requested.
    """

    def __init__(self, encoding: str, limit: int) -> None:
        self.content = bytearray()
        self.truncated = False
        self._limit = limit
        self._unpack: zlib._Decompress | None = None
        names = [label.strip().removeprefix("x-") for label in encoding.lower().split(",")]
        packed = [name for name in names if name in _PACKED]
        if packed == ["gzip"]:
            self._unpack = zlib.decompressobj(_GZIP)
        elif packed:
            unread = ", ".join(packed)
            raise ToolError(f"the server sent an unrequested content encoding: {unread}")

    def add(self, chunk: bytes) -> None:
        """Add a chunk as it was sent.

        Raises:
            zlib.error: it cannot be decompressed.
        """
        remaining = self._limit - len(self.content)
        if self._unpack is None:
            self.content += chunk[:remaining]
            self.truncated |= len(chunk) > remaining
            return
        while chunk and remaining:
            # gzip data may have several members; bytes after the last one are ignored
            if self._unpack.eof:
                if chunk[:1] != _GZIP_START:
                    return
                self._unpack = zlib.decompressobj(_GZIP)
            self.content += self._unpack.decompress(chunk, remaining)
            chunk = self._unpack.unused_data
            remaining = self._limit - len(self.content)
        self.truncated |= bool(self._unpack.unconsumed_tail) or not remaining

    @property
    def lacks_end(self) -> bool:
        """Whether compressed data has no end."""
        return self._unpack is not None and not self._unpack.eof


async def _read(response: "ClientResponse", limit: int, broken: type[Exception]) -> HttpResponse:
    """Return a response with at most `limit` bytes of its body.

    Raises:
        ToolError: the body is encoded as it was not requested, or cannot be decompressed.
    """
    read = HttpResponse(response.status)
    for name, value in response.headers.items():
        # the last one of a name wins
        read.headers[name.lower()] = value.encode("utf-8", "surrogateescape").decode(
            "utf-8", "replace"
        )
    if read.status == HTTPStatus.SWITCHING_PROTOCOLS:
        raise ToolError("the server switched to another protocol than HTTP")
    body = _Body(read.headers.get("content-encoding", ""), limit)
    connection = response.connection  # None if the whole response was received
    protocol = None if connection is None else connection.protocol
    is_empty = True
    try:
        # nothing else is awaited here: aiohttp drops data that came before the connection broke
        while not body.truncated and (chunk := await response.content.readany()):
            is_empty = False
            body.add(chunk)
    except zlib.error as error:
        raise ToolError("the response body cannot be decompressed") from error
    except broken:
        read.incomplete = True
    read.body = bytes(body.content)
    # aiohttp takes a reset for the end of a body without a length
    is_reset = protocol is not None and isinstance(protocol.exception(), OSError)
    lacks_end = is_reset or (body.lacks_end and not is_empty)
    read.incomplete |= lacks_end and not body.truncated
    read.truncated = body.truncated or read.incomplete
    return read


class FetchedPage(msgspec.Struct, frozen=True):
    """A fetched page. `url` is the address after redirects."""

    url: PublicUrl
    response: HttpResponse


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
        tls: "ssl.SSLContext | None" = None,
    ) -> None:
        self.max_bytes = max_bytes
        self.timeout_seconds = timeout_seconds
        self._policy = partial(
            checked_policy, private=allow_private_networks, resolver=resolver, tls=tls
        )
        self._open: Callable[..., HttpSession] | None = None

    async def fetch(self, url: PublicUrl) -> FetchedPage:
        """Fetch a URL, following at most five redirects within its site.

        Raises:
            ToolError: the address is not permitted, redirects to another site, cannot be reached or
                does not respond in time.
        """
        async with self._time_limit(url):
            return await self._follow(url)

    async def send(
        self, url: PublicUrl, headers: Mapping[str, str], body: bytes | None = None
    ) -> HttpResponse:
        """Send a request: POST with a body, GET without one. `headers` replace the usual ones.

        A redirect is returned, so that no header reaches another address.

        Raises:
            ToolError: the address is not permitted, cannot be reached or does not respond in time.
        """
        async with self._time_limit(url):
            return await self._exchange(url, headers, body)

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
            response = await self._exchange(url)
            location = response.headers.get("location")
            if response.status not in _REDIRECTS or location is None:
                return FetchedPage(url, response)
            target = url.join(location)
            if target.site != url.site:  # no rule or person allowed that site
                raise ToolError(
                    f"{url} redirects to another site: call web_fetch again with {target}"
                )
            url = target
        raise ToolError(f"more than {MAX_REDIRECTS} redirects, the last to {url}")

    async def _exchange(
        self, url: PublicUrl, headers: Mapping[str, str] = _HEADERS, body: bytes | None = None
    ) -> HttpResponse:
        if self._open is None:
            self._open = await asyncio.to_thread(load_sessions, self._policy)
        http = self._open(
            keepalive_seconds=0, connect_seconds=_CONNECT_TIMEOUT_SECONDS, decompress=False
        )
        try:
            method = "GET" if body is None else "POST"
            sent = {"Host": url.authority, **_HEADERS, **headers}
            request = SessionRequest(method, quoted_url(str(url)), sent, body)
            with closing(await http.send(request)) as response:
                return await _read(response, self.max_bytes, http.broken_off)
        except AddressRefused as error:
            raise ToolError(f"{url.host} may not be fetched: {error}") from error
        except http.errors as error:
            raise ToolError(_describe(url, http.explain(error))) from error
        finally:
            await http.close()


def _describe(url: PublicUrl, failure: Failure) -> str:
    """Return why there is no response."""
    kind, reason = failure
    if kind == "closed" and reason:
        return f"the connection to {url.authority} broke: {reason}"
    form = _FAILURES.get(kind, "{url.authority} cannot be reached: {reason}")
    return form.format(url=url, reason=reason or "no response")
