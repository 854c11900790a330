"""LocalDispatcher: starts queued runs in this process, the first of each free lane."""

import asyncio
import itertools
import logging
from functools import partial

from internal.agent.app.runs.active import ActiveRuns, claim_run, requeue_run
from internal.agent.app.runs.coordinator import AgentCoordinator
from internal.agent.app.runs.recovery import Recovery
from internal.agent.domain.errors import LarkspurError, RunExit, RunHandedOver, StoreUnavailable
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import Run
from internal.dispatch.leases import Leases
from internal.dispatch.queue import Queue

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
SWEEP_BEATS = 10


class LocalDispatcher:
    """One per data folder. `concurrency` runs at once; waiting ones do not count."""

    def __init__(self, queue: Queue, leases: Leases, recovery: Recovery, concurrency: int) -> None:
        self._queue = queue
        self._leases = leases
        self._recovery = recovery
        self._concurrency = concurrency
        self._active = ActiveRuns()
        self._starting: set[RunId] = set()
        self._woken = asyncio.Event()
        self._stopping = False

    @property
    def stopping(self) -> bool:
        """Whether nothing is started any more."""
        return self._stopping

    @property
    def at_work(self) -> int:
        """How many runs are at work here."""
        return len(self._active)

    def wake(self) -> None:
        """Say that there may be something to start."""
        self._woken.set()

    def cancel(self, run_id: RunId, reason: RunExit) -> bool:
        """Make a run of this process leave; False when it is not at work here."""
        return self._active.cancel(run_id, reason)

    def stop(self) -> None:
        """Start nothing more and hand over what is at work; `run` returns when that is stored."""
        self._stopping = True
        for live in self._active:
            live.cancel(RunHandedOver("the process stops"))
        self._woken.set()

    async def run(self, coordinator: AgentCoordinator) -> None:
        """Take over what an earlier dispatcher left, then dispatch until `stop`."""
        await self._recovery.recover_after_restart()
        background = [
            asyncio.create_task(self._leases.keep(self._active)),
            asyncio.create_task(self._keep_looking()),
        ]
        try:
            async with asyncio.TaskGroup() as runs:
                while not self._stopping:
                    self._woken.clear()
                    await self._start_ready(runs, coordinator)
                    await self._woken.wait()
        finally:
            for task in background:
                task.cancel()
            await asyncio.wait(background)

    async def _start_ready(self, runs: asyncio.TaskGroup, coordinator: AgentCoordinator) -> None:
        free = self._concurrency - len(self._starting)
        if free <= 0:
            return
        ready = partial(
            self._queue.stores.runs.list_ready, self._leases.owner, free + len(self._starting)
        )
        try:
            found = await self._queue.database.read(ready)
        except StoreUnavailable as error:
            logger.warning("queue not read", extra={"reason": str(error)})
            return
        fresh = [run for run in found if run.id not in self._starting]
        for run in fresh[:free]:
            self._starting.add(run.id)
            runs.create_task(self._run(run, coordinator))

    async def _run(self, run: Run, coordinator: AgentCoordinator) -> None:
        """Claim and execute one run. Whatever happens to it, the others go on."""
        try:
            claimed = await self._claim(run.id)
            if claimed is not None and not self._stopping:
                live = self._active.add(claimed)
                await coordinator.execute_task(live)
            elif claimed is not None:
                now = rfc3339(self._queue.clock.now())
                await self._queue.database.write(
                    partial(requeue_run, self._queue.stores, claimed, now)
                )
        except LarkspurError as error:
            logger.error("run left", extra={"run_id": run.id, "reason": str(error)})  # noqa: TRY400 - a sentence says it
        except Exception:
            logger.exception("run broke", extra={"run_id": run.id})
        finally:
            self._active.remove(run.id)
            self._starting.discard(run.id)
            self._woken.set()

    async def _claim(self, run_id: RunId) -> Run | None:
        queue, leases = self._queue, self._leases
        now = rfc3339(queue.clock.now())
        return await queue.database.write(
            partial(claim_run, queue.stores, run_id, leases.owner, leases.until(), now)
        )

    async def _keep_looking(self) -> None:
        """Look for what nobody said: lanes that another process left, runs that were lost."""
        for beat in itertools.count(1):
            await asyncio.sleep(LOOK_SECONDS)
            self.wake()
            if beat % SWEEP_BEATS:
                continue
            try:
                await self._recovery.recover_expired_leases(self._starting)
                await self._recovery.expire_questions()
                await self._recovery.requeue_orphaned(self._leases.owner, self._starting)
            except StoreUnavailable as error:
                logger.warning("sweep failed", extra={"reason": str(error)})
