"""The dispatcher of a terminal."""

import pytest

from internal.agent.app.background_task import background_task
from internal.agent.domain.errors import LeaseLost, NotFound, RunStopped
from internal.agent.domain.ids import RunId
from internal.dispatch.terminal import TerminalDispatcher
from tests.support.dispatch_parts import DONE, DispatchParts
from tests.support.store_records import T3, a_run, add_run, add_running_run, claim_run

RUN = RunId("run-1")


def dispatcher_of(parts: DispatchParts) -> TerminalDispatcher:
    return TerminalDispatcher(
        parts.database,
        parts.stores,
        parts.clock,
        leases=parts.leases,
        recovery=parts.recovery,
        supervisor=parts.supervisor,
    )


async def test_own_run_is_executed(parts: DispatchParts) -> None:
    await add_run(parts.database, parts.stores, a_run(owner="worker", terminal=True), T3)
    parts.coordinator.gate.set()

    await dispatcher_of(parts).execute(RUN, parts.coordinator)

    assert parts.coordinator.log == [("started", RUN), ("ended", RUN)]


async def test_run_waits_for_its_lane(parts: DispatchParts) -> None:
    first = await add_running_run(parts.database, parts.stores, a_run("run-0", lane="one"), "other")
    run = a_run(owner="worker", terminal=True, lane="one")
    await add_run(parts.database, parts.stores, run, T3)
    parts.coordinator.gate.set()
    dispatcher = dispatcher_of(parts)

    async with background_task(dispatcher.execute(RUN, parts.coordinator)) as executing:
        await parts.database.read(parts.stores.events.get_bounds)
        assert parts.coordinator.log == []
        await parts.database.write(lambda: parts.stores.runs.end(first.id, first.fence, DONE))
        await parts.coordinator.wait_for(lambda: ("ended", RUN) in parts.coordinator.log)
        await executing


async def test_run_of_another_owner_is_left_alone(parts: DispatchParts) -> None:
    run = await add_running_run(parts.database, parts.stores, a_run(), "other")
    await dispatcher_of(parts).execute(run.id, parts.coordinator)
    assert parts.coordinator.log == []


async def test_a_run_that_another_process_continues_is_reported(parts: DispatchParts) -> None:
    await add_run(parts.database, parts.stores, a_run(owner="worker", terminal=True), T3)
    dispatcher = dispatcher_of(parts)
    runs = parts.stores.runs

    async def take_over() -> None:
        await parts.coordinator.wait_for(lambda: ("started", RUN) in parts.coordinator.log)
        assert await parts.database.write(lambda: runs.requeue(RUN, 1))
        assert await parts.database.write(lambda: runs.release(RUN, "worker"))
        await claim_run(parts.database, parts.stores, a_run(), "gateway")
        parts.coordinator.gate.set()

    async with background_task(take_over()):
        with pytest.raises(LeaseLost, match="larkspur watch task-1"):
            await dispatcher.execute(RUN, parts.coordinator)


async def test_a_run_whose_subtasks_have_ended_is_not_left_to_others(parts: DispatchParts) -> None:
    await add_run(parts.database, parts.stores, a_run(owner="worker", terminal=True), T3)
    parts.coordinator.awaits_tasks = True
    parts.coordinator.gate.set()

    await dispatcher_of(parts).execute(RUN, parts.coordinator, wait_for_answers=False)

    assert parts.coordinator.log == [("started", RUN), ("started", RUN), ("ended", RUN)]


async def test_unknown_run(parts: DispatchParts) -> None:
    with pytest.raises(NotFound):
        await dispatcher_of(parts).execute(RUN, parts.coordinator)


async def test_cancel(parts: DispatchParts) -> None:
    await add_run(parts.database, parts.stores, a_run(owner="worker", terminal=True), T3)
    dispatcher = dispatcher_of(parts)
    assert not dispatcher.cancel(RUN, RunStopped("local", "cli"))

    async with background_task(dispatcher.execute(RUN, parts.coordinator)):
        await parts.coordinator.wait_for(lambda: ("started", RUN) in parts.coordinator.log)
        assert dispatcher.cancel(RUN, RunStopped("local", "cli"))
        await parts.coordinator.wait_for(lambda: ("RunStopped", RUN) in parts.coordinator.log)


async def test_adopt_and_release(parts: DispatchParts) -> None:
    await add_run(parts.database, parts.stores, a_run())
    dispatcher = dispatcher_of(parts)

    assert await dispatcher.adopt(RUN)
    assert not await dispatcher.adopt(RUN), "it has an owner"
    adopted = await parts.database.read(lambda: parts.stores.runs.get(RUN))
    assert adopted is not None
    assert (adopted.owner, adopted.terminal) == ("worker", True)

    await dispatcher.release(RUN)
    released = await parts.database.read(lambda: parts.stores.runs.get(RUN))
    assert released is not None
    assert (released.owner, released.terminal) == ("", False)
