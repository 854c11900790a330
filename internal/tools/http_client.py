"""The one fetcher of the whole program: http and https, and only where it may go.

Each hop is resolved once; every address that the name has is checked; one of those very addresses
is connected to, so that nothing is resolved a second time between the check and the use. TLS is
verified against the name. No proxy, no cookie, no credential is ever used.
"""

import asyncio
import functools
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from internal.agent.domain.errors import ToolError
from internal.tools.http_exchange import HttpResponse, send_request
from internal.tools.http_urls import PublicUrl, address_refusal

Resolver = Callable[[str, int], Awaitable[list[str]]]
"""Gives all numeric addresses of a host; raises OSError when there is none."""

MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CONNECT_SECONDS = 8.0
_MAX_ADDRESSES = 4


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """What an address gave in the end: `url` is where the redirects led."""

    url: PublicUrl
    answer: HttpResponse


async def resolve_host(host: str, port: int) -> list[str]:
    """Ask the system's resolver.

    Raises:
        OSError: the name has no address.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


@functools.cache
def _system_tls() -> ssl.SSLContext:
    return ssl.create_default_context()  # reads all authorities: once, when first needed


class Fetcher:
    """Fetches public addresses.

    Args:
        max_bytes: how much of a body is read, unpacked.
        seconds: the time for everything, redirects included.
        allow_private_networks: also this machine and its networks; for trusted set-ups only.
        resolver: what turns names into addresses.
        tls: how servers are verified; None for the system's authorities.
    """

    def __init__(
        self,
        *,
        max_bytes: int = 2_000_000,
        seconds: float = 30.0,
        allow_private_networks: bool = False,
        resolver: Resolver = resolve_host,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.max_bytes = max_bytes
        self.seconds = seconds
        self._private = allow_private_networks
        self._resolve = resolver
        self._tls = tls

    async def fetch(self, url: PublicUrl) -> FetchedPage:
        """Get an address, following at most five redirects within its site.

        Raises:
            ToolError: it may not be fetched, leads to another site, cannot be reached, or does not
                answer in time.
        """
        try:
            async with asyncio.timeout(self.seconds):
                return await self._follow(url)
        except TimeoutError as error:
            raise ToolError(f"{url.authority} did not answer in {self.seconds:g} s") from error

    async def _follow(self, url: PublicUrl) -> FetchedPage:
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._get(url)
            location = answer.headers.get("location")
            if answer.status not in _REDIRECTS or location is None:
                return FetchedPage(url, answer)
            # sent as UTF-8 by those who do not encode it (RFC 9110 15.4.2 allows neither)
            target = url.joined(location.encode("latin-1").decode("utf-8", "replace"))
            if target.site != url.site:  # nobody was asked about that one
                raise ToolError(f"{url} leads to another site: call web_fetch again with {target}")
            url = target
        raise ToolError(f"more than {MAX_REDIRECTS} redirects, the last to {url}")

    async def _get(self, url: PublicUrl) -> HttpResponse:
        reader, writer = await self._connect(url, await self._addresses(url))
        try:
            return await send_request(url, reader, writer, self.max_bytes)
        except OSError as error:
            raise ToolError(f"the connection to {url.authority} broke: {error}") from error
        finally:
            writer.transport.abort()  # close() would wait for the peer's TLS goodbye

    async def _addresses(self, url: PublicUrl) -> list[str]:
        """Resolve the host and check all that it has: one bad address spoils the name."""
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
                async with asyncio.timeout(_CONNECT_SECONDS):
                    return await asyncio.open_connection(
                        address, url.port, ssl=tls, server_hostname=url.host if tls else None
                    )
            except ssl.SSLCertVerificationError as error:
                said = error.verify_message
                raise ToolError(f"the certificate of {url.host} is not valid: {said}") from error
            except OSError as error:  # TimeoutError is one
                reason = error
        why = (reason and (reason.strerror or str(reason))) or "no answer"
        raise ToolError(f"{url.authority} cannot be reached: {why}") from reason
