"""A call: one request as a route's handler sees it, with everything checked that can be."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import msgspec
from starlette.responses import Response

from internal.agent.app.events.subscription import Cursor, SessionFilter
from internal.agent.domain.principals import Principal
from internal.agent.domain.tasks import Channel
from internal.channels.web.channel import WebDoor
from internal.channels.web.errors import HttpRefusal
from internal.channels.web.guards import Exchange
from internal.channels.web.schemas import Given, Nothing

_TERMINAL = b"larkspur-cli"

Query = TypeVar("Query")
Body = TypeVar("Body")


@dataclass(frozen=True, slots=True)
class Call(Generic[Query, Body]):
    """What a client asks of a route. `path` holds the ids of the address."""

    door: WebDoor
    exchange: Exchange
    path: dict[str, str]
    query: Query
    body: Body

    @property
    def principal(self) -> Principal:
        """Return who asks.

        Raises:
            HttpRefusal: nobody proved who they are; only a public route sees such a call.
        """
        if self.exchange.principal is None:
            raise HttpRefusal(401, "unauthorized", "Say who you are.")
        return self.exchange.principal

    @property
    def channel(self) -> Channel:
        """The door that the person stands at: a terminal says so. It gives no right."""
        named = self.exchange.headers(b"user-agent")
        return "cli" if named == [_TERMINAL] else "web"


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """What a reader asked to watch. `start` None shows nothing stored."""

    watched: SessionFilter
    start: Cursor | None
    debug: bool


Answer = msgspec.Struct | Response | StreamPlan | None
"""A handler's answer: JSON, a response of its own, a stream, or nothing (204)."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A line of the route table. `public` ones answer without a credential."""

    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str
    handler: Callable[[Call[Any, Any]], Awaitable[Answer]]
    reply: type[msgspec.Struct] | None = None
    status: int = 200
    query: type[Given] = Nothing
    body: type[Given] = Nothing
    media_type: str = "application/json"
    public: bool = False
