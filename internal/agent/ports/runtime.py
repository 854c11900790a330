"""Clock, processes and their messages, dispatcher and event listeners."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from internal.agent.domain.errors import RunExit
from internal.agent.domain.events.envelope import WorkflowEventEnvelope
from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import ClaimedTask, Run, Task


class Clock(Protocol):
    """The time, for timestamps and durations."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds of a monotonic clock, for durations."""
        ...


class ProcessIdentity(NamedTuple):
    """A process, distinguished from others that have the same pid at another time or elsewhere.

    Attributes:
        name: a unique name, such as `gateway-2ABc…`.
        pid: its number in its pid namespace.
        start: when it started; no two processes with one pid have the same within a boot.
        namespace: its pid namespace, "" if the system has none.
        boot: the boot of its machine, "" if unknown.
        host: the name of its machine, for people.
    """

    name: str
    pid: int
    start: str
    namespace: str
    boot: str
    host: str

    def __str__(self) -> str:
        """The text that is stored as the owner of a run."""
        return "/".join(map(str, self))

    @classmethod
    def parse(cls, owner: str) -> "ProcessIdentity | None":
        """Return the process that an owner names, None if it is any other text."""
        name, *rest = owner.split("/", len(cls._fields) - 1)
        if len(rest) != len(cls._fields) - 1 or not rest[0].isdecimal():
            return None
        return cls(name, int(rest[0]), *rest[1:])


class Processes(Protocol):
    """The processes of this machine."""

    def is_alive(self, process: ProcessIdentity, /) -> bool | None:
        """Return whether a process lives, also while it is stopped; None if it cannot be known."""
        ...


class ProcessMessages(Protocol):
    """Messages between the processes that share a database. They are not stored."""

    def send(self, text: str, /) -> None:
        """Send a text to all other processes. Never blocks; it is lost if they cannot be reached.

        Texts of one process arrive in the order in which they were sent.
        """
        ...

    def listen(self, callback: Callable[[str], None], /) -> AbstractContextManager[None]:
        """Call `callback` in the event loop with each text of others, for the length of a block."""
        ...


class RunSlot(Protocol):
    """A place that is kept free in this process for a run that is about to be stored."""

    def claim(self, task: Task, events: int, /) -> Generator[Any, Any, Run | None]:
        """Claim the run of a task, in the transaction that stores it; None if its lane is busy.

        Its sequence numbers up to `last_seq` are reserved for that number of `events`.
        """
        ...

    async def start(self, claimed: ClaimedTask, /) -> None:
        """Start the claimed run, once the transaction is on disk."""
        ...


class Dispatcher(Protocol):
    """Starts queued runs: the first of each free lane, up to a limit."""

    def wake(self) -> None:
        """Check for queued runs soon. Never blocks."""
        ...

    def reserve(self, run_id: RunId, /) -> AbstractContextManager[RunSlot | None]:
        """Keep a place free for a new run, for the length of a block.

        None if this process does not execute it at once: it is full, or others come first.
        """
        ...

    def cancel(self, run_id: RunId, reason: RunExit, /) -> bool:
        """End a run of this process for the reason; return False if it does not run here."""
        ...


class EventListener(Protocol):
    """Receives the envelopes of a run, one at a time, in `seq` order."""

    async def on_event(self, envelope: WorkflowEventEnvelope, /) -> None:
        """Handle one envelope.

        An exception is logged and loses this envelope for this listener only; the run continues.
        Ephemeral envelopes have no `seq` and arrive in between, in the order of their creation.
        """
        ...
