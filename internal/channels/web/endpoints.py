"""Endpoints: entries of the route table, and the decoded request that a handler receives."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Literal, TypeVar

import msgspec
from starlette.responses import Response
from starlette.types import Message, Receive

from internal.agent.app.events.live_buffer import SessionFilter
from internal.agent.app.events.subscription import Cursor
from internal.agent.domain.principals import Principal
from internal.agent.domain.tasks import Channel
from internal.channels.web.requests import RequestContext
from internal.channels.web.schemas import EmptyRequest, RequestModel, StopTaskRequest
from internal.channels.web.services import WebServices

DEFAULT_MAX_BODY_BYTES = 16_384
_CLI_USER_AGENT = b"larkspur-cli"
_NUMBER = re.compile(r"[0-9]{1,18}")  # the range of a 64-bit integer

Query = TypeVar("Query")
Body = TypeVar("Body")


async def _receive_nothing() -> Message:
    """Wait forever, as for a client that stays connected."""
    nothing: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    return await nothing


class ApiRequest(msgspec.Struct, Generic[Query, Body], frozen=True):
    """A decoded request.

    `path` holds the path parameters, `content` the body as it was sent, unless it is streamed.
    `receive` tells of the end of the connection once the body is read.
    """

    services: WebServices
    context: RequestContext
    path: dict[str, str]
    query: Query
    body: Body
    content: bytes = b""
    receive: Receive = _receive_nothing

    @property
    def principal(self) -> Principal:
        """Return the authenticated principal.

        Raises:
            HttpError: The request is not authenticated; only public routes receive such requests.
        """
        return self.context.require_principal()

    @property
    def channel(self) -> Channel:
        """The channel that the user works in, according to the User-Agent. Grants no rights."""
        return "cli" if self.context.headers(b"user-agent") == [_CLI_USER_AGENT] else "web"

    @property
    def number(self) -> int | None:
        """The path parameter `number`; None if nothing can have that number."""
        text = self.path["number"]
        return int(text) if _NUMBER.fullmatch(text) else None


class StreamRequest(msgspec.Struct, frozen=True):
    """An event stream to open.

    Attributes:
        watched: The sessions whose events are sent.
        start: The cursor after which stored events are sent; None sends new ones only.
        debug: Diagnostic events are sent too.
        named: Frames have an `event` line; browsers hand others to `onmessage`.
    """

    watched: SessionFilter
    start: Cursor | None
    debug: bool
    named: bool = True


HandlerResult = msgspec.Struct | Response | StreamRequest | None
"""Result of a handler: a JSON body, a complete response, a stream, or nothing (204)."""


class Endpoint(msgspec.Struct, frozen=True):
    """An entry of the route table.

    Attributes:
        errors: The statuses of its own errors; `openapi` has the statuses of all endpoints.
        public_reply: The reply to clients without authentication, instead of `reply`.
        max_body_bytes: A larger body is rejected unread; `server.max_body_bytes` if that is less.
        streams_body: The body is of any media type; the handler reads it as an iterator of bytes,
            whose total is limited only by `max_body_bytes`.
        max_wait_seconds: How long the handler may wait in addition to the time of a request.
        public: The endpoint does not require authentication.
        takes_slashes: The parameter at the end of the path may contain slashes.
    """

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    handler: Callable[[ApiRequest[Any, Any]], Awaitable[HandlerResult]]
    reply: type[msgspec.Struct] | None = None
    status: int = 200
    query: type[RequestModel] = EmptyRequest
    body: type[RequestModel] = EmptyRequest
    media_type: str = "application/json"
    errors: tuple[int, ...] = ()
    public_reply: type[msgspec.Struct] | None = None
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES
    streams_body: bool = False
    max_wait_seconds: float = 0.0
    public: bool = False
    takes_slashes: bool = False

    @property
    def route(self) -> str:
        """The path as the router reads it."""
        return f"{self.path[:-1]}:path}}" if self.takes_slashes else self.path

    @property
    def may_omit_body(self) -> bool:
        """Return True if a body without fields, or that of a stop, may be omitted."""
        return self.body in {EmptyRequest, StopTaskRequest}
