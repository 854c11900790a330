"""What the agent asks of the stores of tasks, sessions and received messages."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.messages import Message
from internal.agent.domain.tasks import (
    Channel,
    Session,
    SessionSummary,
    Status,
    StopReason,
    Task,
)
from internal.agent.ports.database import Read, Write


class Tasks(Protocol):
    """Tasks."""

    def add(self, task: Task, key: str | None, /) -> Write[None]:
        """Insert a task; `key` is the client's idempotency key."""
        ...

    def get(self, task_id: TaskId, /) -> Read[Task | None]:
        """Return a task."""
        ...

    def by_key(self, principal: str, key: str, /) -> Read[Task | None]:
        """Return the task that a principal made under an idempotency key."""
        ...

    def page(
        self,
        principal: str | None,
        session_id: SessionId | None,
        status: Status | None,
        before: str | None,
        limit: int,
    ) -> Read[list[Task]]:
        """Return tasks, newest first, behind the task id `before`; None: everybody's."""
        ...

    def set_status(
        self, task_id: TaskId, status: Status, stop_reason: StopReason | None, now: str, /
    ) -> Write[None]:
        """Store a task's status."""
        ...


class Sessions(Protocol):
    """Sessions and their messages."""

    def add(self, session: Session, /) -> Write[None]:
        """Insert a session."""
        ...

    def get(self, session_id: SessionId, /) -> Read[Session | None]:
        """Return a session."""
        ...

    def newest(self, owner: str, channel: Channel, /) -> Read[Session | None]:
        """Return the session of an owner that was last active in a channel."""
        ...

    def at_hand(self, channel: Channel, scope: str, /) -> Read[Session | None]:
        """Return the newest session of a scope."""
        ...

    def page(
        self, owner: str | None, before: str | None, limit: int, /
    ) -> Read[list[SessionSummary]]:
        """Return sessions, last active first, behind the session id `before`; None: everybody's."""
        ...

    def rename(self, session_id: SessionId, title: str, now: str, /) -> Write[bool]:
        """Set the title; False when there is no such session."""
        ...

    def entitle(self, session_id: SessionId, title: str, /) -> Write[bool]:
        """Set the title if the session has none."""
        ...

    def delete(self, session_id: SessionId, /) -> Write[bool]:
        """Delete a session with all that is its; False when one of its runs has not ended."""
        ...

    def append(
        self, session_id: SessionId, run_id: RunId, messages: Sequence[Message], now: str, /
    ) -> Write[None]:
        """Add messages to the conversation. They are never rewritten."""
        ...

    def messages(
        self, session_id: SessionId, before: int | None, limit: int, /
    ) -> Read[list[tuple[int, RunId, Message, str]]]:
        """Return messages before a position, newest first: (position, run, message, instant)."""
        ...


class Inbound(msgspec.Struct, frozen=True):
    """A raw message of a channel, before it means anything. `raw` is JSON."""

    channel: Channel
    app: str
    message_id: str
    chat_id: str
    principal: str
    raw: str
    received: str


class Steering(NamedTuple):
    """A person's words for a run at work: the inbox row, and where they are from."""

    number: int
    text: str
    principal: str
    channel: Channel
    app: str
    chat_id: str
    message_id: str


class MessagePlace(NamedTuple):
    """What became of a received message: its run, and how many others began that run with it."""

    number: int
    status: Literal["accepted", "taken", "told", "handled"]
    steer: bool
    run_id: RunId
    company: int


class Inbox(Protocol):
    """What was received: the promise to people, kept before it is acknowledged."""

    def accept(self, message: Inbound, /) -> Write[bool]:
        """Store a raw message; False when (channel, app, message_id) is known already."""
        ...

    def accepted(self, channel: Channel, app: str, limit: int, /) -> Read[list[Inbound]]:
        """Return messages that were accepted and not taken in, in order of arrival."""
        ...

    def dismiss(self, channel: Channel, app: str, message_id: str, /) -> Write[bool]:
        """Mark an accepted message as handled without a run; False when it was taken in."""
        ...

    def take(
        self, message: Inbound, session_id: SessionId, run_id: RunId, *, steer: bool
    ) -> Write[None]:
        """Store a message, or mark the accepted one, as taken in for a run."""
        ...

    def untold(self, run_id: RunId, /) -> Read[list[Steering]]:
        """Return the steering that a run has not taken, in order of arrival."""
        ...

    def told(self, numbers: Sequence[int], /) -> Write[None]:
        """Mark steering as taken by its run."""
        ...

    def handled(self, run_id: RunId, /) -> Write[None]:
        """Mark what a run was started with and what it took as done."""
        ...

    def move(self, numbers: Sequence[int], run_id: RunId, /) -> Write[None]:
        """Make steering that a run did not take the start of another run."""
        ...

    def place(self, channel: Channel, app: str, message_id: str, /) -> Read[MessagePlace | None]:
        """Return what became of a message."""
        ...

    def unsay(self, number: int, /) -> Write[None]:
        """Take steering back that its run was not told."""
        ...

    def drop(self, run_id: RunId, /) -> Write[None]:
        """Take back all steering that a run was not told."""
        ...
