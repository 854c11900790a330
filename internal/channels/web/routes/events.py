"""The route of the event stream: from what a reader asks for to what is watched."""

from internal.agent.app.events.subscription import Cursor, SessionFilter, parse_cursor
from internal.agent.domain.errors import Forbidden, InvalidRequest
from internal.agent.domain.ids import SessionId
from internal.channels.web.endpoints import Call, StreamPlan
from internal.channels.web.errors import HttpRefusal
from internal.channels.web.schemas import Nothing, StreamQuery

MOST_SESSIONS = 100


async def watch_events(call: Call[StreamQuery, Nothing]) -> StreamPlan:
    """Stream the events of sessions, stored and live, as server-sent events (docs/streams.md).

    The header Last-Event-ID beats `after`, and that beats `replay`.
    """
    if call.exchange.method == "HEAD":
        raise HttpRefusal(400, "malformed", "A stream has no HEAD: ask with GET.")
    return StreamPlan(await _watched(call), await _start(call), call.query.debug)


async def _watched(call: Call[StreamQuery, Nothing]) -> SessionFilter:
    query = call.query
    if (query.session_id is None) is (query.sessions is None):
        raise InvalidRequest("Name what to watch: either session_id or sessions.")
    if query.sessions == "*":
        if not call.principal.may("owner"):
            raise Forbidden("Only the owner may watch all sessions: name yours.")
        return None
    names = [query.session_id] if query.session_id else (query.sessions or "").split(",")
    if len(names) > MOST_SESSIONS:
        raise InvalidRequest(f"At most {MOST_SESSIONS} sessions can be watched at once.")
    sessions = frozenset(SessionId(name) for name in names)
    for session_id in sorted(sessions):
        await call.door.gateway.queries.session(session_id, call.principal)
    return sessions


async def _start(call: Call[StreamQuery, Nothing]) -> Cursor | None:
    given = call.exchange.headers(b"last-event-id")
    if len(given) > 1:
        raise InvalidRequest("There are several Last-Event-ID headers.")
    if given and given[0]:
        return parse_cursor(given[0].decode("latin-1"))
    if call.query.after is not None:
        return parse_cursor(call.query.after)
    if call.query.replay == "none":
        return None
    bounds = await call.door.gateway.queries.bounds()
    # not 0: where the log's oldest rows were deleted, that would be a cursor that is too old
    return Cursor(bounds.epoch, bounds.earliest - 1)
