"""What the agent asks of the event log."""

from typing import NamedTuple

from internal.agent.domain.ids import RunId, SessionId, TaskId


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
