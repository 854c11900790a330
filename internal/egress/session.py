"""Connections to servers, with aiohttp, as a policy permits and routes them."""

import io
import math
import socket
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from internal.egress.addresses import AddressCheck
from internal.egress.failures import explain
from internal.egress.messages import SessionRequest, SessionResponse
from internal.egress.policy import EgressPolicy

MAX_HEADERS = 256
MAX_HEADER_BYTES = 65_536
"""The largest line of the head of a response; some policies of pages are longer than 8 KB."""
_LARGE_BYTES = 1024 * 1024


class _Attempt:
    """One try to send a request. `kept`: over a connection that served another one before."""

    kept = False


class HttpSession:
    """The connections to servers. Keeps no cookies, follows no redirects, reads no environment.

    Args:
        policy: what may be reached, and how.
        keepalive_seconds: how long an unused connection stays open; 0 to close each after its use.
        connect_seconds: limits the time to connect; without it, callers limit the time.
        silence_seconds: limits the time between two packets of a response, likewise.
        max_connections: 0 is no limit.
        decompress: False to leave bodies as they are sent.
    """

    errors = (aiohttp.ClientError, OSError)
    """What sending a request and reading its response raise; a timeout is an `OSError`."""
    unsent = (
        aiohttp.ClientConnectorError,
        aiohttp.ConnectionTimeoutError,
        aiohttp.ClientHttpProxyError,
        aiohttp.InvalidURL,
    )
    """Those of them that are raised before the server can have received the request."""
    broken_off = aiohttp.ClientPayloadError
    """That of them which is raised when a response ends early."""
    explain = staticmethod(explain)
    """Why one of them was raised."""

    def __init__(
        self,
        policy: EgressPolicy,
        *,
        keepalive_seconds: float,
        connect_seconds: float | None = None,
        silence_seconds: float | None = None,
        max_connections: int = 0,
        decompress: bool = True,
    ) -> None:
        self._policy = policy
        trace = aiohttp.TraceConfig()
        trace.on_connection_reuseconn.append(_note_kept)
        trace.on_connection_create_start.append(_note_new)
        checked = policy.addresses
        connector = aiohttp.TCPConnector(
            limit=max_connections,
            keepalive_timeout=keepalive_seconds or None,
            force_close=not keepalive_seconds,
            ssl=policy.tls,
            # with a cache, a host would be checked less often than it is connected to
            use_dns_cache=checked is None,
            resolver=None if checked is None else _CheckedResolver(checked),
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(sock_connect=connect_seconds, sock_read=silence_seconds),
            trace_configs=[trace],
            auto_decompress=decompress,
            skip_auto_headers=("Content-Type",),
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
            max_headers=MAX_HEADERS,
        )

    async def fetch(self, request: SessionRequest, max_bytes: float = math.inf) -> SessionResponse:
        """Send a request and return the response, cut at `max_bytes`; raises as `send` does."""
        response = await self.send(request)
        body = await self.read_body(response, max_bytes)
        return SessionResponse(response.status, response.headers, body)

    async def send(self, request: SessionRequest) -> aiohttp.ClientResponse:
        """Send a request and return the response, whose body is not read yet.

        The server may close a connection that was kept before or while the request is sent. It is
        then sent once more, if nothing was received. A reset does not tell that, so only idempotent
        requests are sent again after one.

        Raises:
            aiohttp.ClientError, OSError: it is among `unsent` if the server did not receive it.
            AddressRefused: the policy does not permit an address of the host.
        """
        attempt = _Attempt()
        try:
            return await self._send_once(request, attempt)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            if not attempt.kept or not (request.is_idempotent or _is_unanswered(error)):
                raise
            lost = error
        try:
            return await self._send_once(request, _Attempt())
        except self.unsent as error:
            raise lost from error  # the server may have received the first attempt

    async def _send_once(
        self, request: SessionRequest, attempt: _Attempt
    ) -> aiohttp.ClientResponse:
        method, url, headers, body, _ = request
        options: dict[str, Any] = {}
        host = url.raw_host or ""
        if self._policy.addresses is not None and _is_address(host):
            await self._policy.addresses.resolve(host, url.port or 0)
        try:
            proxy = self._policy.proxies.find(url.scheme, url.host or "", url.port or 0)
        except ValueError as error:
            raise aiohttp.InvalidURL(url, str(error)) from error
        if proxy is not None:
            proxy_url = URL(proxy)
            options["proxy"] = proxy_url.with_user(None)
            login = _proxy_login(proxy_url)
            # a proxy reads the request itself, or opens a tunnel for it
            if url.scheme == "https":
                options["proxy_headers"] = login
            else:
                headers = {**headers, **login}
        return await self._session.request(
            method,
            url,
            # aiohttp advises against bytes of this size
            data=io.BytesIO(body) if body and len(body) > _LARGE_BYTES else body,
            headers=headers,
            allow_redirects=False,
            trace_request_ctx=attempt,
            **options,
        )

    @staticmethod
    async def read_body(response: aiohttp.ClientResponse, max_bytes: float) -> bytes:
        """Return the body of a response, cut at `max_bytes`; raises `errors`.

        Closes the response, which has no effect where the whole of it was read.
        """
        body = bytearray()
        try:
            while len(body) < max_bytes and (chunk := await response.content.readany()):
                body += chunk
        finally:
            response.close()
        return bytes(body if len(body) <= max_bytes else body[: int(max_bytes)])

    async def close(self) -> None:
        """Close the connections. The session cannot be used afterwards."""
        await self._session.close()


class _CheckedResolver(AbstractResolver):
    """Gives aiohttp the checked addresses of a host. It connects to one of them."""

    def __init__(self, check: AddressCheck) -> None:
        self._check = check

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        del family
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in await self._check.resolve(host, port)
        ]

    async def close(self) -> None:
        pass


def _is_address(host: str) -> bool:
    """Return True if aiohttp connects to a host without asking a resolver."""
    return ":" in host or host.replace(".", "").isdigit()


async def _note_kept(_session: object, context: Any, _params: object) -> None:
    context.trace_request_ctx.kept = True


async def _note_new(_session: object, context: Any, _params: object) -> None:
    context.trace_request_ctx.kept = False  # aiohttp itself repeats idempotent methods


def _is_unanswered(error: aiohttp.ServerDisconnectedError | aiohttp.ClientOSError) -> bool:
    """Return True if the server closed the connection and had sent nothing."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        # the message is a text, or else the part of a response that was received
        return isinstance(error.message, str)
    # it was closed before the whole request was written
    return isinstance(error.__cause__, aiohttp.ClientConnectionResetError)


def _proxy_login(proxy: URL) -> dict[str, str]:
    if proxy.user is None:
        return {}
    login = aiohttp.encode_basic_auth(proxy.user, proxy.password or "")
    return {"Proxy-Authorization": login}
