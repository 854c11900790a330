"""What the agent asks of a dispatcher."""

from typing import Protocol

from internal.agent.domain.errors import WayOut
from internal.agent.domain.ids import RunId


class Dispatcher(Protocol):
    """Starts queued runs: the first of each free lane, so many at once."""

    def wake(self) -> None:
        """Say that there may be something to start. Never blocks."""
        ...

    def leave(self, run_id: RunId, way_out: WayOut, /) -> bool:
        """End a run of this process by a way out; False when it does not run here."""
        ...
