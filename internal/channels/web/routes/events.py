"""The route of the event stream."""

from msgspec import UNSET

from internal.agent.app.events.live_buffer import SessionFilter
from internal.agent.app.events.subscription import Cursor, parse_cursor
from internal.agent.domain.errors import Forbidden, InvalidRequest
from internal.agent.domain.ids import SessionId
from internal.channels.web.endpoints import ApiRequest, StreamRequest
from internal.channels.web.errors import HttpError
from internal.channels.web.schemas import EmptyRequest, StreamQuery

_TRUE = {"1", "true"}


async def watch_events(request: ApiRequest[StreamQuery, EmptyRequest]) -> StreamRequest:
    """Stream stored and live events of sessions as server-sent events (docs/streams.md).

    The header Last-Event-ID takes precedence over `after`, and `after` over `replay`.
    """
    if request.context.method == "HEAD":
        raise HttpError(400, "malformed", "Event streams do not support HEAD. Use GET.")
    query = request.query
    return StreamRequest(
        await _watched(request),
        await _start(request),
        debug=query.debug in _TRUE,
        named=query.unnamed not in _TRUE,
    )


async def _watched(request: ApiRequest[StreamQuery, EmptyRequest]) -> SessionFilter:
    query = request.query
    if (query.session_id is UNSET) is (query.sessions is UNSET):
        raise InvalidRequest("Set either session_id or sessions.", reason_code="stream_of_sessions")
    if query.sessions == "*":
        if not request.principal.may("owner"):
            raise Forbidden(
                "Only the owner can watch all sessions. List the sessions to watch.",
                reason_code="all_sessions_by_owner",
            )
        return None
    ids = [query.session_id] if query.session_id else (query.sessions or "").split(",")
    sessions = frozenset(SessionId(session_id) for session_id in ids)
    await request.services.gateway.queries.check_sessions(sorted(sessions), request.principal)
    return sessions


async def _start(request: ApiRequest[StreamQuery, EmptyRequest]) -> Cursor | None:
    values = request.context.headers(b"last-event-id")
    if len(values) > 1:
        raise InvalidRequest(
            "The header Last-Event-ID is given more than once.", reason_code="last_event_twice"
        )
    if values and values[0]:
        return parse_cursor(values[0].decode("latin-1"))
    if request.query.after:
        return parse_cursor(request.query.after)
    if request.query.replay == "none":
        return None
    bounds = await request.services.gateway.queries.bounds()
    return Cursor(bounds.epoch, 0)
