"""Active runs: the runs that this process executes."""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

from internal.agent.app.hosts.host import ONLY_HOST, Host, bind_session
from internal.agent.domain.errors import RunExit
from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import ClaimedTask, Run, Task
from internal.agent.store.database import Write
from internal.agent.store.stores import Stores

T = TypeVar("T")


class ActiveRun:
    """A run that this process executes. It can be cancelled once; the first reason counts.

    `claimed` is given if this process has just stored the run.
    """

    def __init__(self, run: Run, claimed: ClaimedTask | None = None) -> None:
        self.run = run
        self.claimed = claimed
        self._reason: RunExit | None = None
        self._task: asyncio.Task[Any] | None = None
        self._is_closing = False

    def cancel(self, reason: RunExit) -> None:
        """Make `run_cancellable` raise the reason. No effect once the run stores its end."""
        if self._reason is None and not self._is_closing:
            self._reason = reason
            if self._task is not None:
                self._task.cancel()

    async def run_cancellable(self, work: Coroutine[Any, Any, T]) -> T:
        """Await the work, the only part of the current task that `cancel` interrupts.

        Raises:
            RunExit: the run was cancelled for this reason; the work has ended.
        """
        if reason := self._get_reason():
            work.close()
            raise reason
        self._task = asyncio.current_task()
        try:
            return await work
        except asyncio.CancelledError:
            if (reason := self._get_reason()) is None:
                raise
            if self._task is not None:
                self._task.uncancel()  # what stores the end is not cancelled
            raise reason from None
        finally:
            self._is_closing = True

    def _get_reason(self) -> RunExit | None:
        return self._reason


class ActiveRuns:
    """All active runs of the process."""

    def __init__(self) -> None:
        self._runs: dict[RunId, ActiveRun] = {}

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[ActiveRun]:
        return iter(list(self._runs.values()))

    def add(self, run: Run, claimed: ClaimedTask | None = None) -> ActiveRun:
        """Add a run that this process has claimed; see `ActiveRun`."""
        active = self._runs[run.id] = ActiveRun(run, claimed)
        return active

    def remove(self, run_id: RunId) -> None:
        """Remove a run that ended, paused or was handed over."""
        self._runs.pop(run_id, None)

    def cancel(self, run_id: RunId, reason: RunExit) -> bool:
        """Cancel a run; returns False if this process does not execute it."""
        active = self._runs.get(run_id)
        if active is not None:
            active.cancel(reason)
        return active is not None


def claim_run(
    stores: Stores,
    run_id: RunId,
    owner: str,
    *,
    lease_until: str,
    now: str,
    host: Host = ONLY_HOST,
    anywhere: bool = False,
    new: tuple[Task, int] | None = None,
) -> Write[Run | None]:
    """Claim a queued run for an owner; None if its lane is busy or another owner claimed it.

    None also if another host than that of the owner has the files of its session, unless it is
    claimed `anywhere`: by a terminal, whose person chose the folder. `new` is for a run that is
    being stored: its task, and how many sequence numbers its first events need.
    """
    name = "" if anywhere else host.name
    task, reserve = new or (None, 0)
    run = yield from stores.runs.claim(
        run_id, owner, lease_until=lease_until, now=now, host=name, reserve=reserve
    )
    if run is not None:
        yield from bind_session(stores, run, host, task)
        yield from stores.tasks.set_status(run.task_id, "running", None, now=now)
    return run
