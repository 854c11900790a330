"""Reads the history of a run, in pages and within a budget."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from internal.agent.domain.ids import SessionId
from internal.agent.domain.react.context_window import is_exchange
from internal.agent.domain.react.history import (
    History,
    HistoryParts,
    HistoryRef,
    Part,
    StoredMessage,
)
from internal.agent.store.database import Read
from internal.agent.store.sessions import SessionStore

PAGE_SIZE = 50
MAX_CACHED_BYTES = 64_000_000
MESSAGE_BYTES, TOKEN_BYTES = 500, 12
"""About the most memory that a message takes without its text, and a token of the text: three
characters of up to four bytes."""

_Pages = Callable[[int | None, int], Read[list[StoredMessage]]]


class MessageCache:
    """Keeps the newest messages of the sessions that were used last.

    Any process may add messages to a session or delete it, so `read_history` checks them.
    """

    def __init__(self, max_bytes: int = MAX_CACHED_BYTES) -> None:
        self._max_bytes = max_bytes
        self._sessions: OrderedDict[SessionId, Sequence[StoredMessage]] = OrderedDict()
        self._sizes: dict[SessionId, int] = {}
        self.size = 0

    def get(self, session_id: SessionId) -> Sequence[StoredMessage]:
        """Return the kept messages of a session, newest first and without gaps."""
        return self._sessions.get(session_id, ())

    def put(self, session_id: SessionId, newest_first: Sequence[StoredMessage]) -> None:
        """Replace the kept messages of a session; those of other sessions may be dropped."""
        self._drop(session_id)
        tokens = sum(row.tokens for row in newest_first)
        self._sessions[session_id] = newest_first
        self._sizes[session_id] = len(newest_first) * MESSAGE_BYTES + tokens * TOKEN_BYTES
        self.size += self._sizes[session_id]
        while self.size > self._max_bytes:
            self._drop(next(iter(self._sessions)))

    def _drop(self, session_id: SessionId) -> None:
        self._sessions.pop(session_id, None)
        self.size -= self._sizes.pop(session_id, 0)


class HistoryRead(NamedTuple):
    """A history, and the newest messages of its session for a `MessageCache`."""

    history: History
    newest_first: Sequence[StoredMessage] = ()


def read_history(
    sessions: SessionStore,
    session_id: SessionId,
    budget: int,
    *,
    last: int | None = None,
    cached: Sequence[StoredMessage] = (),
) -> Read[HistoryRead]:
    """Return the messages of a session that fit into about `budget` tokens, up to number `last`.

    They form a valid conversation, which may end with a message of any role. The last question and
    its answer are included, shortened if necessary, also when they do not fit. `cached` are newest
    messages that an earlier call returned; they are not read again.
    """
    parts, list_page = HistoryParts.of(budget), partial(sessions.list_messages, session_id)
    known = yield from _refresh(sessions, session_id, cached)
    end = None if last is None else last + 1
    newest = yield from _read(_known_first(known, list_page), end, parts.everything)
    if not newest:
        return HistoryRead(History([]))
    whole_from = parts.everything.start(newest) and parts.whole.start(newest)
    older = yield from _read(_known_first(newest, list_page), whole_from, parts.short)
    short_from = parts.short.start(older)
    oldest = yield from _read(partial(sessions.list_words, session_id), short_from, parts.words)
    rows = [
        *_taken(oldest, parts.words.start(oldest)),
        *_without_orphan([*_taken(older, short_from), *_taken(newest, whole_from)]),
    ]
    essential = yield from _read_essential(sessions, session_id, end)
    if rows and rows[0].run_id not in {row.run_id for row in essential}:
        rows = yield from _without_partial_run(sessions, session_id, rows)
    missing = [row for row in essential if not rows or row.number < rows[0].number]
    rows = [*map(parts.words.shortened, missing), *rows]
    numbers = {row.number for row in essential}
    number = newest[0].number
    history = History(
        [row.message for row in rows],
        tuple(at for at, row in enumerate(rows) if row.number in numbers),
        HistoryRef(budget, number, number, len(rows)),
    )
    return HistoryRead(history, newest)


def load_history(sessions: SessionStore, session_id: SessionId, ref: HistoryRef) -> Read[History]:
    """Return the messages that a reference stands for."""
    history = History([])
    if ref.last:
        history, _ = yield from read_history(sessions, session_id, ref.budget, last=ref.last)
    if ref.until > ref.last:
        count = ref.until - ref.last
        rows = yield from sessions.list_messages(session_id, ref.until + 1, count)
        later = (row.message for row in reversed(rows))
        history = history._replace(messages=[*history.messages, *later])
    ref = msgspec.structs.replace(ref, count=len(history.messages))
    return history._replace(ref=ref)


def _refresh(
    sessions: SessionStore, session_id: SessionId, cached: Sequence[StoredMessage]
) -> Read[Sequence[StoredMessage]]:
    """Return the cached messages and those that were added since, newest first.

    If the cached ones are not in the session any more, or many were added, only newer ones.
    """
    if not cached:
        return ()
    page = yield from sessions.list_newest(session_id, cached[0].number, PAGE_SIZE)
    is_same = bool(page) and page[-1].run_id == cached[0].run_id
    if is_same and page[-1].number == cached[0].number:
        return [*page[:-1], *cached]
    return page


def _known_first(known: Sequence[StoredMessage], list_page: _Pages) -> _Pages:
    """Return a function that lists the known messages before it reads older ones."""

    def list_known(before: int | None, limit: int) -> Read[list[StoredMessage]]:
        start = 0 if before is None or not known else known[0].number + 1 - before
        if 0 <= start < len(known):
            return [*known[start : start + limit]]
        return (yield from list_page(before, limit))

    return list_known


def _read(list_page: _Pages, before: int | None, part: Part) -> Read[list[StoredMessage]]:
    """Return messages as they are in a part, newest first: more than fit into it, or all."""
    rows: list[StoredMessage] = []
    tokens = 0
    while tokens <= part.budget and before not in {0, 1}:  # numbers count from 1
        page = yield from list_page(before, PAGE_SIZE)
        page = [part.shortened(row) for row in page]
        rows += page
        tokens += sum(row.tokens for row in page)
        if not page:
            break
        before = page[-1].number
    return rows


def _taken(newest_first: list[StoredMessage], start: int) -> list[StoredMessage]:
    """Return the messages from a number on, oldest first."""
    return [row for row in reversed(newest_first) if row.number >= start]


def _without_orphan(rows: list[StoredMessage]) -> list[StoredMessage]:
    """Return the messages without results at the beginning, whose calls are left out."""
    orphan = rows and is_exchange(rows[0].message) and not rows[0].message.calls
    return rows[1:] if orphan else rows


def _without_partial_run(
    sessions: SessionStore, session_id: SessionId, rows: list[StoredMessage]
) -> Read[list[StoredMessage]]:
    """Return the messages without those of the first run if its task is not among them."""
    first = rows[0]
    task = yield from sessions.get_last_message(session_id, "task", first.number + 1)
    if task is not None and task.number == first.number:
        return rows
    return [row for row in rows if row.run_id != first.run_id]


def _read_essential(
    sessions: SessionStore, session_id: SessionId, end: int | None
) -> Read[list[StoredMessage]]:
    """Return the last answer with its question, and the last question; oldest first."""
    answer = yield from sessions.get_last_message(session_id, "answer", end)
    newest = question = yield from sessions.get_last_message(session_id, "task", end)
    if answer and newest and newest.number > answer.number:
        question = yield from sessions.get_last_message(session_id, "task", answer.number)
    rows = {row.number: row for row in (question, answer, newest) if row is not None}
    return [rows[number] for number in sorted(rows)]
