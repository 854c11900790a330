"""Connections for SDKs that take an httpx2 transport, with the same checks as our own clients.

Imports httpx2.
"""

import ssl

import httpx2

from internal.egress.addresses import AddressCheck, Resolver, resolve_host
from internal.egress.certificates import system_context


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Resolves a host once, checks every address, and connects to a checked one.

    TLS is verified against the name. Proxies of the environment are not used.

    Args:
        check: which addresses are permitted.
        tls: verifies servers.
    """

    def __init__(self, check: AddressCheck, tls: ssl.SSLContext) -> None:
        self._check, self._tls = check, tls
        # one for each host: a pool knows the address only, and would use a connection that was
        # verified for another name with the same address
        self._pools: dict[str, httpx2.AsyncHTTPTransport] = {}

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
        for pool in self._pools.values():
            await pool.aclose()

    async def _send(self, request: httpx2.Request, address: str) -> httpx2.Response:
        host = request.url.host
        if host not in self._pools:
            self._pools[host] = httpx2.AsyncHTTPTransport(verify=self._tls)
        checked = httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,  # with the name of the host
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": host},
        )
        return await self._pools[host].handle_async_request(checked)


def open_checked_transport(*, private: bool, resolver: Resolver = resolve_host) -> CheckedTransport:
    """Return a transport with the system's certificates. Reads files; see `AddressCheck`."""
    return CheckedTransport(AddressCheck(private=private, resolver=resolver), system_context())
