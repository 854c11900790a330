"""What the agent asks of the store of runs: leases, fences, checkpoints."""

from typing import NamedTuple, Protocol

from internal.agent.domain.budgets import Usage
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.tasks import Run, Status, StopReason, StopRequest
from internal.agent.ports.database import Read, Write


class Point(NamedTuple):
    """A checkpoint: the Turn without its messages, and those that the turn log lacks.

    `kept` counts the messages before `messages`; both are JSON.
    """

    head: bytes
    kept: int
    messages: tuple[bytes, ...]


class RunEnd(NamedTuple):
    """How a run ended, as its row keeps it. `cost` in US dollars when known."""

    status: Status
    stop_reason: StopReason
    usage: Usage
    cost: float | None
    answer: str
    error: str
    ended: str


class Runs(Protocol):
    """Runs, their leases and their checkpoints. Instants are RFC 3339 text, UTC."""

    def add(self, run: Run, created: str, lease_until: str = "", /) -> Write[None]:
        """Insert a queued run at the end of its lane; a terminal's has a lease from the start."""
        ...

    def get(self, run_id: RunId, /) -> Read[Run | None]:
        """Return a run."""
        ...

    def of_task(self, task_id: TaskId, /) -> Read[Run | None]:
        """Return the newest run of a task."""
        ...

    def claim(self, run_id: RunId, owner: str, lease_until: str, now: str, /) -> Write[Run | None]:
        """Take a queued run whose lane is free: it is running, its fence and attempt are raised.

        A lane is free when none of its runs is running and none was queued earlier. Returns None
        when the run may not be taken now. A terminal's run is taken by its owner alone.
        """
        ...

    def renew(self, owner: str, lease_until: str, /) -> Write[None]:
        """Move the lease of all running runs of an owner."""
        ...

    def ready(self, owner: str, limit: int, /) -> Read[list[Run]]:
        """Return queued runs that `owner` could claim now, in the order in which they are to start.

        The first of each free lane; without those that belong to another terminal.
        """
        ...

    def lost(self, now: str, /) -> Read[list[Run]]:
        """Return the runs whose lease is over: running ones, and a terminal's queued ones."""
        ...

    def owned(self, owner: str, /) -> Read[list[Run]]:
        """Return the running runs of an owner."""
        ...

    def active(self, session_id: SessionId, /) -> Read[Run | None]:
        """Return the session's running run, else its oldest queued one."""
        ...

    def open_runs(self, session_id: SessionId, /) -> Read[list[Run]]:
        """Return the session's runs that have not ended, oldest first."""
        ...

    def requeue(self, run_id: RunId, fence: int, /) -> Write[bool]:
        """Put a running run back, before the others of its lane; False when fenced."""
        ...

    def pause(self, run_id: RunId, fence: int, /) -> Write[bool]:
        """Set a running run to waiting, its lane is free; False when fenced."""
        ...

    def wake(self, run_id: RunId, now: str, /) -> Write[bool]:
        """Queue a waiting run, before the others of its lane; False when it does not wait.

        A terminal's run whose terminal is gone belongs to nobody from now on.
        """
        ...

    def release(self, run_id: RunId, owner: str, /) -> Write[bool]:
        """Let anybody take a terminal's queued or waiting run; "" whoever owns it."""
        ...

    def adopt(self, run_id: RunId, owner: str, lease_until: str, /) -> Write[bool]:
        """Make a queued run that belongs to nobody a terminal's; False when it may not be."""
        ...

    def request_stop(self, run_id: RunId, stop: StopRequest, /) -> Write[bool]:
        """Ask a running run to stop; the first request stays. False when it is not running."""
        ...

    def stops(self, owner: str, /) -> Read[list[tuple[RunId, StopRequest]]]:
        """Return the stop requests for an owner's running runs."""
        ...

    def end(self, run_id: RunId, fence: int, end: RunEnd, /) -> Write[bool]:
        """Store how a run ended and forget its checkpoint; False when it is not at this fence."""
        ...

    def keep(self, run_id: RunId, point: Point, /) -> Write[None]:
        """Store the newest checkpoint; new messages in it begin the count of attempts anew."""
        ...

    def checkpoint(self, run_id: RunId, /) -> Read[tuple[bytes, list[bytes]] | None]:
        """Return the checkpoint's head and all its messages."""
        ...
