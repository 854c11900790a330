"""The dispatcher of a data folder."""

import asyncio

import pytest

from internal.agent.app.background_task import background_task
from internal.agent.domain.errors import RunStopped
from internal.agent.domain.ids import RunId
from internal.dispatch.dispatcher import RunDispatcher
from tests.support.store_records import a_run, add_run
from tests.unit.dispatch.conftest import DispatchParts


def dispatcher_of(parts: DispatchParts, concurrency: int = 4) -> RunDispatcher:
    return RunDispatcher(
        parts.database,
        parts.stores,
        parts.clock,
        leases=parts.leases,
        recovery=parts.recovery,
        supervisor=parts.supervisor,
        concurrency=concurrency,
    )


def names(parts: DispatchParts, what: str) -> list[str]:
    return [run_id for event, run_id in parts.coordinator.log if event == what]


async def stop(dispatcher: RunDispatcher, running: asyncio.Task[None]) -> None:
    dispatcher.stop()
    await asyncio.wait([running])
    assert running.exception() is None


async def test_runs_of_a_lane_are_executed_one_after_the_other(parts: DispatchParts) -> None:
    for number in (1, 2, 3):
        await add_run(parts.database, parts.stores, a_run(f"run-{number}", lane="one"))
    await add_run(parts.database, parts.stores, a_run("run-4", lane="two"))
    dispatcher = dispatcher_of(parts)

    async with background_task(dispatcher.run(parts.coordinator)) as running:
        await parts.coordinator.wait_for(lambda: len(names(parts, "started")) == 2)
        assert sorted(names(parts, "started")) == ["run-1", "run-4"]
        assert dispatcher.active_count == 2
        parts.coordinator.gate.set()
        await parts.coordinator.wait_for(lambda: len(names(parts, "ended")) == 4)
        await stop(dispatcher, running)

    lane = [(event, run_id) for event, run_id in parts.coordinator.log if run_id != "run-4"]
    assert lane == [(e, f"run-{n}") for n in (1, 2, 3) for e in ("started", "ended")]
    assert dispatcher.active_count == 0


@pytest.mark.parametrize("concurrency", [1, 2])
async def test_concurrency_limits_the_active_runs(parts: DispatchParts, concurrency: int) -> None:
    for number in range(3):
        await add_run(parts.database, parts.stores, a_run(f"run-{number}", lane=str(number)))
    dispatcher = dispatcher_of(parts, concurrency)

    async with background_task(dispatcher.run(parts.coordinator)) as running:
        await parts.coordinator.wait_for(lambda: len(names(parts, "started")) == concurrency)
        dispatcher.wake()
        for _ in range(20):  # let the dispatcher look again
            await parts.database.read(parts.stores.events.get_bounds)
        assert len(names(parts, "started")) == concurrency
        parts.coordinator.gate.set()
        await parts.coordinator.wait_for(lambda: len(names(parts, "ended")) == 3)
        await stop(dispatcher, running)


async def test_stop_hands_over_the_active_runs(parts: DispatchParts) -> None:
    await add_run(parts.database, parts.stores, a_run())
    dispatcher = dispatcher_of(parts)
    states = [dispatcher.is_stopping]

    async with background_task(dispatcher.run(parts.coordinator)) as running:
        await parts.coordinator.wait_for(lambda: bool(names(parts, "started")))
        await stop(dispatcher, running)
        states.append(dispatcher.is_stopping)

    assert states == [False, True]
    assert names(parts, "RunHandedOver") == ["run-1"]


async def test_cancel_reaches_runs_of_this_process_only(parts: DispatchParts) -> None:
    await add_run(parts.database, parts.stores, a_run())
    dispatcher = dispatcher_of(parts)
    reason = RunStopped("local", "cli")

    async with background_task(dispatcher.run(parts.coordinator)) as running:
        await parts.coordinator.wait_for(lambda: bool(names(parts, "started")))
        assert not dispatcher.cancel(RunId("run-2"), reason)
        assert dispatcher.cancel(RunId("run-1"), reason)
        await parts.coordinator.wait_for(lambda: names(parts, "RunStopped") == ["run-1"])
        await stop(dispatcher, running)
