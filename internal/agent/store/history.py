"""Reads the history of a run, in pages and within a budget."""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import NamedTuple

import msgspec

from internal.agent.domain.ids import SessionId
from internal.agent.domain.react.history import (
    History,
    HistoryParts,
    HistoryRef,
    MessageKind,
    Part,
    StoredMessage,
)
from internal.agent.store.database import Read
from internal.agent.store.sessions import SessionStore

PAGE_SIZE = 50
_number = attrgetter("number")

_Pages = Callable[[int | None, int], Read[list[StoredMessage]]]


class EarlierMessages(NamedTuple):
    """The messages before number `before` in a history with this budget, oldest first.

    They are the same for all runs for which the newest part begins there.
    """

    budget: int
    before: int
    words: Sequence[StoredMessage]
    short: Sequence[StoredMessage]

    @property
    def size(self) -> int:
        """About the bytes of memory that they take."""
        return sum([row.size for row in (*self.words, *self.short)])


class SessionMessages(NamedTuple):
    """Messages of a session in this process: the newest ones, newest first and without gaps.

    `tokens` and `size` are sums over all of them; `earlier` is from the last history.
    """

    newest_first: Sequence[StoredMessage] = ()
    tokens: int = 0
    size: int = 0
    earlier: EarlierMessages | None = None

    def preceded_by(self, older: Sequence[StoredMessage]) -> "SessionMessages":
        """Return these messages and older ones."""
        return self._replace(
            newest_first=[*self.newest_first, *older],
            tokens=self.tokens + sum([row.weighed.tokens for row in older]),
            size=self.size + sum([row.size for row in older]),
        )


NO_MESSAGES = SessionMessages()


class MessageCache:
    """Keeps the messages of the most recently used sessions, up to `max_bytes` of memory.

    Any process may add messages to a session or delete it, so `read_history` checks them.
    """

    def __init__(self, max_bytes: int = 64_000_000) -> None:
        self._max_bytes = max_bytes
        self._sessions: OrderedDict[SessionId, SessionMessages] = OrderedDict()
        self._sizes: dict[SessionId, int] = {}
        self.size = 0

    def get(self, session_id: SessionId) -> SessionMessages:
        """Return the known messages of a session."""
        return self._sessions.get(session_id, NO_MESSAGES)

    def put(self, session_id: SessionId, known: SessionMessages) -> None:
        """Replace the known messages of a session; other sessions may be dropped.

        Most sessions have a single task: nothing is kept of a session before its first messages.
        """
        self._drop(session_id)
        if not known.newest_first:
            return
        self._sessions[session_id] = known
        earlier = 0 if known.earlier is None else known.earlier.size
        self._sizes[session_id] = known.size + earlier
        self.size += self._sizes[session_id]
        while self.size > self._max_bytes:
            self._drop(next(iter(self._sessions)))

    def _drop(self, session_id: SessionId) -> None:
        self._sessions.pop(session_id, None)
        self.size -= self._sizes.pop(session_id, 0)


class HistoryRead(NamedTuple):
    """Session history with its read position."""

    history: History
    known: SessionMessages = NO_MESSAGES


def read_history(
    sessions: SessionStore,
    session_id: SessionId,
    budget: int,
    *,
    last: int | None = None,
    known: SessionMessages = NO_MESSAGES,
) -> Read[HistoryRead]:
    """Return the messages of a session that fit into about `budget` tokens, up to number `last`.

    They form a valid conversation, which may end with a message of any role. The last question and
    its answer are included, shortened if necessary, even when they do not fit. `known` is the
    result of an earlier call; it is not read again.
    """
    parts, list_page = HistoryParts.of(budget), partial(sessions.list_messages, session_id)
    known = yield from _refresh(sessions, session_id, known)
    end = None if last is None else last + 1
    found = yield from _read_newest(known, list_page, end, budget)
    newest = found.newest_first
    if not newest:
        return HistoryRead(History())
    essential = yield from _read_essential(sessions, session_id, newest, end)
    rows: Sequence[StoredMessage]
    if found.tokens <= budget:  # these are all messages
        rows = _without_orphan(newest[::-1])
    else:
        first = parts.whole.start(newest)
        earlier = known.earlier
        if earlier is None or (earlier.budget, earlier.before) != (budget, first):
            of_session = partial(sessions.list_words, session_id)
            earlier = yield from _read_earlier(
                parts, first, _known_first(newest, list_page), of_session
            )
        found = found._replace(earlier=earlier)
        whole = newest[: newest[0].number + 1 - first][::-1]
        rows = [*earlier.words, *_without_orphan([*earlier.short, *whole])]
    if rows and rows[0].run_id not in {row.run_id for row in essential}:
        rows = _without_partial_run(rows)
    missing = [row for row in essential if not rows or row.number < rows[0].number]
    rows = [*map(parts.words.shortened, missing), *rows]
    number = newest[0].number
    history = History(
        [row.weighed for row in rows],
        tuple(bisect_left(rows, row.number, key=_number) for row in essential),
        HistoryRef(budget, number, number, len(rows)),
    )
    return HistoryRead(history, found)


def load_history(sessions: SessionStore, session_id: SessionId, ref: HistoryRef) -> Read[History]:
    """Return the messages that a reference stands for."""
    history = History()
    if ref.last:
        history, _ = yield from read_history(sessions, session_id, ref.budget, last=ref.last)
    if ref.until > ref.last:
        count = ref.until - ref.last
        rows = yield from sessions.list_messages(session_id, ref.until + 1, count)
        later = (row.weighed for row in reversed(rows))
        history = history._replace(weighed=[*history.weighed, *later])
    ref = msgspec.structs.replace(ref, count=len(history.weighed))
    return history._replace(ref=ref)


def _refresh(
    sessions: SessionStore, session_id: SessionId, known: SessionMessages
) -> Read[SessionMessages]:
    """Return the known messages and the messages added since.

    If the known ones are no longer in the session, or many were added, return only newer ones.
    """
    newest = known.newest_first[:1]
    if not newest:
        return NO_MESSAGES
    page = yield from sessions.list_newest(session_id, newest[0].number, PAGE_SIZE)
    is_same = bool(page) and page[-1].run_id == newest[0].run_id
    if not (is_same and page[-1].number == newest[0].number):
        return NO_MESSAGES.preceded_by(page)
    if len(page) == 1:
        return known
    added = NO_MESSAGES.preceded_by(page[:-1])
    return known._replace(
        newest_first=[*added.newest_first, *known.newest_first],
        tokens=known.tokens + added.tokens,
        size=known.size + added.size,
    )


def _read_newest(
    known: SessionMessages, list_page: _Pages, before: int | None, budget: int
) -> Read[SessionMessages]:
    """Return the newest messages: more than fit into the budget, or all.

    Known messages far beyond the budget are dropped, but not in every run.
    """
    if before is None and known.tokens <= 2 * budget and known.newest_first:
        found, before = known, known.newest_first[-1].number
    else:
        found = SessionMessages(earlier=known.earlier)
    list_page = _known_first(known.newest_first, list_page)
    while found.tokens <= budget and before not in {0, 1}:  # numbers count from 1
        page = yield from list_page(before, PAGE_SIZE)
        if not page:
            break
        found = found.preceded_by(page)
        before = page[-1].number
    return found


def _read_earlier(
    parts: HistoryParts, before: int, list_page: _Pages, list_words: _Pages
) -> Read[EarlierMessages]:
    """Return the messages before the newest part."""
    short = yield from _read(list_page, before, parts.short)
    first = parts.short.start(short)
    words = yield from _read(list_words, first, parts.words)
    return EarlierMessages(
        parts.everything.budget,
        before,
        _taken(words, parts.words.start(words)),
        _taken(short, first),
    )


def _known_first(known: Sequence[StoredMessage], list_page: _Pages) -> _Pages:
    """Return a function that lists the known messages before it reads older ones."""

    def list_known(before: int | None, limit: int) -> Read[list[StoredMessage]]:
        start = 0 if before is None or not known else known[0].number + 1 - before
        if 0 <= start < len(known):
            return [*known[start : start + limit]]
        return (yield from list_page(before, limit))

    return list_known


def _read(list_page: _Pages, before: int | None, part: Part) -> Read[list[StoredMessage]]:
    """Return messages in the form of a part, newest first: more than fit into it, or all."""
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


def _without_orphan(rows: Sequence[StoredMessage]) -> Sequence[StoredMessage]:
    """Return the messages without results at the beginning, whose calls are left out."""
    orphan = rows and rows[0].weighed.is_exchange and not rows[0].message.calls
    return rows[1:] if orphan else rows


def _without_partial_run(rows: Sequence[StoredMessage]) -> Sequence[StoredMessage]:
    """Return the messages, dropping the ones of the first run if its task is not among them."""
    first = rows[0]
    if first.kind == "task":
        return rows
    return [row for row in rows if row.run_id != first.run_id]


def _read_essential(
    sessions: SessionStore,
    session_id: SessionId,
    newest_first: Sequence[StoredMessage],
    end: int | None,
) -> Read[list[StoredMessage]]:
    """Return the last answer with its question, and the last question; oldest first."""

    def find(kind: MessageKind, before: int | None) -> Read[StoredMessage | None]:
        for row in newest_first:
            if row.kind == kind and (before is None or row.number < before):
                return row
        if newest_first[-1].number == 1:
            return None
        return (yield from sessions.get_last_message(session_id, kind, before))

    answer = yield from find("answer", end)
    newest = question = yield from find("task", end)
    if answer and newest and newest.number > answer.number:
        question = yield from find("task", answer.number)
    rows = {row.number: row for row in (question, answer, newest) if row is not None}
    return [rows[number] for number in sorted(rows)]
