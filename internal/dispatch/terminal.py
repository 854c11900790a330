"""A terminal's own run: taken by nobody else, executed in the terminal's process."""

import asyncio
from functools import partial

from internal.agent.app.children import child
from internal.agent.app.claiming import claim_run
from internal.agent.app.coordinator import AgentCoordinator
from internal.agent.app.lanes import Lanes
from internal.agent.domain.envelope import rfc3339
from internal.agent.domain.errors import NotFound, WayOut
from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import Run
from internal.agent.ports.clock import Clock
from internal.agent.ports.database import Database
from internal.agent.ports.stores import Stores
from internal.dispatch.leases import Leases

PATIENCE_SECONDS = 0.2
"""How often a run whose lane is taken looks again."""


class TerminalDispatcher:
    """Runs what its terminal submits, beside other terminals on the same data folder."""

    def __init__(self, database: Database, stores: Stores, clock: Clock, leases: Leases) -> None:
        self._database = database
        self._stores = stores
        self._clock = clock
        self._leases = leases
        self._lanes = Lanes()

    def wake(self) -> None:
        """Nothing starts by itself here."""

    def leave(self, run_id: RunId, way_out: WayOut) -> bool:
        """Make a run of this process leave; False when it is not at work here."""
        return self._lanes.leave(run_id, way_out)

    async def run_own(self, run_id: RunId, coordinator: AgentCoordinator) -> None:
        """Execute a queued run of this terminal once its lane is free; return when it is over.

        Raises:
            NotFound: there is no such run.
            StoreError: it cannot be stored any more.
        """
        async with child(self._leases.keep(self._lanes)):
            run = await self._claimed(run_id)
            if run is None:
                return
            try:
                await coordinator.execute_task(self._lanes.enter(run))
            finally:
                self._lanes.exit(run_id)

    async def _claimed(self, run_id: RunId) -> Run | None:
        """Wait until the run is ours; None when it was ended while it waited."""
        while True:
            now = rfc3339(self._clock.now())
            run = await self._database.write(
                partial(
                    claim_run, self._stores, run_id, self._leases.owner, self._leases.until(), now
                )
            )
            if run is not None:
                return run
            waiting = await self._database.read(partial(self._stores.runs.get, run_id))
            if waiting is None:
                raise NotFound(f"There is no run {run_id}.")
            if waiting.status != "queued":
                return None
            await asyncio.sleep(PATIENCE_SECONDS)
