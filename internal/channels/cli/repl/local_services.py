"""What a terminal needs of the house in its own process."""

from collections.abc import Awaitable
from typing import Protocol

from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.gateway import Gateway
from internal.agent.app.task_options import TaskDefaults
from internal.agent.domain.ids import RunId
from internal.agent.ports.attachments import Attachments


class Desk(Protocol):
    """What is needed to look and to ask."""

    @property
    def gateway(self) -> Gateway:
        """What wishes are handed to."""
        ...

    @property
    def broadcaster(self) -> EventBroadcaster:
        """Whose log the places are of."""
        ...

    @property
    def attachments(self) -> Attachments:
        """Where files are kept."""
        ...

    @property
    def defaults(self) -> TaskDefaults:
        """What a task gets without options."""
        ...


class Runner(Protocol):
    """What is needed to do runs here."""

    @property
    def owner(self) -> str:
        """The name under which this process owns its runs."""
        ...

    def lease(self) -> str:
        """Return until when a run submitted now is ours, RFC 3339."""
        ...

    def run_own(self, run_id: RunId, /) -> Awaitable[object]:
        """Run a queued run to its end, through its pauses; a cancel in a pause leaves it there."""
        ...

    def adopt(self, run_id: RunId, /) -> Awaitable[bool]:
        """Make a queued run ours that belongs to nobody; False when somebody else takes it."""
        ...

    def release(self, run_id: RunId, /) -> Awaitable[object]:
        """Leave our waiting run to whoever goes on with it."""
        ...
