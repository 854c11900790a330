"""Connections for SDKs that take an httpx2 transport: the same checks as those of our own clients.

Imports httpx2.
"""

import httpx2

from internal.egress.addresses import AddressCheck, Resolver, resolve_host
from internal.egress.certificates import system_certificates


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Resolves a host once, checks every address, and connects to a checked one.

    TLS is verified against the name. Nothing of the environment is read, such as proxies.

    Args:
        check: which addresses are permitted.
        inner: sends requests to addresses.
    """

    def __init__(self, check: AddressCheck, inner: httpx2.AsyncHTTPTransport) -> None:
        self._check, self._inner = check, inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to the first address that accepts a connection.

        Raises:
            AddressRefused: the policy does not permit an address of the host.
            UnknownHost: the host has no address.
            httpx2.HTTPError: the server cannot be reached.
        """
        url = request.url
        port = url.port or (443 if url.scheme == "https" else 80)
        *others, last = await self._check.resolve(url.host, port)
        for address in others:
            try:
                return await self._send(request, address)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await self._send(request, last)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()

    async def _send(self, request: httpx2.Request, address: str) -> httpx2.Response:
        checked = httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,  # with the name of the host
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": request.url.host},
        )
        return await self._inner.handle_async_request(checked)


def open_checked_transport(*, private: bool, resolver: Resolver = resolve_host) -> CheckedTransport:
    """Return a transport with the system's certificates. Reads files; see `AddressCheck`."""
    inner = httpx2.AsyncHTTPTransport(verify=system_certificates())
    return CheckedTransport(AddressCheck(private=private, resolver=resolver), inner)
