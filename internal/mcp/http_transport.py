"""Streamable HTTP for servers: public addresses only, each checked and then connected to.

The SDK follows redirects within the origin of the server only.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

from internal.agent.domain.permissions.addresses import address_refusal
from internal.mcp.limits import MAX_MESSAGE_BYTES, ServerFailure

_MAX_ADDRESSES = 4
_CONNECT_SECONDS = 8.0
_WRITE_SECONDS = 30.0
_EVENT_STREAM = "text/event-stream"


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Resolves a host once, checks every address, and connects to a checked one.

    TLS is verified against the name. Bodies are bounded and not compressed.

    Args:
        private: allow this machine and private networks.
    """

    def __init__(self, *, private: bool) -> None:
        self._private = private
        self._inner = httpx2.AsyncHTTPTransport(trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request.

        Raises:
            ServerFailure: the address is not permitted, or the response has a content encoding.
            httpx2.TransportError: the server cannot be reached.
        """
        host = request.url.host
        for last, address in enumerate(addresses := await self._addresses(request.url), 1):
            checked = httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,  # with the name of the host
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )
            try:
                response = await self._inner.handle_async_request(checked)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if last == len(addresses):
                    raise
            else:
                return await _bounded(response)
        raise ServerFailure(f"there is no host {host}")

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()

    async def _addresses(self, url: httpx2.URL) -> list[str]:
        """Return the addresses of a host; a single forbidden one rejects it."""
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            loop = asyncio.get_running_loop()
            resolved = await loop.getaddrinfo(url.host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise ServerFailure(f"there is no host {url.host}") from error
        found = list(dict.fromkeys(str(address[0]) for *_, address in resolved))
        for address in found:
            if reason := address_refusal(address, private=self._private):
                raise ServerFailure(f"{url.host} may not be connected to: {reason}")
        return found[:_MAX_ADDRESSES]


@asynccontextmanager
async def connect_http(
    url: str, headers: Mapping[str, str], *, private: bool
) -> AsyncGenerator[TransportStreams]:
    """Yield the streams of messages of a server. `private` allows this machine and its networks."""
    timeout = httpx2.Timeout(_WRITE_SECONDS, connect=_CONNECT_SECONDS, read=None)
    async with (
        httpx2.AsyncClient(
            transport=CheckedTransport(private=private),
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
    """Return a response whose body is bounded; of an event stream the SDK bounds each event."""
    encoding = response.headers.get("content-encoding", "identity").lower()
    if encoding not in {"identity", ""}:
        await response.aclose()
        raise ServerFailure(f"it sent an unrequested content encoding: {encoding[:50]}")
    if response.headers.get("content-type", "").lower().startswith(_EVENT_STREAM):
        return response
    return httpx2.Response(
        response.status_code,
        headers=response.headers,
        stream=_BoundedStream(response),
        extensions=response.extensions,
    )


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        remaining = MAX_MESSAGE_BYTES
        async for chunk in self._response.aiter_raw():
            remaining -= len(chunk)
            if remaining < 0:
                raise ServerFailure(f"it sent more than {MAX_MESSAGE_BYTES:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._response.aclose()
