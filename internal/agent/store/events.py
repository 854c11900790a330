"""The event log: numbered per run by `seq`, ordered over all runs by `position`."""

import heapq
import secrets
from collections.abc import Iterable, Sequence
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from internal.agent.domain.errors import Conflict, LeaseLost
from internal.agent.domain.events.envelope import (
    EventRecord,
    RunIds,
    encode_envelope,
    wrap_event,
)
from internal.agent.domain.events.types import Event
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.tasks import StopRequest
from internal.agent.store.database import Batch, Read, Row, Statement, Write
from internal.agent.store.runs import read_stop

_MIN_SKIPPED = 2**32  # more than the events between a backup and its restoration
_SKIPPED_BITS = 31  # so that a million processes stay below 2^53, the range of JSON numbers


class LogBounds(NamedTuple):
    """The bounds of the log.

    `epoch` identifies the log and `head` is the newest position, 0 when the log is empty.
    `earliest` is the first position from which no event was removed, or `head + 1` when there is no
    event; a cursor is valid when it is `earliest - 1` or later, or 0, the start of what is stored.
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
            raise Conflict(f"The run {run_id} is running or has ended.")
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
        rows = yield Statement("take_positions", (len(events),))
        position = rows[0][0] - len(events)
        records: list[EventRecord] = []
        stored: list[Row] = []
        for seq, (event, timestamp) in enumerate(events, first_seq):
            position += 1
            envelope = wrap_event(ids, event, timestamp, seq)
            json = encode_envelope(envelope)
            records.append(
                EventRecord(ids.session_id, ids.run_id, event.name, json, position, seq, envelope)
            )
            stored.append(
                (
                    position,
                    ids.session_id,
                    ids.task_id,
                    ids.run_id,
                    seq,
                    envelope.event_id,
                    event.name,
                    timestamp,
                    json.decode(),
                )
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
        self, position: int, sessions: Sequence[SessionId] | None, limit: int, /
    ) -> Read[list[EventRecord]]:
        """Return up to `limit` events after a position, oldest first; None for all sessions."""
        if sessions is None:
            rows = yield Statement("events_after", (position, limit))
            return _events(rows)
        streams = []
        for session_id in dict.fromkeys(sessions):
            rows = yield Statement("session_events_after", (session_id, position, limit))
            streams.append(_events(rows))
        return list(islice(heapq.merge(*streams, key=attrgetter("position")), limit))

    def list_before(
        self, position: int, session_id: SessionId, limit: int, /
    ) -> Read[list[EventRecord]]:
        """Return up to `limit` events of a session, the last before a position, oldest first."""
        rows = yield Statement("session_positions_before", (session_id, position, limit))
        if not rows:
            return []
        return (yield from self.list_after(rows[-1][0] - 1, [session_id], len(rows)))

    def list_by_run(self, run_id: RunId, kind: str | None = None, /) -> Read[list[EventRecord]]:
        """Return the events of a run in order, only those of a kind if one is given."""
        rows = yield Statement("events_of_run", (run_id, kind))
        return _events(rows)

    def last_event(self, run_id: RunId, kind: str | None = None, /) -> Read[EventRecord | None]:
        """Return the newest event of a run, None when there is none.

        Args:
            run_id: the run.
            kind: only events of this kind, such as `workflow.result.final`.
        """
        rows = yield Statement("last_event_of_run", (run_id, kind))
        return _events(rows)[0] if rows else None

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

        If the database is a copy or was restored from one, the events that the original log got
        later have other positions than those that follow here. So a reader that knows them is
        recognised: its cursor lies in a gap.
        """
        count = _MIN_SKIPPED + secrets.randbits(_SKIPPED_BITS)
        yield Statement("record_gap", (count,))
        yield Statement("skip_positions", (count,))

    def is_skipped(self, position: int, /) -> Read[bool]:
        """Return True for a position that lies in a gap."""
        rows = yield Statement("gap_around", (position,))
        return bool(rows)


def _events(rows: Iterable[Row]) -> list[EventRecord]:
    return [
        EventRecord(session_id, run_id, event, envelope.encode(), position, seq)
        for position, session_id, run_id, seq, event, envelope in rows
    ]
