"""Sessions and their messages in tables."""

from collections.abc import Sequence

import msgspec

from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.messages import Message
from internal.agent.domain.tasks import Channel, Session, SessionSummary
from internal.agent.store.database import Batch, Read, Row, Statement, Write
from internal.agent.store.encoding import plain, to_json

_message = msgspec.json.Decoder(Message)
_TOP = ("9999", "")  # behind every instant
_NEWEST = 2**62  # behind every number
_PARTS = (
    "delete_checkpoints_of_session",
    "delete_turn_logs_of_session",
    "delete_events_of_session",
    "delete_messages_of_session",
    "delete_questions_of_session",
    "delete_plans_of_session",
    "delete_rules_of_session",
    "delete_costs_of_session",
    "delete_inbox_of_session",
    "delete_outbox_of_session",
    "delete_showings_of_session",
    "delete_runs_of_session",
    "delete_tasks_of_session",
)


class SessionStore:
    """Fills `Sessions`."""

    def add(self, session: Session, /) -> Write[None]:
        """Insert a session.

        Raises:
            Conflict: the id is taken.
        """
        yield Statement(
            "insert_session",
            (
                session.id,
                session.channel,
                session.owner,
                session.created,
                session.updated,
                plain(session.title),
                session.scope,
            ),
        )

    def get(self, session_id: SessionId, /) -> Read[Session | None]:
        """Return a session."""
        rows = yield Statement("session", (session_id,))
        return Session(*rows[0]) if rows else None

    def get_newest(self, owner: str, channel: Channel, /) -> Read[Session | None]:
        """Return the session of an owner that was last active in a channel."""
        rows = yield Statement("newest_session", (owner, channel))
        return Session(*rows[0]) if rows else None

    def get_current(self, channel: Channel, scope: str, /) -> Read[Session | None]:
        """Return the newest session of a scope."""
        rows = yield Statement("newest_session_of_scope", (channel, scope))
        return Session(*rows[0]) if rows else None

    def list_page(
        self, owner: str | None, before: str | None, limit: int, /
    ) -> Read[list[SessionSummary]]:
        """Return sessions, last active first, behind the session id `before`; None: everybody's.

        `status` is that of the newest task. Nothing stands behind an id that is not such a session.
        """
        place: Row = _TOP
        if before is not None:
            rows = yield Statement("place_of_session", (before, owner))
            if not rows:
                return []
            place = rows[0]
        if owner is None:
            rows = yield Statement("sessions_page", (*place, limit))
        else:
            rows = yield Statement("sessions_page_of_owner", (*place, limit, owner))
        return [SessionSummary(Session(*row[:7]), row[7], row[8]) for row in rows]

    def rename(self, session_id: SessionId, title: str, now: str, /) -> Write[bool]:
        """Set the title; False when there is no such session."""
        rows = yield Statement("rename_session", (session_id, plain(title), now))
        return bool(rows)

    def set_title_if_empty(self, session_id: SessionId, title: str, /) -> Write[bool]:
        """Set the title if the session has none."""
        rows = yield Statement("entitle_session", (session_id, plain(title)))
        return bool(rows)

    def delete(self, session_id: SessionId, /) -> Write[bool]:
        """Delete a session with all that is its.

        False when one of its runs has not ended, and when there is no such session.
        """
        rows = yield Statement("delete_session", (session_id,))
        if not rows:
            return False
        for query in _PARTS:
            yield Statement(query, (session_id,))
        return True

    def add_messages(
        self, session_id: SessionId, run_id: RunId, messages: Sequence[Message], now: str, /
    ) -> Write[None]:
        """Add messages to the conversation. They are never rewritten."""
        yield Batch(
            "insert_message",
            [(session_id, run_id, now, to_json(message)) for message in messages],
        )
        yield Statement("touch_session", (session_id, now))

    def list_messages(
        self, session_id: SessionId, before: int | None, limit: int, /
    ) -> Read[list[tuple[int, RunId, Message, str]]]:
        """Return the newest messages before a position: (position, run, message, instant).

        Positions count the messages of a session from 1; the newest comes first.
        """
        top = _NEWEST if before is None else before
        rows = yield Statement("messages_before", (session_id, top, limit))
        return [
            (number, run_id, _message.decode(message), created)
            for number, run_id, message, created in rows
        ]
