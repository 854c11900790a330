"""Streamable HTTP for servers, over connections to checked addresses.

The SDK follows redirects within the origin of the server only.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp_types import INTERNAL_ERROR

from internal.egress.addresses import AddressRefused, Resolver, UnknownHost, resolve_host
from internal.egress.sdk_transport import CheckedTransport, open_checked_transport
from internal.mcp.limits import MAX_MESSAGE_BYTES, ServerFailure
from internal.mcp.message_parser import decoded, read_messages

_CONNECT_SECONDS = 8.0
_WRITE_SECONDS = 30.0
_EVENT_STREAM = "text/event-stream"
_IDENTITY = "identity"
_OLDER_SERVER_STATUSES = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}
)
"""Answers of servers with HTTP+SSE to a message at the address of their stream."""


class ServerTransport(httpx2.AsyncBaseTransport):
    """Requests to one server. Bodies are bounded and not compressed.

    Failures are answered with a JSON-RPC error, which the SDK passes to the call: an exception
    would end the connection for all calls, without a reason.

    Args:
        inner: connects to checked addresses.
        login_hint: message if the server demands a login; "" leaves that to the caller.
    """

    def __init__(self, inner: CheckedTransport, *, login_hint: str = "") -> None:
        self._inner, self._login_hint = inner, login_hint
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
        try:
            return await self._inner.handle_async_request(request)
        except (AddressRefused, UnknownHost) as error:
            raise ServerFailure(str(error)) from error


async def open_transport(
    *, private: bool, login_hint: str = "", resolver: Resolver = resolve_host
) -> ServerTransport:
    """Return a transport; see its class. Its certificates are loaded in a thread."""
    inner = await asyncio.to_thread(open_checked_transport, private=private, resolver=resolver)
    return ServerTransport(inner, login_hint=login_hint)


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
