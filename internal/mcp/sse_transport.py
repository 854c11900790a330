"""HTTP+SSE, the transport of servers of 2024: a stream of events, and a POST for each message.

The SDK has a client for it, which does not bound events, and leaves a call waiting whose message
the server refuses.
"""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urljoin, urlsplit

import anyio
import httpx2
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared._httpx_utils import request_within_origin, sse_within_origin
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCRequest

from internal.agent.domain.text import escape_hidden, truncate_line
from internal.mcp.http_transport import open_client
from internal.mcp.lenient_transport import received_items
from internal.mcp.limits import MAX_MESSAGE_BYTES, ServerFailure
from internal.mcp.message_parser import read_messages

POST_SECONDS = 30.0
"""Time that a server has to accept a message; its answer comes as an event."""
_MAX_REASON_CHARS = 300
_EVENT_STREAM = "text/event-stream"

_Received = SessionMessage | Exception


@asynccontextmanager
async def connect_sse(
    url: str, headers: Mapping[str, str], transport: httpx2.AsyncBaseTransport
) -> AsyncGenerator[TransportStreams]:
    """Yield the streams of messages of a server.

    Raises:
        ServerFailure: it does not begin a stream, or wants messages at another origin.
        httpx2.HTTPError: it cannot be reached.
    """
    async with (
        open_client(headers, transport) as client,
        sse_within_origin(client, url, max_event_size=MAX_MESSAGE_BYTES) as events,
    ):
        await _check_stream(events.response)
        iterator = aiter(events)
        endpoint = await _endpoint(url, iterator)
        found, messages = anyio.create_memory_object_stream[_Received](0)
        sent, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        async with found, messages, sent, outgoing, anyio.create_task_group() as tasks:
            tasks.start_soon(_read, iterator, found)
            tasks.start_soon(_write, partial(_post, client, endpoint), outgoing, found)
            try:
                yield messages, sent
            finally:
                tasks.cancel_scope.cancel()


async def _check_stream(response: httpx2.Response) -> None:
    kind = response.headers.get("content-type", "").lower()
    if response.status_code == HTTPStatus.OK and kind.startswith(_EVENT_STREAM):
        return
    await response.aread()
    reason = _reason(response) or f"it answers with {kind or 'nothing'}"
    raise ServerFailure(f"it begins no stream of HTTP+SSE: {reason}")


async def _endpoint(url: str, events: AsyncIterator[httpx2.ServerSentEvent]) -> str:
    """Return the address to which messages are sent: the server's first event names it.

    Raises:
        ServerFailure: it does not, or the address is of another origin.
    """
    async for event in events:
        if event.event == "endpoint":
            endpoint = urljoin(url, event.data.strip())
            if urlsplit(endpoint)[:2] != urlsplit(url)[:2]:
                shown = truncate_line(escape_hidden(endpoint), _MAX_REASON_CHARS)
                raise ServerFailure(f"it wants messages at another origin: {shown}")
            return endpoint
    raise ServerFailure("its stream ended before it named an address for messages")


async def _read(
    events: AsyncIterator[httpx2.ServerSentEvent], found: ObjectSendStream[_Received]
) -> None:
    """Pass on the messages of the server until its stream ends."""
    ends = anyio.BrokenResourceError, anyio.ClosedResourceError, httpx2.HTTPError, httpx2.SSEError
    with contextlib.suppress(*ends):
        async with found:
            async for event in events:
                for item in received_items(read_messages(event.data)):
                    await found.send(item)


async def _write(
    post: Callable[[SessionMessage], Awaitable[str]],
    outgoing: ObjectReceiveStream[SessionMessage],
    found: ObjectSendStream[_Received],
) -> None:
    """Send the messages of the client. A request that the server refuses fails at once."""
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for each in outgoing:
            reason = await post(each)
            if reason and isinstance(each.message, JSONRPCRequest):
                error = ErrorData(code=INTERNAL_ERROR, message=reason)
                failed = JSONRPCError(jsonrpc="2.0", id=each.message.id, error=error)
                await found.send(SessionMessage(failed))


async def _post(client: httpx2.AsyncClient, endpoint: str, message: SessionMessage) -> str:
    """Send a message and return why that failed, "" if it did not."""
    body: Any = message.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
    try:
        with anyio.fail_after(POST_SECONDS):
            response = await request_within_origin(client, "POST", endpoint, json=body)
    except TimeoutError:
        return f"it did not accept a message in {POST_SECONDS:g} s"
    except httpx2.HTTPError as error:
        return str(error) or type(error).__name__
    return _reason(response)


def _reason(response: httpx2.Response) -> str:
    """Return why a response is an error, "" if it is not."""
    if response.is_success:
        return ""
    try:
        said = response.json()["error"]["message"]
    except (ValueError, LookupError, TypeError):
        said = f"HTTP {response.status_code}: {response.text}"
    return truncate_line(escape_hidden(str(said)), _MAX_REASON_CHARS)
