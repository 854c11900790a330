"""Identifiers: a prefix that says what it names, then a ksuid, so that they sort by second."""

from typing import NewType

from ksuid import Ksuid

SessionId = NewType("SessionId", str)
TaskId = NewType("TaskId", str)
RunId = NewType("RunId", str)
MessageId = NewType("MessageId", str)
QuestionId = NewType("QuestionId", str)

MAX_ID_CHARS = 128
"""An id that a client names may be this many characters."""


def new_session_id() -> SessionId:
    """Return an id for a conversation, such as `session-2ABc…`."""
    return SessionId(f"session-{Ksuid()}")


def new_task_id() -> TaskId:
    """Return an id for a unit of work, such as `task-2ABc…`."""
    return TaskId(f"task-{Ksuid()}")


def new_run_id() -> RunId:
    """Return an id for one pass of the coordinator, such as `run-2ABc…`."""
    return RunId(f"run-{Ksuid()}")


def new_message_id() -> MessageId:
    """Return an id for a message of a channel that has none of its own."""
    return MessageId(f"msg-{Ksuid()}")


def ksuid_part(run_id: RunId) -> str:
    """Return the ksuid of a run's id, the part that other ids of the run are made from."""
    return run_id.removeprefix("run-")


def event_id(run_id: RunId, seq: int) -> str:
    """Return the id of the durable event `seq` of a run.

    Derived, not drawn: a ksuid per event would cost 33 µs, and a replay names the same event alike.
    """
    return f"evt-{ksuid_part(run_id)}-{seq}"


def question_id(run_id: RunId, number: int) -> QuestionId:
    """Return the id of a run's `number`-th question: a replayed Turn asks under the same id."""
    return QuestionId(f"question-{ksuid_part(run_id)}-{number}")


def log_id(run_id: RunId) -> str:
    """Return the id under which the log lines of a run are found."""
    return f"log-{ksuid_part(run_id)}"
