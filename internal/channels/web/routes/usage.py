"""The route of usage: what was used and what it cost."""

import msgspec

from internal.agent.domain.ids import SessionId
from internal.agent.domain.usage import Usage, UsageKey
from internal.channels.web.endpoints import Call
from internal.channels.web.schemas import Given, Id, Limit, Nothing


class UsageQuery(Given, frozen=True):
    """What is summed up: all, or one session; under which key; how many keys at most."""

    by: UsageKey = "day"
    session_id: Id | None = None
    limit: Limit = 50


class UsageRow(msgspec.Struct, frozen=True):
    """What was used under a key. `cost` in US dollars, of what has a known price."""

    key: str
    usage: Usage
    cost: float | None


class UsageView(msgspec.Struct, frozen=True):
    """What was used, the newest key first."""

    usage: list[UsageRow]


async def list_usage(call: Call[UsageQuery, Nothing]) -> UsageView:
    """Return what was used by day, session or model."""
    query = call.query
    found = await call.door.gateway.queries.costs(
        call.principal,
        query.by,
        session_id=None if query.session_id is None else SessionId(query.session_id),
        limit=query.limit,
    )
    return UsageView([UsageRow(one.key, one.usage, one.cost) for one in found])
