"""Active runs: cancellation, claiming and requeueing."""

import asyncio
from functools import partial

import pytest

from internal.agent.app.runs.active import ActiveRun, ActiveRuns, claim_run
from internal.agent.domain.errors import LeaseLost, RunHandedOver, RunStopped
from internal.agent.domain.ids import RunId
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, T1, a_run, a_task, add_run


async def test_a_run_is_cancelled_once_and_the_first_reason_counts() -> None:
    run = a_run()
    started = asyncio.Event()

    async def work() -> None:
        started.set()
        await asyncio.Event().wait()

    active = ActiveRun(run)
    running_task = asyncio.create_task(active.run_cancellable(work()))
    await started.wait()
    active.cancel(RunStopped("ann", "web"))
    active.cancel(RunHandedOver("the process stops"))
    with pytest.raises(RunStopped):
        await running_task
    early = ActiveRun(run)
    early.cancel(LeaseLost("gone"))
    with pytest.raises(LeaseLost):
        await early.run_cancellable(work())
    outer = ActiveRun(run)
    started.clear()
    running_task = asyncio.create_task(outer.run_cancellable(work()))
    await started.wait()
    running_task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running_task


def test_only_runs_of_this_process_can_be_cancelled() -> None:
    runs = ActiveRuns()
    active = runs.add(a_run())
    assert [*runs] == [active]
    assert runs.cancel(active.run.id, RunStopped("ann", "web"))
    assert not runs.cancel(RunId("run-2"), RunStopped("ann", "web"))
    runs.remove(active.run.id)
    assert len(runs) == 0


async def test_a_claim_and_a_requeue_change_the_task_as_well(
    database: Database, stores: Stores
) -> None:
    task = a_task()
    await database.write(lambda: stores.tasks.add(task, None))
    run = await add_run(database, stores, a_run())
    claim = partial(claim_run, stores, run.id, "one", lease_until=T1, now=T0)

    claimed = await database.write(claim)
    assert claimed is not None
    assert await database.write(claim) is None
    stored = await database.read(partial(stores.tasks.get, task.id))
    assert stored is not None
    assert stored.status == "running"
