"""Rows that retention removes."""

from typing import Literal, NamedTuple

from internal.agent.domain.ids import SessionId
from internal.agent.store.database import Batch, Read, Row, Statement, Write
from internal.agent.store.usage import UsageStore

RowKind = Literal["events", "inbox", "outbox", "audit_entries", "usage"]
"""A table whose rows have a number that increases with their time, more or less."""

MAX_ROWS = 500
"""Maximum number of rows removed in a transaction, so that other writes wait for milliseconds."""

_LISTS: dict[RowKind, tuple[str, ...]] = {
    "events": ("aging_earlier_events", "aging_events"),
    "inbox": ("aging_inbox",),
    "outbox": ("aging_outbox",),
    "audit_entries": ("aging_audit_entries",),
    "usage": ("aging_usage",),
}
_REMOVALS: dict[RowKind, tuple[str, ...]] = {
    "events": ("prune_earlier_event", "prune_event"),
    "inbox": ("prune_inbox",),
    "outbox": ("prune_outbox",),
    "audit_entries": ("prune_audit_entry",),
    "usage": ("prune_usage",),
}
PRUNE_QUERIES = tuple(
    name for queries in (_LISTS, _REMOVALS) for names in queries.values() for name in names
)
PRUNE_SESSION = (
    "prune_earlier_events_of_session",
    "prune_events_of_session",
    "prune_messages_of_session",
)


class RowPage(NamedTuple):
    """Rows in the order of their numbers.

    Attributes:
        last: the number of the last row, None at the end of the table.
        expired: the numbers of the rows that can be removed.
        has_old: a row is older than the limit, needed or not.
    """

    last: int | None
    expired: list[int]
    has_old: bool


class IdleSession(NamedTuple):
    """A session without unfinished runs, and the time of its last activity (RFC 3339)."""

    updated: str
    session_id: SessionId


class RetentionStore:
    """Rows that are older than a limit and that nothing needs."""

    def list_page(self, kind: RowKind, after: int, before: str, /) -> Read[RowPage]:
        """Return the rows after a number, up to `MAX_ROWS`; `before` (RFC 3339) is the limit.

        Events of unfinished and resumable runs and of pinned sessions are kept, and events that a
        webhook has not received; so are messages that are not handled or not sent.
        """
        rows: list[Row] = []
        for query in _LISTS[kind]:  # all rows of the first have smaller numbers
            rows = rows or (yield Statement(query, (after, MAX_ROWS)))
        end = None
        if kind == "events":
            readers = yield Statement("event_readers")
            end = min((position for _, position in readers), default=None)
        old = [(number, kept) for number, at, kept in rows if at < before]
        expired = [n for n, kept in old if not kept and (end is None or n <= end)]
        return RowPage(rows[-1][0] if rows else None, expired, bool(old))

    def remove_page(self, kind: RowKind, after: int, before: str, /) -> Write[RowPage]:
        """Remove the rows of `list_page`, and return them."""
        page = yield from self.list_page(kind, after, before)
        if page.expired and kind == "usage":
            yield from UsageStore().remove_old(after, page.expired[-1], before)
        elif page.expired:
            for query in _REMOVALS[kind]:
                yield Batch(query, [(number,) for number in page.expired])
            if kind == "events":
                yield Statement("record_pruned_events", (page.expired[-1],))
        return page

    def list_idle_sessions(
        self, before: str, after: IdleSession, /, *, one_shot: bool
    ) -> Read[list[IdleSession]]:
        """Return sessions without activity since a time (RFC 3339), longest idle first.

        Pinned sessions and sessions with unfinished runs are left out.

        Args:
            before: the time.
            after: the last session of the page before.
            one_shot: only sessions of single tasks.
        """
        values = (before, *after, 1 if one_shot else None, MAX_ROWS)
        return [IdleSession(*row) for row in (yield Statement("idle_sessions", values))]

    def is_idle(self, session_id: SessionId, before: str, /) -> Read[bool]:
        """Return True if `list_idle_sessions` returns the session."""
        return bool((yield Statement("session_is_idle", (session_id, before))))

    def remove_content(self, session_id: SessionId, before: str, /) -> Write[bool]:
        """Remove up to `MAX_ROWS` rows of an idle session.

        Return False when it has few rows left, so that it can be deleted in one transaction, or is
        no longer idle.
        """
        if not (yield from self.is_idle(session_id, before)):
            return False
        for query in PRUNE_SESSION:
            if (yield Statement(query, (session_id, MAX_ROWS))):
                return True
        runs = yield Statement("next_turn_log_of_session", (session_id,))
        if runs:
            yield Statement("prune_turn_log_of_run", (runs[0][0], MAX_ROWS))
        return bool(runs)
