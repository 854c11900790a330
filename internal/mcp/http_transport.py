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

from internal.agent.domain.permissions.addresses import address_refusal
from internal.mcp.limits import MAX_MESSAGE_BYTES, ServerFailure

_MAX_ADDRESSES = 4
_CONNECT_SECONDS = 8.0
_WRITE_SECONDS = 30.0
_EVENT_STREAM = "text/event-stream"


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Resolves a host once, checks every address, and connects to a checked one.

    TLS is verified against the name. Bodies are bounded and not compressed. What goes wrong is
    answered with an error of JSON-RPC, which the SDK gives to the call: an exception would end the
    connection for all calls, without a reason.

    Args:
        inner: sends requests to addresses.
        private: allow this machine and private networks.
    """

    def __init__(self, inner: httpx2.AsyncHTTPTransport, *, private: bool) -> None:
        self._inner, self._private = inner, private

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return the response, or one with the reason why there is none."""
        try:
            return await _bounded(await self._send(request))
        except (ServerFailure, httpx2.HTTPError) as error:
            reason = str(error) or type(error).__name__
            body = {"code": INTERNAL_ERROR, "message": f"{request.url.host}: {reason}"}
            return httpx2.Response(
                HTTPStatus.BAD_GATEWAY, json={"jsonrpc": "2.0", "id": None, "error": body}
            )

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


@asynccontextmanager
async def connect_http(
    url: str, headers: Mapping[str, str], *, private: bool
) -> AsyncGenerator[TransportStreams]:
    """Yield the streams of messages of a server. `private` allows this machine and its networks."""
    # in a thread: it loads all CA certificates
    inner = await asyncio.to_thread(httpx2.AsyncHTTPTransport, trust_env=False)
    timeout = httpx2.Timeout(_WRITE_SECONDS, connect=_CONNECT_SECONDS, read=None)
    async with (
        httpx2.AsyncClient(
            transport=CheckedTransport(inner, private=private),
            headers={**headers, "accept-encoding": "identity"},
            timeout=timeout,
            trust_env=False,
        ) as client,
        streamable_http_client(
            url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES
        ) as streams,
    ):
        yield streams


async def _bounded(response: httpx2.Response) -> httpx2.Response:
    """Return a response with its whole body; of an event stream the SDK bounds each event.

    Raises:
        ServerFailure: the body is too large, or compressed.
        httpx2.HTTPError: the connection broke.
    """
    encoding = response.headers.get("content-encoding", "identity").lower()
    is_stream = response.headers.get("content-type", "").lower().startswith(_EVENT_STREAM)
    if is_stream and encoding == "identity":
        return response
    async with contextlib.aclosing(response):
        if encoding != "identity":
            raise ServerFailure(f"an unrequested content encoding: {encoding[:50]}")
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > MAX_MESSAGE_BYTES:
                raise ServerFailure(f"a response of more than {MAX_MESSAGE_BYTES:,} bytes")
    headers = [
        (name, value)
        for name, value in response.headers.multi_items()
        if name.lower() not in {"content-length", "transfer-encoding"}
    ]
    return httpx2.Response(response.status_code, headers=headers, content=bytes(body))
