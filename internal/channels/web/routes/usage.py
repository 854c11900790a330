"""The route for token usage and cost."""

import msgspec
from msgspec import UNSET, UnsetType

from internal.agent.domain.ids import SessionId
from internal.agent.domain.usage import UsageKey, UsageSum
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.schemas import EmptyRequest, Id, Limit, RequestModel


class UsageQuery(RequestModel, frozen=True):
    """How usage is grouped, for which session, and the maximum number of groups."""

    by: UsageKey = "day"
    session_id: Id | UnsetType = UNSET
    limit: Limit = 50


class UsageView(msgspec.Struct, frozen=True):
    """Usage by group, newest first."""

    usage: list[UsageSum]


async def list_usage(request: ApiRequest[UsageQuery, EmptyRequest]) -> UsageView:
    """Return token usage and cost by day, session or model."""
    query = request.query
    found = await request.services.gateway.queries.usage(
        request.principal,
        query.by,
        session_id=SessionId(query.session_id) if query.session_id else None,
        limit=query.limit,
    )
    return UsageView(found)
