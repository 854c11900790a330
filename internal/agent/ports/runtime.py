"""Clock, processes, dispatcher and event listeners."""

from datetime import datetime
from typing import Protocol

from internal.agent.domain.errors import RunExit
from internal.agent.domain.events.envelope import WorkflowEventEnvelope
from internal.agent.domain.ids import RunId
from internal.agent.domain.processes import ProcessIdentity


class Clock(Protocol):
    """The time, for timestamps and durations."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds of a monotonic clock, for durations."""
        ...


class Processes(Protocol):
    """The processes of this machine."""

    def is_alive(self, process: ProcessIdentity, /) -> bool | None:
        """Return whether a process lives, also while it is stopped; None if it cannot be known."""
        ...


class Dispatcher(Protocol):
    """Starts queued runs: the first of each free lane, up to a limit."""

    def wake(self) -> None:
        """Check for queued runs soon. Never blocks."""
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
