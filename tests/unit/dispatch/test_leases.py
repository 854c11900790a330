"""Lease renewal, and stop requests of other processes."""

import asyncio
from datetime import datetime, timedelta

import pytest

from internal.agent.app.background_task import background_task
from internal.agent.app.runs.active import ActiveRuns
from internal.agent.domain.errors import LeaseLost, RunStopped
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.tasks import StopRequest
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.dispatch.leases import LeaseKeeper
from internal.observability.clock import SystemClock
from internal.storage.postgres.database import PostgresDatabase
from internal.storage.sqlite.database import SqliteDatabase
from tests.support.dispatch_parts import DispatchParts
from tests.support.store_records import a_run, add_running_run, claim_run


async def test_expiry_is_the_end_of_a_lease_that_starts_now(parts: DispatchParts) -> None:
    seconds = (datetime.fromisoformat(parts.leases.expiry()) - parts.clock.now()).total_seconds()
    assert 25 < seconds <= 30


async def test_a_stop_request_cancels_the_run(parts: DispatchParts) -> None:
    run = await add_running_run(parts.database, parts.stores, a_run(), "worker")
    active = ActiveRuns()
    live = active.add(run)
    stop = StopRequest("ana", "web", "enough")
    assert await parts.database.write(lambda: parts.stores.runs.request_stop(run.id, stop))

    async with background_task(parts.leases.run(active, parts.supervisor)), asyncio.timeout(30):
        with pytest.raises(RunStopped) as stopped:
            await live.run_cancellable(asyncio.Event().wait())

    assert stopped.value.args == RunStopped("ana", "web", "enough").args


async def test_leases_are_renewed_before_they_expire(parts: DispatchParts) -> None:
    run = await add_running_run(parts.database, parts.stores, a_run(), "worker")
    now = parts.leases.expiry()  # later than the lease of the claim
    keeper = parts.lease_keeper("worker", 0.3)
    assert await expired(parts.database, parts.stores, now) == [run.id]

    async with background_task(keeper.run(ActiveRuns(), parts.supervisor)), asyncio.timeout(30):
        start = keeper.expiry()
        while run.id in await expired(parts.database, parts.stores, start):
            pass
        assert not any(state.failure for state in parts.supervisor.states)


async def expired(database: Database, stores: Stores, now: str) -> list[str]:
    return [run.id for run, lease in await database.read(stores.runs.list_held) if lease < now]


async def test_a_run_that_another_process_took_over_is_cancelled(parts: DispatchParts) -> None:
    run = await add_running_run(parts.database, parts.stores, a_run(), "worker")
    active = ActiveRuns()
    live = active.add(run)
    keeper = parts.lease_keeper("worker", 0.3)
    assert await parts.database.write(lambda: parts.stores.runs.requeue(run.id, run.fence))
    await claim_run(parts.database, parts.stores, run, "other")

    async with background_task(keeper.run(active, parts.supervisor)), asyncio.timeout(30):
        with pytest.raises(LeaseLost):
            await live.run_cancellable(asyncio.Event().wait())


class JumpingClock(SystemClock):
    """A wall clock that can jump."""

    def __init__(self) -> None:
        self.ahead = timedelta()
        self.was_read = asyncio.Event()

    def now(self) -> datetime:
        self.was_read.set()
        return super().now() + self.ahead


async def test_leases_are_renewed_at_once_after_the_clock_jumps(parts: DispatchParts) -> None:
    await add_running_run(parts.database, parts.stores, a_run(), "worker")
    clock = JumpingClock()
    keeper = LeaseKeeper(
        "worker", 3600.0, database=parts.database, stores=parts.stores, clock=clock
    )
    clock.was_read.clear()

    async with background_task(keeper.run(ActiveRuns(), parts.supervisor)), asyncio.timeout(30):
        await clock.was_read.wait()
        clock.ahead = timedelta(hours=2)
        while await expired(parts.database, parts.stores, rfc3339(clock.now())):
            pass


async def test_a_database_failure_is_reported(parts: DispatchParts) -> None:
    assert isinstance(parts.database, SqliteDatabase | PostgresDatabase)
    keeper = parts.lease_keeper("worker", 30.0)
    await parts.database.close()

    keep = keeper.run(ActiveRuns(), parts.supervisor)
    async with background_task(keep) as keeping, asyncio.timeout(30):
        while not any(state.failure for state in parts.supervisor.states):
            await asyncio.wait({keeping}, timeout=0.1)
        [state] = parts.supervisor.states

    assert (state.name, state.failure) == ("leases", "The database is closed.")
