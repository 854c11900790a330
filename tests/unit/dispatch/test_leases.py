"""Lease renewal, and stop requests of other processes."""

import asyncio
from datetime import datetime

import pytest

from internal.agent.app.background_task import background_task
from internal.agent.app.runs.active import ActiveRuns
from internal.agent.domain.errors import RunStopped
from internal.agent.domain.tasks import StopRequest
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.storage.sqlite.database import SqliteDatabase
from tests.support.store_records import a_run, add_running_run
from tests.unit.dispatch.conftest import DispatchParts


async def test_expiry_is_the_end_of_a_lease_that_starts_now(parts: DispatchParts) -> None:
    seconds = (datetime.fromisoformat(parts.leases.expiry()) - parts.clock.now()).total_seconds()
    assert 25 < seconds <= 30


async def test_a_stop_request_cancels_the_run(parts: DispatchParts) -> None:
    run = await add_running_run(parts.database, parts.stores, a_run(), "worker")
    active = ActiveRuns()
    live = active.add(run)
    stop = StopRequest("ana", "web", "enough")
    assert await parts.database.write(lambda: parts.stores.runs.request_stop(run.id, stop))

    async with background_task(parts.leases.run(active)), asyncio.timeout(30):
        with pytest.raises(RunStopped) as stopped:
            await live.run_cancellable(asyncio.Event().wait())

    assert stopped.value.args == RunStopped("ana", "web", "enough").args


async def test_leases_are_renewed_before_they_expire(parts: DispatchParts) -> None:
    run = await add_running_run(parts.database, parts.stores, a_run(), "worker")
    now = parts.leases.expiry()  # later than the lease of the claim
    keeper = parts.lease_keeper("worker", 0.3)
    assert await expired(parts.database, parts.stores, now) == [run.id]

    async with background_task(keeper.run(ActiveRuns())), asyncio.timeout(30):
        start = keeper.expiry()
        while run.id in await expired(parts.database, parts.stores, start):
            pass
    assert keeper.failure == ""


async def expired(database: Database, stores: Stores, now: str) -> list[str]:
    return [run.id for run in await database.read(lambda: stores.runs.list_expired(now))]


async def test_a_database_failure_is_reported(parts: DispatchParts) -> None:
    assert isinstance(parts.database, SqliteDatabase)
    keeper = parts.lease_keeper("worker", 30.0)
    healthy_since = keeper.since
    await parts.database.close()

    async with background_task(keeper.run(ActiveRuns())) as keeping, asyncio.timeout(30):
        while not keeper.failure:
            await asyncio.wait({keeping}, timeout=0.1)

    assert keeper.failure == "The database is closed."
    assert keeper.since >= healthy_since
