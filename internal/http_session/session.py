"""Persistent connections to servers, with aiohttp."""

import io
import ssl
from typing import Any

import aiohttp
from yarl import URL

from internal.http_session.messages import SessionRequest, SessionResponse

_LARGE_BYTES = 1024 * 1024


class _Attempt:
    """One try to send a request. `kept`: over a connection that served another one before."""

    kept = False


class HttpSession:
    """The connections to servers. Keeps no cookies, follows no redirects, reads no environment.

    `tls` verifies servers and proxies, as aiohttp's `ssl`. `max_connections` 0 is no limit.
    Without a `timeout`, callers limit the time.
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

    def __init__(
        self,
        tls: ssl.SSLContext | bool,
        *,
        keepalive_seconds: float,
        max_connections: int = 0,
        timeout: aiohttp.ClientTimeout | None = None,
    ) -> None:
        trace = aiohttp.TraceConfig()
        trace.on_connection_reuseconn.append(_note_kept)
        trace.on_connection_create_start.append(_note_new)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=max_connections, keepalive_timeout=keepalive_seconds, ssl=tls
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=timeout or aiohttp.ClientTimeout(),
            trace_configs=[trace],
        )

    async def fetch(self, request: SessionRequest, proxy: str | None) -> SessionResponse:
        """Send a request and return the whole response; raises as `send` does."""
        async with await self.send(request, proxy) as response:
            return SessionResponse(response.status, response.headers, await response.read())

    async def send(self, request: SessionRequest, proxy: str | None) -> aiohttp.ClientResponse:
        """Send a request and return the response, whose body is not read yet.

        The server may close a connection that was kept before or while the request is sent. It is
        then sent once more, if nothing was received. A reset does not tell that, so only idempotent
        requests are sent again after one.

        Raises:
            aiohttp.ClientError, OSError: it is among `unsent` if the server did not receive it.
        """
        attempt = _Attempt()
        try:
            return await self._send_once(request, proxy, attempt)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            if not attempt.kept or not (request.is_idempotent or _is_unanswered(error)):
                raise
            lost = error
        try:
            return await self._send_once(request, proxy, _Attempt())
        except self.unsent as error:
            raise lost from error  # the server may have received the first attempt

    async def _send_once(
        self, request: SessionRequest, proxy: str | None, attempt: _Attempt
    ) -> aiohttp.ClientResponse:
        method, url, headers, body, _ = request
        options: dict[str, Any] = {}
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

    async def close(self) -> None:
        """Close the connections. The session cannot be used afterwards."""
        await self._session.close()


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
