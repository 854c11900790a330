"""A terminal's own runs: taken by nobody else, executed in the terminal's process."""

import asyncio
import logging
from functools import partial

from internal.agent.app.background_task import background_task
from internal.agent.app.runs.active import ActiveRuns, claim_run
from internal.agent.app.runs.coordinator import AgentCoordinator
from internal.agent.app.runs.recovery import Recovery
from internal.agent.domain.errors import NotFound, RunExit, StoreUnavailable
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import Run
from internal.dispatch.leases import Leases
from internal.dispatch.queue import Queue

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 0.2
"""How often a run whose lane is taken looks again."""

LOOK_SECONDS = 1.0
"""How often a waiting run is looked at for an answer that came from another process."""


class TerminalDispatcher:
    """Runs what its terminal submits, beside other terminals on the same data folder."""

    def __init__(self, queue: Queue, leases: Leases, recovery: Recovery) -> None:
        self._queue = queue
        self._leases = leases
        self._recovery = recovery
        self._active = ActiveRuns()
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Say that something changed: a question may be answered."""
        self._woken.set()

    def cancel(self, run_id: RunId, reason: RunExit) -> bool:
        """Make a run of this process leave; False when it is not at work here."""
        return self._active.cancel(run_id, reason)

    async def run_own(
        self, run_id: RunId, coordinator: AgentCoordinator, *, waits: bool = True
    ) -> None:
        """Execute a queued run of this terminal once its lane is free; return when it is over.

        While it waits for a person nothing of it stays at work, and it goes on here whoever
        answers; cancel this to wait no more. Without `waits` it is left to whoever goes on with it.

        Raises:
            NotFound: there is no such run.
            StoreError: it cannot be stored any more.
        """
        async with background_task(self._leases.keep(self._active)):
            while (run := await self._claimed(run_id)) is not None:
                try:
                    await coordinator.execute_task(self._active.add(run))
                finally:
                    self._active.remove(run_id)
                if not waits:
                    await self.release(run_id)
                    return
                await self._answered(run_id)

    async def adopt(self, run_id: RunId) -> bool:
        """Make a queued run this terminal's that belongs to nobody; False when it may not be."""
        adopt = partial(
            self._queue.stores.runs.adopt, run_id, self._leases.owner, self._leases.until()
        )
        return await self._queue.database.write(adopt)

    async def release(self, run_id: RunId) -> None:
        """Leave a waiting run to whoever goes on with it; any other one stays as it is."""
        release = partial(self._queue.stores.runs.release, run_id, self._leases.owner)
        await self._queue.database.write(release)

    async def _claimed(self, run_id: RunId) -> Run | None:
        """Wait until the run is ours; None when it has ended or is somebody else's."""
        queue, leases = self._queue, self._leases
        while True:
            now = rfc3339(queue.clock.now())
            run = await queue.database.write(
                partial(claim_run, queue.stores, run_id, leases.owner, leases.until(), now)
            )
            if run is not None:
                return run
            if (await self._stored(run_id)).status != "queued":
                return None
            await asyncio.sleep(PATIENCE_SECONDS)

    async def _answered(self, run_id: RunId) -> None:
        """Return when the run does not wait any more."""
        while True:
            self._woken.clear()
            try:
                if (await self._stored(run_id)).status != "waiting":
                    return
                await self._recovery.expire_questions()
            except StoreUnavailable as error:
                logger.warning("question not looked at", extra={"reason": str(error)})
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._woken.wait()
            except TimeoutError:
                pass

    async def _stored(self, run_id: RunId) -> Run:
        run = await self._queue.database.read(partial(self._queue.stores.runs.get, run_id))
        if run is None:
            raise NotFound(f"There is no run {run_id}.")
        return run
