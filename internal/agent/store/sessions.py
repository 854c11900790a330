"""Sessions and their messages."""

from collections.abc import Sequence
from sys import getsizeof
from typing import Any

import msgspec

from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.messages import (
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    without_refused,
)
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.react.context_window import weigh
from internal.agent.domain.react.history import MessageKind, StoredMessage, message_kinds
from internal.agent.domain.react.request_messages import MAX_KEPT_BYTES, WeighedMessage
from internal.agent.domain.tasks import (
    Channel,
    Session,
    SessionList,
    SessionListFilter,
    SessionMarks,
    SessionSummary,
    Task,
)
from internal.agent.domain.text import excerpt
from internal.agent.store.database import Batch, Read, Row, Statement, Write
from internal.agent.store.encoding import storable, to_json
from internal.agent.store.tasks import list_calls_not_run
from internal.agent.store.usage import UsageStore

_MESSAGE_BYTES, _PART_BYTES, _IMAGE_BYTES = 450, 50, 500
_ARGUMENTS_BYTES, _FRAME_BYTES = 350, 100
"""Bytes of memory of a message without its parts, of a part without its texts, of an image, of
arguments without their values, and what an encoding contains besides the text."""
_message = msgspec.json.Decoder(Message)
_FIRST_CURSOR = (2, "", "")  # sorts after every (pinned, timestamp, id)
_SEARCHED_PAGE = 100
MAX_SEARCHED = 1_000
"""Number of sessions that a page of a search reads; a short page may have a next one."""
_SNIPPET_CHARACTERS = 120
_MAX_NUMBER = 2**62
_DELETE_CONTENTS = (
    "delete_checkpoints_of_session",
    "delete_turn_logs_of_session",
    "delete_earlier_events_of_session",
    "delete_events_of_session",
    "delete_event_runs_of_session",
    "delete_messages_of_session",
    "delete_questions_of_session",
    "delete_plans_of_session",
    "delete_permission_rules_of_session",
    "delete_inbox_of_session",
    "delete_outbox_of_session",
    "delete_run_displays_of_session",
    "delete_conversations_of_session",
    "delete_artifacts_of_session",
    "delete_task_waits_of_session",
    "delete_task_dependencies_of_session",
    "delete_runs_of_session",
    "delete_request_results_of_session",
    "delete_tasks_of_session",
)


class SessionStore:
    """Sessions, and the messages of their conversations."""

    def add(self, session: Session, /) -> Write[None]:
        """Insert a session.

        Raises:
            Conflict: the id exists.
        """
        yield Statement(
            "insert_session",
            (
                session.id,
                session.channel,
                session.owner,
                session.created,
                session.updated,
                storable(session.title),
                session.scope,
                session.one_shot,
                bool(session.title),
                session.forked_from,
                session.permission_mode or "",
                session.plan_review,
            ),
        )

    def get(self, session_id: SessionId, /) -> Read[Session | None]:
        """Return a session."""
        rows = yield Statement("session", (session_id,))
        return _session(rows[0]) if rows else None

    def get_newest(self, owner: str, channel: Channel, /) -> Read[Session | None]:
        """Return the most recently active session of an owner in a channel."""
        rows = yield Statement("newest_session", (owner, channel))
        return _session(rows[0]) if rows else None

    def get_current(self, channel: Channel, scope: str, /) -> Read[Session | None]:
        """Return the most recently created session of a scope."""
        rows = yield Statement("current_session", (channel, scope))
        return _session(rows[0]) if rows else None

    def list_page(
        self, owner: str | None, wanted: SessionListFilter, before: str | None, limit: int, /
    ) -> Read[SessionList]:
        """Return sessions, pinned ones first, then most recently active first.

        A page of a search may have less than `limit` sessions, or none, and still have a next one.

        Args:
            owner: the owner's principal id; None for the sessions of all owners.
            wanted: which sessions.
            before: return the sessions after this session id in the order. No session is returned
                when the id is unknown or belongs to another owner.
            limit: the maximum number of sessions.
        """
        if not wanted.text:
            page = yield from self._list_after(owner, wanted, before, limit + 1)
            last = page[limit - 1].session.id if len(page) > limit else None
            return SessionList(page[:limit], last)
        return (yield from self._search(owner, wanted, before, limit))

    def _list_after(
        self, owner: str | None, wanted: SessionListFilter, before: str | None, limit: int, /
    ) -> Read[list[SessionSummary]]:
        cursor: Row = _FIRST_CURSOR
        if before is not None:
            rows = yield Statement("session_cursor", (before, owner))
            if not rows:
                return []
            cursor = rows[0]
        conditions = (wanted.channel, wanted.archived, wanted.pinned, wanted.one_shot)
        if owner is None:
            rows = yield Statement("sessions_page", (*cursor, *conditions, limit))
        else:
            rows = yield Statement("sessions_page_of_owner", (*cursor, *conditions, owner, limit))
        missed = yield from list_calls_not_run(row[18] for row in rows if row[16] == "completed")
        return [
            SessionSummary(_session(row), row[16], row[17], row[19], missed.get(row[18], 0))
            for row in rows
        ]

    def _search(
        self, owner: str | None, wanted: SessionListFilter, before: str | None, limit: int, /
    ) -> Read[SessionList]:
        found: list[SessionSummary] = []
        for _ in range(MAX_SEARCHED // _SEARCHED_PAGE):
            page = yield from self._list_after(owner, wanted, before, _SEARCHED_PAGE)
            for summary in page:
                before = summary.session.id
                snippet = yield from self._find_text(summary.session, wanted.text)
                if snippet:
                    found.append(msgspec.structs.replace(summary, found=snippet))
                    if len(found) == limit:
                        return SessionList(found, summary.session.id)
            if len(page) < _SEARCHED_PAGE:
                return SessionList(found, None)
        return SessionList(found, None if before is None else SessionId(before))

    def _find_text(self, session: Session, text: str, /) -> Read[str]:
        """Return where the title, a task or an answer contains a text, or ""."""
        if text.lower() in session.title.lower():
            return session.title
        rows = yield Statement("text_found", (session.id, _pattern(text)))
        return excerpt(rows[0][0], text, _SNIPPET_CHARACTERS) if rows else ""

    def rename(self, session_id: SessionId, title: str, now: str, /) -> Write[bool]:
        """Set the title that a person chose. Return False when there is no such session."""
        rows = yield Statement("rename_session", (session_id, storable(title), now))
        return bool(rows)

    def replace_first_title(self, session_id: SessionId, old: str, new: str, /) -> Write[None]:
        """Replace a title that was taken from the first task, if it is `old`."""
        yield Statement("retitle_session", (session_id, storable(old), storable(new)))

    def set_title_unless_named(self, session_id: SessionId, title: str, /) -> Write[bool]:
        """Replace a title that was taken from the first task. Return whether it was replaced."""
        rows = yield Statement("name_session", (session_id, storable(title)))
        return bool(rows)

    def is_named(self, session_id: SessionId, /) -> Read[bool]:
        """Return whether a person, a plan or a model chose the title."""
        rows = yield Statement("session_is_named", (session_id,))
        return bool(rows and rows[0][0])

    def mark(self, session_id: SessionId, marks: SessionMarks, now: str, /) -> Write[None]:
        """Change how a session is listed."""
        seen = None if marks.read is None else now if marks.read else ""
        yield Statement("mark_session", (session_id, marks.pinned, marks.archived, seen))

    def add_task(self, task: Task, title: str, *, one_shot: bool) -> Write[None]:
        """Count a new task that is not a subtask; `title` is for a session that has none."""
        workspace = storable(task.spec.workspace)
        spec = (task.spec.policy.mode, task.spec.plan_review)
        values = (task.session_id, task.created, task.id, workspace, storable(title), one_shot)
        yield Statement("add_session_task", (*values, *spec))

    def touch(self, session_id: SessionId, now: str) -> Write[None]:
        """Mark a session as active."""
        yield Statement("touch_session", (session_id, now))

    def delete(self, session_id: SessionId, /) -> Write[bool]:
        """Delete a session and everything in it, except its audit entries.

        Return False when there is no such session or one of its runs has not ended.
        """
        rows = yield Statement("delete_session", (session_id,))
        if not rows:
            return False
        yield from UsageStore().remove_of_session(session_id, rows[0][0])
        for query in _DELETE_CONTENTS:
            yield Statement(query, (session_id,))
        return True

    def add_messages(
        self, session_id: SessionId, run_id: RunId, messages: Sequence[Message], *, now: str
    ) -> Write[None]:
        """Append the messages of an ended run to the conversation."""
        kinds = message_kinds(messages)
        yield Batch(
            "insert_message",
            [
                (session_id, run_id, now, kind, to_json(message))
                for kind, message in zip(kinds, messages, strict=True)
            ],
        )
        yield Statement("end_session_run", (session_id, now))

    def copy_messages(self, source: SessionId, target: SessionId, last: int, /) -> Write[None]:
        """Copy the messages of a session up to a number into an empty session."""
        yield Statement("copy_messages", (source, target, last))

    def list_numbers_of_run(
        self, session_id: SessionId, run_id: RunId, /
    ) -> Read[tuple[int, int] | None]:
        """Return the numbers of the first and the last message of a run, None if it has none."""
        ((first, last),) = yield Statement("messages_of_run", (session_id, run_id))
        return None if first is None else (first, last)

    def list_messages(
        self, session_id: SessionId, before: int | None, limit: int, /, *, as_written: bool = False
    ) -> Read[list[StoredMessage]]:
        """Return messages before a number, newest first.

        Messages that a content filter refused are a note, or empty, unless they are read
        `as_written`.
        """
        rows = yield Statement("messages_before", (session_id, _top(before), limit))
        return _stored(rows, as_written=as_written)

    def list_newest(
        self, session_id: SessionId, first: int, limit: int, /
    ) -> Read[list[StoredMessage]]:
        """Return messages from number `first` on, newest first: the newest if there are more."""
        rows = yield Statement("messages_from", (session_id, first, limit))
        return _stored(rows)

    def list_words(
        self, session_id: SessionId, before: int | None, limit: int, /
    ) -> Read[list[StoredMessage]]:
        """Return the messages of every kind but `exchange` before a number, newest first."""
        rows = yield Statement("words_before", (session_id, _top(before), limit))
        return _stored(rows)

    def get_last_message(
        self, session_id: SessionId, kind: MessageKind, before: int | None, /
    ) -> Read[StoredMessage | None]:
        """Return the last message of a kind before a number; of any kind but `exchange`."""
        rows = yield Statement("last_message_of_kind", (session_id, _top(before), kind))
        return _stored(rows)[0] if rows else None


def _session(row: Row) -> Session:
    flags = (bool(flag) for flag in row[7:10])
    mode = Mode(row[14]) if row[14] else None
    values = (*row[:7], *flags, *row[10:14], mode, row[15])
    return Session(*values)


def _pattern(text: str) -> str:
    """Return the pattern of LIKE that matches texts containing a text."""
    for special in ("\\", "%", "_"):
        text = text.replace(special, f"\\{special}")
    return f"%{storable(text)}%"


def _top(before: int | None) -> int:
    return _MAX_NUMBER if before is None else before


def _stored(rows: Sequence[Row], *, as_written: bool = False) -> list[StoredMessage]:
    """Return the messages of rows. Messages of one run share its id and time."""
    shared: dict[str, str] = {}
    stored: list[StoredMessage] = []
    for number, run_id, kind, message, created in rows:
        decoded = _message.decode(message)
        weighed = weigh(decoded if as_written else without_refused(decoded))
        run = RunId(shared.setdefault(run_id, run_id))
        time = shared.setdefault(created, created)
        stored.append(StoredMessage(number, run, kind, time, weighed, _memory(weighed)))
    return stored


def _memory(weighed: WeighedMessage) -> int:
    """Return about the bytes of memory that a message takes once it was sent to a provider."""
    size = _MESSAGE_BYTES
    for part in weighed.message.parts:
        size += _PART_BYTES
        match part:
            case Text(text):
                size += _text_memory(text)
            case ToolResult(call_id, text, _, images, wire_id):
                size += _text_memory(text) + getsizeof(call_id) + len(images) * _IMAGE_BYTES
                size += getsizeof(wire_id) if wire_id else 0
            case ToolCall(call_id, name, arguments, malformed, opaque, wire_id):
                size += getsizeof(call_id) + getsizeof(name) + _text_memory(malformed or "")
                size += _ARGUMENTS_BYTES + 3 * len(to_json(arguments)) + _opaque_memory(opaque)
                size += getsizeof(wire_id) if wire_id else 0
            case Thinking(text, signature, redacted, opaque):
                size += _text_memory(text) + _text_memory(signature) + _text_memory(redacted)
                size += _opaque_memory(opaque)
            case Image():
                size += _IMAGE_BYTES
    # an encoding has about three bytes per token
    return size + min(3 * weighed.tokens + _FRAME_BYTES, MAX_KEPT_BYTES)


def _opaque_memory(opaque: dict[str, Any] | None) -> int:
    return 3 * len(to_json(opaque)) if opaque else 0


def _text_memory(text: str) -> int:
    # Python keeps the UTF-8 form of other texts once they were encoded
    return getsizeof(text) if text.isascii() else getsizeof(text) + len(text.encode("utf-8"))
