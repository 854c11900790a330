"""What the agent asks of time."""

from datetime import datetime
from typing import Protocol

from internal.agent.domain.errors import RunExit
from internal.agent.domain.events.envelope import WorkflowEventEnvelope
from internal.agent.domain.ids import RunId


class Clock(Protocol):
    """The time, for stamps and for durations."""

    def now(self) -> datetime:
        """Return the time of day, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that only rise, for durations."""
        ...


class Dispatcher(Protocol):
    """Starts queued runs: the first of each free lane, so many at once."""

    def wake(self) -> None:
        """Say that there may be something to start. Never blocks."""
        ...

    def cancel(self, run_id: RunId, reason: RunExit, /) -> bool:
        """End a run of this process by a way out; False when it does not run here."""
        ...


class EventListener(Protocol):
    """Takes the envelopes of a run, one at a time and in `seq` order."""

    async def on_event(self, envelope: WorkflowEventEnvelope, /) -> None:
        """Take one envelope. Raising is logged and costs this listener the envelope, never the run.

        Ephemeral envelopes have no `seq` and come in between, in the order of their making.
        """
        ...
