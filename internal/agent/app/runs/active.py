"""Lanes: the runs that this process has at work, one a lane, and how each can be made to leave."""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

from internal.agent.domain.errors import RunExit
from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import Run
from internal.agent.store.database import Write
from internal.agent.store.stores import Stores

T = TypeVar("T")


class ActiveRun:
    """A run at work here. It can be made to leave once; the first reason holds."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._way_out: RunExit | None = None
        self._work: asyncio.Task[Any] | None = None
        self._closing = False

    def cancel(self, reason: RunExit) -> None:
        """Make the work raise `reason`. Too late when the run is storing its end already."""
        if self._way_out is None and not self._closing:
            self._way_out = reason
            if self._work is not None:
                self._work.cancel()

    async def run_cancellable(self, doing: Coroutine[Any, Any, T]) -> T:
        """Do the part of a run that may be cut short, in a task of its own.

        Raises:
            WayOut: the run was made to leave; the task is over.
        """
        if self._way_out is not None:
            doing.close()
            raise self._way_out
        work: asyncio.Task[T] = asyncio.create_task(doing)
        self._work = work
        try:
            return await work
        except asyncio.CancelledError:
            if self._way_out is None:
                raise
            raise self._way_out from None
        finally:
            self._closing = True


class ActiveRuns:
    """All live runs of the process."""

    def __init__(self) -> None:
        self._live: dict[RunId, ActiveRun] = {}

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[ActiveRun]:
        return iter(list(self._live.values()))

    def add(self, run: Run) -> ActiveRun:
        """Put a claimed run at work. Its lane is free: the claim has seen to that."""
        live = self._live[run.id] = ActiveRun(run)
        return live

    def remove(self, run_id: RunId) -> None:
        """Take a run out that is over here."""
        self._live.pop(run_id, None)

    def cancel(self, run_id: RunId, reason: RunExit) -> bool:
        """Make a run leave; False when it is not at work here."""
        live = self._live.get(run_id)
        if live is not None:
            live.cancel(reason)
        return live is not None


def claim_run(
    stores: Stores, run_id: RunId, owner: str, lease_until: str, now: str
) -> Write[Run | None]:
    """Take a queued run whose lane is free; None when it may not be taken now."""
    run = yield from stores.runs.claim(run_id, owner, lease_until=lease_until, now=now)
    if run is not None:
        yield from stores.tasks.set_status(run.task_id, "running", None, now=now)
    return run


def requeue_run(stores: Stores, run: Run, now: str) -> Write[bool]:
    """Put a running run back into the queue; False when another process has taken it."""
    if not (yield from stores.runs.requeue(run.id, run.fence)):
        return False
    yield from stores.tasks.set_status(run.task_id, "queued", None, now=now)
    return True
