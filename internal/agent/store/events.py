"""The event log: numbered per run by `seq`, ordered over all runs by `position`."""

import heapq
import secrets
from collections import deque
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

import msgspec

from internal.agent.domain.errors import Conflict, LeaseLost
from internal.agent.domain.events.envelope import (
    EnvelopeTemplate,
    EventRecord,
    RunIds,
    encode_envelope,
    split_envelope,
    wrap_event,
)
from internal.agent.domain.events.types import Event
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.tasks import StopRequest
from internal.agent.store.database import Batch, Lookup, Read, Row, Statement, Write
from internal.agent.store.encoding import to_json
from internal.agent.store.runs import read_stop

_MIN_SKIPPED = 2**32  # more than the events between a backup and its restoration
_SKIPPED_BITS = 31  # so that a million processes stay below 2^53, the range of JSON numbers


class LogBounds(NamedTuple):
    """The bounds of the log.

    `epoch` identifies the log and `head` is the newest position, 0 when the log is empty.
    `earliest` is the first position from which no event was removed, or `head + 1` when there is no
    event; a cursor is valid when it is `earliest - 1` or later, or 0, the start of the stored
    events.
    """

    epoch: str
    head: int
    earliest: int


class EventStore:
    """The event log."""

    def reserve_seqs(
        self, run_id: RunId, fence: int, count: int, /, used_seconds: float | None = None
    ) -> Write[tuple[int, StopRequest | None]]:
        """Reserve `count` sequence numbers of a running run.

        Return the first, and the request to stop the run if there is one. A count of 0 only
        verifies the fence, a negative one gives numbers back in the same transaction.
        `used_seconds` is the running time of the run so far.

        Raises:
            LeaseLost: the run is not running under this fence.
        """
        rows = yield Statement("reserve_seqs", (run_id, fence, count, used_seconds))
        if not rows:
            raise LeaseLost(f"Another process runs {run_id} now, or it has ended.")
        last_seq, stop = rows[0]
        return int(last_seq) - count + 1, None if stop is None else read_stop(stop)

    def reserve_seqs_of_idle_run(self, run_id: RunId, count: int, /) -> Write[int]:
        """Reserve `count` sequence numbers of a queued or waiting run and return the first.

        Raises:
            Conflict: the run is running or has ended.
        """
        rows = yield Statement("reserve_seqs_of_idle_run", (run_id, count))
        if not rows:
            raise Conflict(
                f"The run {run_id} is running or has ended.", reason_code="run_not_idle", run=run_id
            )
        return int(rows[0][0]) - count + 1

    def append(
        self, ids: RunIds, first_seq: int, events: Sequence[tuple[Event, str]], /
    ) -> Write[list[EventRecord]]:
        """Append events of a run and return their records.

        Args:
            ids: the ids of the run.
            first_seq: the sequence number of the first event, from `reserve_seqs`.
            events: each event with its RFC 3339 timestamp.
        """
        if not events:
            return []
        rows = yield Statement("take_positions", (len(events), ids.run_id))
        head, run, session = rows[0]
        if run is None:
            others = to_json(ids) if ids.parent_run_id else ""
            values = (ids.session_id, ids.task_id, ids.run_id, others)
            ((run, session),) = yield Statement("insert_event_run", values)
        position = head - len(events)
        records: list[EventRecord] = []
        stored: list[Row] = []
        for seq, (event, timestamp) in enumerate(events, first_seq):
            position += 1
            envelope = wrap_event(ids, event, timestamp, seq)
            json = encode_envelope(envelope)
            records.append(
                EventRecord(ids.session_id, ids.run_id, event.name, json, position, seq, envelope)
            )
            node_id, payload = split_envelope(json)
            kind = None if node_id is None else envelope.node_kind
            stored.append(
                (position, session, run, seq, event.name, timestamp, node_id, kind, payload)
            )
        yield Batch("insert_event", stored)
        return records

    def append_idle(
        self, ids: RunIds, events: Sequence[Event], timestamp: str, /
    ) -> Write[list[EventRecord]]:
        """Append events of a queued or waiting run and return their records.

        Raises:
            Conflict: the run is running or has ended.
        """
        first_seq = yield from self.reserve_seqs_of_idle_run(ids.run_id, len(events))
        return (yield from self.append(ids, first_seq, [(event, timestamp) for event in events]))

    def list_after(
        self,
        position: int,
        sessions: Sequence[SessionId] | None,
        limit: int,
        /,
        max_bytes: int | None = None,
    ) -> Read[list[EventRecord]]:
        """Return up to `limit` events after a position, oldest first; None selects all sessions.

        With `max_bytes` fewer are returned when the payloads have more bytes, but at least one if
        there is one.
        """
        size = _PageSize(limit, max_bytes)
        names = [] if sessions is None else list(dict.fromkeys(sessions))
        if sessions is None or len(names) == 1:
            rows = yield from _read_after(names[0] if names else None, position, size)
        else:
            rows = yield from _merge_after(names, position, size)
        return (yield from _records(rows))

    def list_before(
        self, position: int, session_id: SessionId, limit: int, /
    ) -> Read[list[EventRecord]]:
        """Return up to `limit` events of a session, the last before a position, oldest first."""
        rows = yield Statement("session_positions_before", (session_id, position, limit))
        if not rows:
            return []
        return (yield from self.list_after(rows[-1][0] - 1, [session_id], len(rows)))

    def list_by_run(self, run_id: RunId, kind: str | None = None, /) -> Read[list[EventRecord]]:
        """Return the events of a run in order; only the events of one kind if it is given."""
        rows = yield Statement("events_of_run", (run_id, kind))
        return (yield from _records(rows))

    def list_of_kinds(self, run_id: RunId, kinds: Sequence[str], /) -> Read[list[EventRecord]]:
        """Return the events of a run that are of these kinds, by kind and then in order."""
        rows = yield Lookup("events_of_run", [(run_id, kind) for kind in kinds])
        return (yield from _records(rows))

    def list_readers(self) -> Read[dict[str, int]]:
        """Return the position up to which each known reader has read the log, by name."""
        rows = yield Statement("event_readers")
        return dict(rows)

    def save_reader(self, name: str, position: int, /) -> Write[None]:
        """Store the position up to which a reader has read the log, unless it is further."""
        yield Statement("save_event_reader", (name, position))

    def delete_reader(self, name: str, /) -> Write[None]:
        """Forget a reader."""
        yield Statement("delete_event_reader", (name,))

    def get_bounds(self) -> Read[LogBounds]:
        """Return the bounds of the log."""
        rows = yield Statement("event_log_bounds")
        epoch, head, first, pruned = rows[0]
        return LogBounds(epoch, head, max(first, pruned + 1))

    def skip_positions(self) -> Write[None]:
        """Skip a random number of positions. A process does this once, before its first event.

        If the database is a copy or was restored from one, the later events of the original log
        have other positions than the events that follow here. So a reader that has read them is
        recognised: its cursor lies in a gap.
        """
        count = _MIN_SKIPPED + secrets.randbits(_SKIPPED_BITS)
        yield Statement("record_gap", (count,))
        yield Statement("skip_positions", (count,))

    def is_skipped(self, position: int, /) -> Read[bool]:
        """Return True for a position that lies in a gap."""
        rows = yield Statement("gap_around", (position,))
        return bool(rows)


_PAYLOAD = itemgetter(-1)


class _PageSize:
    """The size of a page of rows while it is read, a few at a time if its bytes are limited."""

    def __init__(self, limit: int, max_bytes: int | None) -> None:
        self.left = limit
        self._bytes_left = max_bytes
        self.step = limit if max_bytes is None else _STEP_ROWS

    @property
    def is_full(self) -> bool:
        """Whether no row may be added."""
        return self.left <= 0 or (self._bytes_left is not None and self._bytes_left <= 0)

    def add(self, rows: Sequence[Row]) -> None:
        """Count rows that were added."""
        self.left -= len(rows)
        if self._bytes_left is not None:
            self._bytes_left -= sum(map(len, map(_PAYLOAD, rows)))


def _read_after(session: SessionId | None, position: int, size: _PageSize) -> Read[list[Row]]:
    """Return the rows of events after a position, of a session or of all."""
    rows: list[Row] = []
    source = _AllRows() if session is None else _SessionRows(session)
    while not size.is_full:
        count = min(size.step, size.left)
        some = yield from source.next_rows(position, count)
        size.add(some)
        rows += some
        if len(some) < count:
            break
        position = some[-1][0]
    return rows


def _merge_after(sessions: Sequence[SessionId], position: int, size: _PageSize) -> Read[list[Row]]:
    """Return the rows of events of several sessions in order. More are read where they are used."""
    count = max(min(size.step, size.left // max(len(sessions), 1)), 1)
    sources = [_SessionRows(session) for session in sessions]
    unread: list[tuple[int, int, deque[Row]]] = []  # with the next position, and the known rows
    for number, source in enumerate(sources):
        if some := (yield from source.next_rows(position, count)):
            unread.append((some[0][0], number, deque(some)))
    heapq.heapify(unread)
    rows: list[Row] = []
    while unread and not size.is_full:
        last, number, known = unread[0]
        row = known.popleft()
        rows.append(row)
        size.add((row,))
        if not known:
            known.extend((yield from sources[number].next_rows(last, size.step)))
        if known:
            heapq.heapreplace(unread, (known[0][0], number, known))
        else:
            heapq.heappop(unread)
    return rows


class _AllRows:
    """The rows of all events."""

    def next_rows(self, position: int, count: int) -> Read[list[Row]]:
        """Return the first rows after a position."""
        return (yield Statement("events_after", (position, count)))


class _SessionRows:
    """The rows of a session's events: events in the earlier form first.

    One statement for both would take a quarter more time for a row.
    """

    def __init__(self, session: SessionId) -> None:
        self._session = session
        self._has_earlier = True

    def next_rows(self, position: int, count: int) -> Read[list[Row]]:
        """Return the first rows after a position, which never decreases."""
        rows: list[Row] = []
        if self._has_earlier:
            values = (self._session, position, count)
            rows += yield Statement("earlier_session_events_after", values)
            self._has_earlier = len(rows) == count
        if len(rows) < count:
            values = (self._session, position, count - len(rows))
            rows += yield Statement("session_events_after", values)
        return rows


_decode_ids = msgspec.json.Decoder(RunIds).decode
_RUNS_READ_AT_ONCE = 16
_STEP_ROWS = 200


def _is_plain(text: str) -> bool:
    """Return True if a text needs no escapes in JSON."""
    return text.isascii() and text.isprintable() and '"' not in text and "\\" not in text


def _records(rows: Sequence[Row]) -> Read[list[EventRecord]]:
    """Return the records of rows of events; see `events.sql` for their two forms."""
    runs: dict[int, tuple[SessionId, RunId, str, str, str]] = {}
    numbers = list(dict.fromkeys(row[1] for row in rows if row[1] is not None))
    for first in range(0, len(numbers), _RUNS_READ_AT_ONCE):
        some = numbers[first : first + _RUNS_READ_AT_ONCE]
        some += [None] * (_RUNS_READ_AT_ONCE - len(some))
        for number, session_id, run_id, task_id, ids in (
            yield Statement("event_runs", tuple(some))
        ):
            is_core = not ids and run_id.startswith("run-")
            is_plain = is_core and _is_plain(run_id + task_id + session_id)
            template = (
                EnvelopeTemplate.of_core_run(session_id, task_id, run_id)
                if is_plain
                else EnvelopeTemplate.of(
                    _decode_ids(ids) if ids else RunIds(session_id, task_id, run_id)
                )
            )
            runs[number] = session_id, run_id, *template
    records: list[EventRecord] = []
    for position, run, seq, event, timestamp, node_id, node_kind, payload in rows:
        if run is None:
            session_id, run_id, json = timestamp, node_id, payload
        else:
            session_id, run_id, start, shared, end = runs[run]  # see `EnvelopeTemplate`
            node = f',"node_id":{node_id},"node_kind":"{node_kind}"' if node_id else ""
            json = (
                f'{start}{seq}","seq":{seq},"timestamp":"{timestamp}{shared}{event}"{node}{end}'
                f"{payload}}}"
            )
        records.append(EventRecord(session_id, run_id, event, json.encode(), position, seq))
    return records
