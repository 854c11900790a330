"""Routes of sessions."""

import re
from operator import itemgetter
from typing import Any

import msgspec

from internal.agent.app.events.subscription import Cursor, parse_cursor
from internal.agent.domain.errors import InvalidRequest, NotFound
from internal.agent.domain.ids import SessionId
from internal.channels.web.endpoints import Call
from internal.channels.web.errors import HttpRefusal
from internal.channels.web.schemas import (
    EventRow,
    EventsPage,
    EventsQuery,
    MessagesPage,
    NewSession,
    Nothing,
    PageQuery,
    SessionChange,
    SessionsPage,
    SessionView,
)
from internal.channels.web.views import row_of_session, view_of_message, view_of_session

_NUMBER = re.compile(r"[0-9]{1,18}")  # 18 digits: what every database holds


async def create_session(call: Call[Nothing, NewSession]) -> SessionView:
    """Begin an empty session."""
    title = _clean(call.body.title) if call.body.title is not None else ""
    return view_of_session(
        await call.door.gateway.open_session(call.principal, call.channel, title)
    )


async def list_sessions(call: Call[PageQuery, Nothing]) -> SessionsPage:
    """Return a page of sessions, last active first."""
    query, queries = call.query, call.door.gateway.queries
    before = None if query.cursor is None else SessionId(query.cursor)
    if before is not None:
        try:
            await queries.session(before, call.principal)
        except NotFound as error:
            raise InvalidRequest(f"There is no page {before[:80]}.") from error
    sessions = await queries.sessions(call.principal, before=before, limit=query.limit + 1)
    page = [row_of_session(summary) for summary in sessions[: query.limit]]
    return SessionsPage(page, page[-1].session_id if len(sessions) > query.limit else None)


async def show_session(call: Call[Nothing, Nothing]) -> SessionView:
    """Return a session."""
    return view_of_session(await call.door.gateway.queries.session(_id(call), call.principal))


async def change_session(call: Call[Nothing, SessionChange]) -> SessionView:
    """Give a session another title."""
    title = _clean(call.body.title)
    return view_of_session(await call.door.gateway.rename_session(_id(call), title, call.principal))


async def delete_session(call: Call[Nothing, Nothing]) -> None:
    """Delete a session with all that is its."""
    await call.door.gateway.delete_session(_id(call), call.principal)


async def list_messages(call: Call[PageQuery, Nothing]) -> MessagesPage:
    """Return the newest messages of a session, or those before a cursor; oldest first."""
    query = call.query
    before = None
    if query.cursor is not None:
        if _NUMBER.fullmatch(query.cursor) is None:
            raise InvalidRequest(f"There is no page {query.cursor[:80]}.")
        before = int(query.cursor)
    rows = await call.door.gateway.queries.messages(
        _id(call), call.principal, before=before, limit=query.limit + 1
    )
    oldest_first = sorted(rows, key=itemgetter(0))
    page = [view_of_message(*row) for row in oldest_first[-query.limit :]]
    return MessagesPage(page, str(page[0].number) if len(rows) > query.limit else None)


async def list_events(call: Call[EventsQuery, Nothing]) -> EventsPage:
    """Return the stored events of a session behind a wire id, the inner ones included.

    A page is cut from the log before `types` are picked, so it may be short, even empty, with a
    `next`.
    """
    query, queries = call.query, call.door.gateway.queries
    bounds = await queries.bounds()
    position = bounds.earliest - 1
    if query.after is not None:
        after = parse_cursor(query.after)
        if after.epoch != bounds.epoch or not position <= after.position <= bounds.head:
            raise HttpRefusal(
                410, "cursor_gone", "This log does not know the cursor: read from the beginning."
            )
        position = after.position
    rows = await queries.events(_id(call), call.principal, after=position, limit=query.limit)
    types = None if query.types is None else frozenset(query.types.split(","))
    return EventsPage(
        events=[
            EventRow(str(Cursor(bounds.epoch, row.position)), msgspec.Raw(row.json))
            for row in rows
            if types is None or row.event in types
        ],
        next=str(Cursor(bounds.epoch, rows[-1].position)) if len(rows) == query.limit else None,
        head=str(Cursor(bounds.epoch, bounds.head)),
        earliest=str(Cursor(bounds.epoch, bounds.earliest)),
    )


def _id(call: Call[Any, Any]) -> SessionId:
    return SessionId(call.path["session_id"])


def _clean(title: str) -> str:
    """Return a title on one line."""
    line = " ".join("".join(c if c.isprintable() else " " for c in title).split())
    if not line:
        raise InvalidRequest("The title is empty.")
    return line
