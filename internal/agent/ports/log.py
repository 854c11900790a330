"""What the agent asks of the event log."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.ports.database import Read, Write


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


class EventLog(Protocol):
    """The append-only log of durable events."""

    def number(self, run_id: RunId, fence: int, count: int, /) -> Write[int]:
        """Reserve `count` numbers of a run under its fence and return the first.

        Raises:
            Fenced: the run is not running under this fence.
        """
        ...

    def number_resting(self, run_id: RunId, count: int, /) -> Write[int]:
        """Reserve numbers of a run that is queued or waiting, and return the first.

        Raises:
            Conflict: the run is running or has ended.
        """
        ...

    def append(self, events: Sequence[NumberedEvent], /) -> Write[list[int]]:
        """Store events and return their positions, in order."""
        ...

    def after(
        self, position: int, sessions: Sequence[SessionId] | None, limit: int, /
    ) -> Read[list[StoredEvent]]:
        """Return up to `limit` events behind a position, oldest first; None: of all sessions."""
        ...

    def of_run(self, run_id: RunId, /) -> Read[list[StoredEvent]]:
        """Return all events of a run in order."""
        ...

    def bounds(self) -> Read[LogBounds]:
        """Return the log's ends."""
        ...
