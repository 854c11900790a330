"""What the agent asks of the event log."""

import heapq
from collections.abc import Iterable, Sequence
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from internal.agent.domain.errors import Conflict, LeaseLost
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.store.database import Batch, Read, Row, Statement, Write


class NumberedEvent(NamedTuple):
    """An event that is to be stored: `envelope` is its JSON."""

    session_id: SessionId
    task_id: TaskId
    run_id: RunId
    seq: int
    event_id: str
    event: str
    envelope: bytes
    timestamp: str


class StoredEvent(NamedTuple):
    """An event of the log. `position` orders all events of all sessions."""

    position: int
    session_id: SessionId
    run_id: RunId
    seq: int
    event: str
    envelope: bytes


class LogBounds(NamedTuple):
    """The log's ends: `epoch` names the log, `head` is the newest position, 0 when empty."""

    epoch: str
    head: int
    earliest: int


class EventStore:
    """Fills `EventLog`."""

    def reserve_seqs(self, run_id: RunId, fence: int, count: int, /) -> Write[int]:
        """Reserve `count` numbers of a run under its fence and return the first.

        With 0 it only proves the fence.

        Raises:
            Fenced: the run is not running under this fence.
        """
        rows = yield Statement("number_running", (run_id, fence, count))
        if not rows:
            raise LeaseLost(f"Another process runs {run_id} now, or it has ended.")
        return int(rows[0][0]) - count + 1

    def reserve_seqs_of_idle_run(self, run_id: RunId, count: int, /) -> Write[int]:
        """Reserve numbers of a run that is queued or waiting, and return the first.

        Raises:
            Conflict: the run is running or has ended.
        """
        rows = yield Statement("number_resting", (run_id, count))
        if not rows:
            raise Conflict(f"The run {run_id} is running or has ended.")
        return int(rows[0][0]) - count + 1

    def append(self, events: Sequence[NumberedEvent], /) -> Write[list[int]]:
        """Store events and return their positions, in order."""
        if not events:
            return []
        rows = yield Statement("take_positions", (len(events),))
        head: int = rows[0][0]
        positions = list(range(head - len(events) + 1, head + 1))
        yield Batch(
            "insert_event",
            [
                (
                    position,
                    event.session_id,
                    event.task_id,
                    event.run_id,
                    event.seq,
                    event.event_id,
                    event.event,
                    event.timestamp,
                    event.envelope.decode(),
                )
                for position, event in zip(positions, events, strict=True)
            ],
        )
        return positions

    def list_after(
        self, position: int, sessions: Sequence[SessionId] | None, limit: int, /
    ) -> Read[list[StoredEvent]]:
        """Return up to `limit` events behind a position, oldest first; None: of all sessions."""
        if sessions is None:
            rows = yield Statement("events_after", (position, limit))
            return _events(rows)
        streams = []
        for session_id in dict.fromkeys(sessions):
            rows = yield Statement("events_of_session_after", (session_id, position, limit))
            streams.append(_events(rows))
        return list(islice(heapq.merge(*streams, key=attrgetter("position")), limit))

    def list_by_run(self, run_id: RunId, /) -> Read[list[StoredEvent]]:
        """Return all events of a run in order."""
        rows = yield Statement("events_of_run", (run_id,))
        return _events(rows)

    def last_event(self, run_id: RunId, kind: str | None = None, /) -> Read[StoredEvent | None]:
        """Return the newest event of a run, of one kind such as `workflow.result.final` or of any.

        None when there is no such event.
        """
        rows = yield Statement("last_event_of_run", (run_id, kind))
        return _events(rows)[0] if rows else None

    def get_bounds(self) -> Read[LogBounds]:
        """Return the log's ends.

        `earliest` is the smallest position kept, or `head + 1` when none is: a cursor is good when
        it is `earliest - 1` or later.
        """
        rows = yield Statement("log_bounds")
        return LogBounds(*rows[0])


def _events(rows: Iterable[Row]) -> list[StoredEvent]:
    return [
        StoredEvent(position, session_id, run_id, seq, event, envelope.encode())
        for position, session_id, run_id, seq, event, envelope in rows
    ]
