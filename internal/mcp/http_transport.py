"""Streamable HTTP for servers: public addresses only, each checked and then connected to.

The SDK follows redirects within the origin of the server only.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp_types import INTERNAL_ERROR

from internal.mcp.limits import MAX_MESSAGE_BYTES, ServerFailure
from internal.mcp.message_parser import decoded, read_messages
from internal.normal_forms.addresses import address_refusal

_MAX_ADDRESSES = 4
_CONNECT_SECONDS = 8.0
_WRITE_SECONDS = 30.0
_EVENT_STREAM = "text/event-stream"
_IDENTITY = "identity"
_OLDER_SERVER_STATUSES = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}
)
"""Answers of servers with HTTP+SSE to a message at the address of their stream."""


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Resolves a host once, checks every address, and connects to a checked one.

    TLS is verified against the name. Bodies are bounded and not compressed. Failures are answered
    with a JSON-RPC error, which the SDK passes to the call: an exception would end the connection
    for all calls, without a reason.

    Args:
        inner: sends requests to addresses.
        private: allow this machine and private networks.
        login_hint: message if the server demands a login; "" leaves that to the caller.
    """

    def __init__(
        self, inner: httpx2.AsyncHTTPTransport, *, private: bool, login_hint: str = ""
    ) -> None:
        self._inner, self._private, self._login_hint = inner, private, login_hint
        self.has_refused_message = False
        """True once a message was answered as by servers without streamable HTTP."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return the response, or one with the reason for its absence."""
        try:
            response = await self._send(request)
            if request.method == "POST" and response.status_code in _OLDER_SERVER_STATUSES:
                self.has_refused_message = True
            if self._login_hint and response.status_code == HTTPStatus.UNAUTHORIZED:
                await response.aclose()
                return error_response(self._login_hint)
            if _is_event_stream(response):
                return response  # the SDK bounds each event
            return _readable(await _bounded(response, MAX_MESSAGE_BYTES))
        except (ServerFailure, httpx2.HTTPError) as error:
            reason = str(error) or type(error).__name__
            return error_response(f"{request.url.host}: {reason}")

    async def exchange(self, request: httpx2.Request, max_bytes: int) -> httpx2.Response:
        """Send a request and return the response with its whole body.

        Raises:
            ServerFailure: the address is not permitted, or the body is too large or compressed.
            httpx2.HTTPError: the server cannot be reached.
        """
        return await _bounded(await self._send(request), max_bytes)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to the first address that accepts a connection.

        Raises:
            ServerFailure: the address is not permitted.
            httpx2.HTTPError: the server cannot be reached.
        """
        addresses = await self._addresses(request.url)
        for last, address in enumerate(addresses, 1):
            checked = httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,  # with the name of the host
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": request.url.host},
            )
            try:
                return await self._inner.handle_async_request(checked)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if last == len(addresses):
                    raise
        raise ServerFailure("there is no such host")

    async def _addresses(self, url: httpx2.URL) -> list[str]:
        """Return the addresses of a host; a single forbidden one rejects it.

        Raises:
            ServerFailure: there is none, or one is forbidden.
        """
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            loop = asyncio.get_running_loop()
            resolved = await loop.getaddrinfo(url.host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise ServerFailure("there is no such host") from error
        found = list(dict.fromkeys(str(address[0]) for *_, address in resolved))
        for address in found:
            if reason := address_refusal(address, private=self._private):
                raise ServerFailure(reason)
        return found[:_MAX_ADDRESSES]


async def open_transport(*, private: bool, login_hint: str = "") -> CheckedTransport:
    """Return a transport; see its class. Its certificates are loaded in a thread."""
    inner = await asyncio.to_thread(httpx2.AsyncHTTPTransport, trust_env=False)
    return CheckedTransport(inner, private=private, login_hint=login_hint)


@asynccontextmanager
async def connect_http(
    url: str, headers: Mapping[str, str], transport: httpx2.AsyncBaseTransport
) -> AsyncGenerator[TransportStreams]:
    """Yield the streams of messages of a server."""
    async with (
        open_client(headers, transport) as client,
        streamable_http_client(
            url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES
        ) as streams,
    ):
        yield streams


def open_client(
    headers: Mapping[str, str], transport: httpx2.AsyncBaseTransport
) -> httpx2.AsyncClient:
    """Return a client that sends these headers and does not time out while it reads."""
    return httpx2.AsyncClient(
        transport=transport,
        headers={**headers, "accept-encoding": _IDENTITY},
        timeout=httpx2.Timeout(_WRITE_SECONDS, connect=_CONNECT_SECONDS, read=None),
        trust_env=False,
    )


def error_response(message: str) -> httpx2.Response:
    """Return a response with an error of JSON-RPC, which the SDK gives to the call."""
    error = {"code": INTERNAL_ERROR, "message": message}
    body = {"jsonrpc": "2.0", "id": None, "error": error}
    return httpx2.Response(HTTPStatus.BAD_GATEWAY, json=body)


def _readable(response: httpx2.Response) -> httpx2.Response:
    """Return a response whose messages have the SDK's media type, whatever the server's is."""
    messages = read_messages(decoded(response.content))
    if messages is None:
        return response
    # of a batch, the answer
    message = next((each for each in messages if "method" not in each), messages[0])
    headers = {**response.headers, "content-type": "application/json"}
    return httpx2.Response(response.status_code, headers=headers, json=message)


def _is_event_stream(response: httpx2.Response) -> bool:
    kind = response.headers.get("content-type", "").lower()
    return kind.startswith(_EVENT_STREAM) and _encoding(response) == _IDENTITY


def _encoding(response: httpx2.Response) -> str:
    return response.headers.get("content-encoding", _IDENTITY).lower()


async def _bounded(response: httpx2.Response, max_bytes: int) -> httpx2.Response:
    """Return a response with its whole body.

    Raises:
        ServerFailure: the body is too large, or compressed.
        httpx2.HTTPError: the connection broke.
    """
    async with contextlib.aclosing(response):
        if (encoding := _encoding(response)) != _IDENTITY:
            raise ServerFailure(f"an unrequested content encoding: {encoding[:50]}")
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > max_bytes:
                raise ServerFailure(f"a response of more than {max_bytes:,} bytes")
    headers = [
        (name, value)
        for name, value in response.headers.multi_items()
        if name.lower() not in {"content-length", "transfer-encoding"}
    ]
    return httpx2.Response(response.status_code, headers=headers, content=bytes(body))
