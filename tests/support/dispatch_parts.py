"""A dispatcher's parts, with a coordinator that ends runs without a model."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.runs.active import ActiveRun
from internal.agent.app.runs.coordinator import AgentCoordinator
from internal.agent.app.runs.owners import OwnerWatch
from internal.agent.app.runs.recovery import Recovery
from internal.agent.app.supervision import Supervisor
from internal.agent.domain.errors import RunExit
from internal.agent.domain.ids import RunId
from internal.agent.domain.usage import Usage
from internal.agent.store.database import Database
from internal.agent.store.runs import RunEnd
from internal.agent.store.stores import Stores
from internal.dispatch.dispatcher import POLL_INTERVAL_SECONDS, RunDispatcher
from internal.dispatch.leases import LeaseKeeper
from internal.observability.clock import SystemClock
from internal.observability.processes import SystemProcesses
from tests.support.store_records import T1

DONE = RunEnd("completed", "final_answer", Usage(), None, "", "", T1)


class FakeCoordinator(AgentCoordinator):
    """Ends every run when `gate` is set. `log` records the calls in order.

    The first execution of a run that `awaits_tasks` ends when the awaited tasks have ended.
    """

    def __init__(self, database: Database, stores: Stores) -> None:
        self._store, self._runs = database, stores.runs
        self._changed = asyncio.Condition()
        self.gate = asyncio.Event()
        self.log: list[tuple[str, RunId]] = []
        self.awaits_tasks = False

    async def execute_task(self, live: ActiveRun) -> None:
        run = live.run
        await self._record("started", run.id)
        if self.awaits_tasks:
            self.awaits_tasks = False
            await self._store.write(lambda: self._runs.await_tasks(run.id, run.fence, T1))
            await self._store.write(lambda: self._runs.queue_waiting(run.id, T1))
            return
        try:
            await live.run_cancellable(self.gate.wait())
        except RunExit as reason:
            await self._record(type(reason).__name__, run.id)
        else:
            await self._store.write(lambda: self._runs.end(run.id, run.fence, DONE))
            await self._record("ended", run.id)

    async def wait_for(self, is_reached: Callable[[], bool]) -> None:
        """Wait until the log has reached a state."""
        async with asyncio.timeout(30), self._changed:
            await self._changed.wait_for(is_reached)

    async def _record(self, what: str, run_id: RunId) -> None:
        async with self._changed:
            self.log.append((what, run_id))
            self._changed.notify_all()


class DispatchParts:
    """A database, its stores, a coordinator and the other parts of a dispatcher."""

    def __init__(
        self, database: Database, stores: Stores, folder: Path, owner: str = "worker"
    ) -> None:
        self.folder = folder
        self.database, self.stores, self.clock = database, stores, SystemClock()
        self.supervisor = Supervisor(self.clock)
        self.coordinator = FakeCoordinator(database, stores)
        self.leases = self.lease_keeper(owner, 30.0)
        broadcaster = EventBroadcaster(database, stores, self.clock, "test")
        self.recovery = Recovery(
            database,
            stores,
            broadcaster=broadcaster,
            clock=self.clock,
            owners=OwnerWatch(SystemProcesses(), self.clock, 30.0),
        )

    def lease_keeper(self, owner: str, seconds: float) -> LeaseKeeper:
        return LeaseKeeper(
            owner, seconds, database=self.database, stores=self.stores, clock=self.clock
        )


def dispatcher_of(
    parts: DispatchParts, concurrency: int = 4, poll_seconds: float = POLL_INTERVAL_SECONDS
) -> RunDispatcher:
    return RunDispatcher(
        parts.database,
        parts.stores,
        parts.clock,
        leases=parts.leases,
        recovery=parts.recovery,
        supervisor=parts.supervisor,
        concurrency=concurrency,
        poll_seconds=poll_seconds,
    )
