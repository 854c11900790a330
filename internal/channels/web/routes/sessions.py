"""Routes for sessions, their messages and their events."""

from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from internal.agent.app.events.subscription import Cursor, parse_cursor
from internal.agent.app.waiting_messages import WaitingMessage
from internal.agent.domain.errors import NotFound
from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.tasks import SessionListFilter, SessionMarks
from internal.agent.ports.commands import BackgroundCommand, PrintedOutput
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.errors import HttpError
from internal.channels.web.schemas import (
    CreateSessionRequest,
    EditWaitingRequest,
    EmptyRequest,
    EventItem,
    EventsPage,
    EventsQuery,
    Flag,
    ForkSessionRequest,
    MessagesPage,
    MessagesQuery,
    MovedSessionView,
    MoveSessionRequest,
    SessionsPage,
    SessionsQuery,
    SessionView,
    UpdateSessionRequest,
    message_view,
    session_list_item,
    session_view,
)


async def create_session(request: ApiRequest[EmptyRequest, CreateSessionRequest]) -> SessionView:
    """Create an empty session."""
    title = _title(request.body.title) if request.body.title is not None else ""
    return session_view(
        await request.services.gateway.open_session(request.principal, request.channel, title=title)
    )


async def list_sessions(request: ApiRequest[SessionsQuery, EmptyRequest]) -> SessionsPage:
    """List sessions, pinned ones first, then most recently active first."""
    query = request.query
    wanted = SessionListFilter(
        text=(query.q or "").strip(),
        channel=query.channel or None,
        archived=_flag(query.archived),
        pinned=_flag(query.pinned),
        one_shot=_flag(query.one_shots),
    )
    page = await request.services.gateway.queries.sessions(
        request.principal, wanted, before=query.cursor or None, limit=query.limit
    )
    return SessionsPage([session_list_item(each) for each in page.sessions], page.next)


async def show_session(request: ApiRequest[EmptyRequest, EmptyRequest]) -> SessionView:
    """Return a session."""
    return session_view(
        await request.services.gateway.queries.session(_id(request), request.principal)
    )


async def change_session(request: ApiRequest[EmptyRequest, UpdateSessionRequest]) -> SessionView:
    """Rename a session, or change how it is listed."""
    body = request.body
    return session_view(
        await request.services.gateway.change_session(
            _id(request),
            request.principal,
            title=_title(body.title) if body.title else None,
            marks=SessionMarks(_given(body.pinned), _given(body.archived), _given(body.read)),
        )
    )


async def fork_session(request: ApiRequest[EmptyRequest, ForkSessionRequest]) -> SessionView:
    """Create a session with the messages of another one up to a run."""
    body = request.body
    forked = await request.services.gateway.fork_session(
        _id(request),
        request.principal,
        request.channel,
        run_id=None if body.run_id is None else RunId(body.run_id),
        includes_run=body.after,
        title=None if body.title is None else _title(body.title),
    )
    return session_view(forked)


async def move_session(request: ApiRequest[EmptyRequest, MoveSessionRequest]) -> MovedSessionView:
    """Let another host execute the next tasks of a session, without the files on its host."""
    moved = await request.services.gateway.move_session(
        _id(request), request.principal, request.channel, host=request.body.host
    )
    return MovedSessionView(moved.previous, "" if moved.archive is None else moved.archive.saved)


class CommandsView(msgspec.Struct, frozen=True):
    """The background commands of a session in the process that answers, oldest first."""

    commands: list[BackgroundCommand]


async def list_commands(request: ApiRequest[EmptyRequest, EmptyRequest]) -> CommandsView:
    """List the background commands of a session."""
    return CommandsView(
        await request.services.gateway.commands.list_all(_id(request), request.principal)
    )


async def read_command(request: ApiRequest[EmptyRequest, EmptyRequest]) -> PrintedOutput:
    """The end of the output of a background command, also after its end."""
    return await request.services.gateway.commands.read(
        _id(request), request.path["command_id"], request.principal
    )


async def stop_command(request: ApiRequest[EmptyRequest, EmptyRequest]) -> BackgroundCommand:
    """End a background command and all that it started."""
    return await request.services.gateway.commands.stop(
        _id(request), request.path["command_id"], request.principal
    )


async def delete_session(request: ApiRequest[EmptyRequest, EmptyRequest]) -> None:
    """Delete a session with its tasks, messages and events."""
    await request.services.gateway.delete_session(_id(request), request.principal)


async def list_messages(request: ApiRequest[MessagesQuery, EmptyRequest]) -> MessagesPage:
    """List the newest messages of a session, or those before a cursor, oldest first."""
    query = request.query
    before = int(query.cursor) if query.cursor else None
    rows = await request.services.gateway.queries.messages(
        _id(request), request.principal, before=before, limit=query.limit + 1
    )
    oldest_first = sorted(rows, key=attrgetter("number"))
    page = [message_view(row) for row in oldest_first[-query.limit :]]
    waiting = await request.services.gateway.waiting.list_of(_id(request), request.principal)
    older = str(page[0].number) if len(rows) > query.limit else None
    return MessagesPage(page, older, list(waiting))


async def edit_waiting(request: ApiRequest[EmptyRequest, EditWaitingRequest]) -> WaitingMessage:
    """Replace the text of a message that waits. 409 if a model has read it."""
    return await request.services.gateway.waiting.edit(
        _id(request), _waiting_number(request), request.body.text, request.principal
    )


async def take_back(request: ApiRequest[EmptyRequest, EmptyRequest]) -> None:
    """Take a message back that waits, or settle one that was given back. 409 if it was read."""
    await request.services.gateway.waiting.take_back(
        _id(request), _waiting_number(request), request.principal
    )


async def list_events(request: ApiRequest[EventsQuery, EmptyRequest]) -> EventsPage:
    """List the stored events of a session after or before an ID, including debug events.

    With both they are the last of those between. `types` filters within a page, so a page may be
    short or empty and still have a `next`.
    """
    query, queries = request.query, request.services.gateway.queries
    session_id, principal = _id(request), request.principal
    after = parse_cursor(query.after) if query.after else None
    if query.before:
        before = None if query.before == "end" else parse_cursor(query.before)
        page = await queries.events_before(session_id, principal, before, limit=query.limit)
    else:
        page = await queries.events(session_id, principal, after=after, limit=query.limit)
    bounds, rows, reset_reason = page
    if reset_reason or (after is not None and after.epoch != bounds.epoch):
        raise HttpError(
            410, "cursor_gone", "The cursor is not in the log anymore. Read from the beginning."
        )
    types = None if query.types is UNSET else frozenset(query.types.split(","))
    rows = [row for row in rows if after is None or row.position > after.position]
    is_full = len(rows) == query.limit
    return EventsPage(
        events=[
            EventItem(str(Cursor(bounds.epoch, row.position)), msgspec.Raw(row.json))
            for row in rows
            if types is None or row.event in types
        ],
        next=None if query.before else _edge(bounds.epoch, rows[-1:], is_full=is_full),
        previous=_edge(bounds.epoch, rows[:1], is_full=is_full) if query.before else None,
        head=str(Cursor(bounds.epoch, bounds.head)),
        earliest=str(Cursor(bounds.epoch, bounds.earliest)),
    )


def _edge(epoch: str, edge: list[EventRecord], *, is_full: bool) -> str | None:
    """Return the ID at which another page begins, None if this page was not full."""
    return str(Cursor(epoch, edge[0].position)) if is_full else None


def _id(request: ApiRequest[Any, Any]) -> SessionId:
    return SessionId(request.path["session_id"])


def _waiting_number(request: ApiRequest[Any, Any]) -> int:
    if request.number is None:
        raise NotFound(
            f"This session has no message {request.path['number'][:80]}.",
            reason_code="no_waiting_message",
            number=request.path["number"][:80],
        )
    return request.number


def _flag(value: Flag | UnsetType) -> bool | None:
    return None if value is UNSET else value == "true"


def _given(value: bool | UnsetType) -> bool | None:
    return None if value is UNSET else value


def _title(title: str) -> str:
    """Return a title on one line, without control characters; "" if nothing else is in it."""
    return " ".join("".join(c if c.isprintable() else " " for c in title).split())
