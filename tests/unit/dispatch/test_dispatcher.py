"""The dispatcher, alone and beside others."""

import asyncio
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from pathlib import Path

import pytest

from internal.agent.app.background_task import background_task
from internal.agent.domain.errors import RunStopped
from internal.agent.domain.events.envelope import RunIds
from internal.agent.domain.events.types import LifecycleUpdated
from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import ClaimedTask, Run, Share, Task
from internal.agent.ports.runtime import RunSlot
from internal.agent.store.database import Write
from internal.agent.store.runs import ProcessEntry
from internal.agent.store.stores import Stores
from internal.dispatch.dispatcher import MAX_CLAIMS, RunDispatcher
from internal.storage.database_url import open_database
from tests.support.dispatch_parts import DispatchParts, dispatcher_of
from tests.support.store_records import T0, a_run, a_task, add_run, add_running_run

NEVER_SECONDS = 3_600.0
QUEUED = LifecycleUpdated(status="queued", phase="prepare")
COMPLETED = LifecycleUpdated(status="completed", phase="persist", stop_reason="final_answer")


async def load(parts: DispatchParts, run_id: str) -> Run:
    run = await parts.database.read(partial(parts.stores.runs.get, RunId(run_id)))
    assert run is not None
    return run


async def tell(
    parts: DispatchParts, dispatcher: RunDispatcher, run_id: str, event: LifecycleUpdated
) -> None:
    """Store an event of a run and tell the dispatcher of it."""
    run = await load(parts, run_id)
    append = partial(parts.stores.events.append, RunIds.of(run), run.last_seq + 1, [(event, T0)])
    for record in await parts.database.write(append):
        dispatcher.on_event(record)


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


async def test_close_waits_for_the_active_runs_and_starts_no_other(parts: DispatchParts) -> None:
    for number in (1, 2):
        await add_run(parts.database, parts.stores, a_run(f"run-{number}", lane="one"))
    dispatcher = dispatcher_of(parts)

    async with background_task(dispatcher.run(parts.coordinator)) as running:
        await parts.coordinator.wait_for(lambda: bool(names(parts, "started")))
        dispatcher.close()
        assert dispatcher.is_stopping
        parts.coordinator.gate.set()
        await asyncio.wait([running])

    assert [*names(parts, "started"), *names(parts, "ended")] == ["run-1", "run-1"]
    assert (await load(parts, "run-2")).status == "queued"


async def test_without_concurrency_lost_runs_are_queued_and_not_started(
    parts: DispatchParts,
) -> None:
    await add_running_run(
        parts.database, parts.stores, a_run("run-1"), "silent", lease_until="2000"
    )
    dispatcher = dispatcher_of(parts, 0)
    async with background_task(dispatcher.run(parts.coordinator, is_alone=False)) as running:
        async with asyncio.timeout(30):
            while (await load(parts, "run-1")).status != "queued":
                pass
        await stop(dispatcher, running)
    assert parts.coordinator.log == []


async def test_two_dispatchers_execute_each_run_once_and_in_the_order_of_its_lane(
    tmp_path: Path,
) -> None:
    async with AsyncExitStack() as stack:
        both: list[DispatchParts] = []
        for number in (1, 2):
            database = await stack.enter_async_context(open_database(tmp_path / "a.db"))
            both.append(DispatchParts(database, Stores(), tmp_path, f"worker-{number}"))
        for number in range(24):
            run = a_run(f"run-{number:02}", lane=f"lane-{number % 6}")
            await add_run(both[0].database, both[0].stores, run)
        log = both[1].coordinator.log = both[0].coordinator.log
        running: list[tuple[RunDispatcher, asyncio.Task[None]]] = []
        for parts in both:
            parts.coordinator.gate.set()
            dispatcher = dispatcher_of(parts, 2)
            run_all = dispatcher.run(parts.coordinator, is_alone=False)
            running.append((dispatcher, await stack.enter_async_context(background_task(run_all))))
        async with asyncio.timeout(60):
            while [event for event, _ in log].count("ended") < 24:
                await both[0].database.read(both[0].stores.events.get_bounds)
        for dispatcher, task in running:
            await stop(dispatcher, task)
    for lane in range(6):
        of_lane = [entry for entry in log if int(entry[1][4:]) % 6 == lane]
        expected = [f"run-{number:02}" for number in range(lane, 24, 6)]
        assert of_lane == [(event, name) for name in expected for event in ("started", "ended")]


async def test_two_dispatchers_execute_only_so_many_runs_of_a_person_at_once(
    tmp_path: Path,
) -> None:
    async with AsyncExitStack() as stack:
        both: list[DispatchParts] = []
        for number in (1, 2):
            database = await stack.enter_async_context(open_database(tmp_path / "a.db"))
            both.append(DispatchParts(database, Stores(), tmp_path, f"worker-{number}"))
        one, two = both
        for number in range(8):
            run = a_run(f"run-{number}", lane=f"lane-{number}")
            await one.database.write(partial(one.stores.runs.add, run, T0, share=Share("anna", 3)))
        log = two.coordinator.log = one.coordinator.log
        running = [
            (dispatcher, await stack.enter_async_context(background_task(run_all)))
            for parts in both
            for dispatcher in [dispatcher_of(parts, 4)]
            for run_all in [dispatcher.run(parts.coordinator, is_alone=False)]
        ]
        async with asyncio.timeout(60):
            while len(log) < 3:
                await one.database.read(one.stores.events.get_bounds)
        await add_run(one.database, one.stores, a_run("run-of-the-owner", lane="other"))
        async with asyncio.timeout(60):
            while len(log) < 4:
                await one.database.read(one.stores.events.get_bounds)
        assert log[3:] == [("started", "run-of-the-owner")]
        for parts in both:
            parts.coordinator.gate.set()
        async with asyncio.timeout(60):
            while [event for event, _ in log].count("ended") < 9:
                await one.database.read(one.stores.events.get_bounds)
        for dispatcher, task in running:
            await stop(dispatcher, task)
    active, most = 0, 0
    for event, run_id in log:
        if run_id != "run-of-the-owner":
            active += 1 if event == "started" else -1
            most = max(most, active)
    assert most <= 3


async def test_a_new_dispatcher_takes_no_run_of_a_living_process(parts: DispatchParts) -> None:
    held = await add_running_run(
        parts.database, parts.stores, a_run("run-1"), "other", lease_until="2999"
    )
    await add_run(parts.database, parts.stores, a_run("run-2", lane="two"))
    parts.coordinator.gate.set()
    dispatcher = dispatcher_of(parts)
    async with background_task(dispatcher.run(parts.coordinator, is_alone=False)) as running:
        await parts.coordinator.wait_for(lambda: bool(names(parts, "ended")))
        await stop(dispatcher, running)
    run = await load(parts, "run-1")
    assert (run.owner, run.status, run.fence) == ("other", "running", held.fence)


def claim_new(parts: DispatchParts, run: Run, slot: RunSlot) -> Write[tuple[Run | None, Task]]:
    """Store a run with its task, and claim it."""
    task = a_task(run.task_id, run.session_id)
    yield from parts.stores.tasks.add(task, None)
    yield from parts.stores.runs.add(run, T0)
    return (yield from slot.claim(task, 0)), task


async def test_a_new_run_is_claimed_in_the_transaction_that_stores_it(
    parts: DispatchParts,
) -> None:
    await add_run(parts.database, parts.stores, a_run("run-0", lane="zero"))
    dispatcher, run = dispatcher_of(parts), a_run()
    async with background_task(dispatcher.run(parts.coordinator)) as running:
        await parts.coordinator.wait_for(lambda: names(parts, "started") == ["run-0"])
        with dispatcher.reserve(run.id) as slot:
            assert slot is not None
            claimed, task = await parts.database.write(partial(claim_new, parts, run, slot))
            assert claimed is not None
            assert (claimed.status, claimed.fence) == ("running", 1)
            await slot.start(ClaimedTask(claimed, task))
        await parts.coordinator.wait_for(lambda: names(parts, "started") == ["run-0", "run-1"])
        parts.coordinator.gate.set()
        await parts.coordinator.wait_for(lambda: len(names(parts, "ended")) == 2)
        await stop(dispatcher, running)


async def test_a_new_run_of_a_busy_lane_is_not_claimed(parts: DispatchParts) -> None:
    await add_run(parts.database, parts.stores, a_run("run-1", lane="one"))
    dispatcher, run = dispatcher_of(parts), a_run("run-2", lane="one")
    async with background_task(dispatcher.run(parts.coordinator)) as running:
        await parts.coordinator.wait_for(lambda: names(parts, "started") == ["run-1"])
        with dispatcher.reserve(run.id) as slot:
            assert slot is not None
            claimed, _ = await parts.database.write(partial(claim_new, parts, run, slot))
            assert claimed is None
        parts.coordinator.gate.set()
        await parts.coordinator.wait_for(lambda: names(parts, "ended") == ["run-1", "run-2"])
        await stop(dispatcher, running)


async def test_a_new_run_of_a_busy_lane_starts_at_the_end_of_the_run_before(
    parts: DispatchParts,
) -> None:
    """The run does not wait for the next scheduled look of the dispatcher."""
    await add_run(parts.database, parts.stores, a_run("run-1", lane="one"))
    dispatcher = dispatcher_of(parts, poll_seconds=NEVER_SECONDS)
    run = a_run("run-2", lane="one")
    async with background_task(dispatcher.run(parts.coordinator)) as running:
        await parts.coordinator.wait_for(lambda: names(parts, "started") == ["run-1"])
        with dispatcher.reserve(run.id) as slot:
            assert slot is not None
            claimed, _ = await parts.database.write(partial(claim_new, parts, run, slot))
            assert claimed is None
            await tell(parts, dispatcher, "run-2", QUEUED)
            dispatcher.wake()
        for _ in range(20):  # let the dispatcher look again
            await parts.database.read(parts.stores.events.get_bounds)
        await tell(parts, dispatcher, "run-1", COMPLETED)
        parts.coordinator.gate.set()
        await parts.coordinator.wait_for(lambda: names(parts, "ended") == ["run-1", "run-2"])
        await stop(dispatcher, running)


async def test_no_place_is_kept_free_where_nothing_can_start(parts: DispatchParts) -> None:
    await add_run(parts.database, parts.stores, a_run("run-1"))
    full, idle, run = dispatcher_of(parts, 1), dispatcher_of(parts, 0), a_run("run-2")
    with full.reserve(run.id) as slot:  # it does not dispatch yet
        assert slot is None
    async with background_task(full.run(parts.coordinator)) as running:
        await parts.coordinator.wait_for(lambda: names(parts, "started") == ["run-1"])
        for dispatcher in (full, idle):
            with dispatcher.reserve(run.id) as slot:
                assert slot is None
        await stop(full, running)
    with full.reserve(run.id) as slot:
        assert slot is None


@pytest.mark.parametrize("is_alone", [True, False])
async def test_a_process_leaves_a_part_of_a_burst_to_others_if_there_are_any(
    parts: DispatchParts, *, is_alone: bool
) -> None:
    if not is_alone:
        other = ProcessEntry("other", "worker", "host", 1, "1", T0, T0)
        await parts.database.write(partial(parts.stores.processes.add, other))
    await add_run(parts.database, parts.stores, a_run("run-0"))
    dispatcher = dispatcher_of(parts, concurrency=2 * MAX_CLAIMS)
    async with background_task(dispatcher.run(parts.coordinator)) as running:
        await parts.coordinator.wait_for(lambda: names(parts, "started") == ["run-0"])
        with ExitStack() as reserved:
            new = [RunId(f"run-{number}") for number in range(1, 2 * MAX_CLAIMS)]
            slots = [reserved.enter_context(dispatcher.reserve(run_id)) for run_id in new]
        is_shared = parts.database.messages is not None and not is_alone
        assert sum(slot is not None for slot in slots) == (
            MAX_CLAIMS - 1 if is_shared else len(slots)
        )
        await stop(dispatcher, running)


async def test_a_run_that_has_ended_leaves_its_place_at_once(parts: DispatchParts) -> None:
    await add_run(parts.database, parts.stores, a_run("run-1"))
    dispatcher, new = dispatcher_of(parts, concurrency=1), RunId("run-2")
    async with background_task(dispatcher.run(parts.coordinator)) as running:
        await parts.coordinator.wait_for(lambda: names(parts, "started") == ["run-1"])
        with dispatcher.reserve(new) as slot:
            assert slot is None
        await tell(parts, dispatcher, "run-1", COMPLETED)
        with dispatcher.reserve(new) as slot:
            assert slot is not None
        await stop(dispatcher, running)


async def test_a_run_that_is_claimed_while_the_process_stops_is_handed_over(
    parts: DispatchParts,
) -> None:
    await add_run(parts.database, parts.stores, a_run("run-0", lane="zero"))
    dispatcher, run = dispatcher_of(parts), a_run()
    async with background_task(dispatcher.run(parts.coordinator)) as running:
        await parts.coordinator.wait_for(lambda: names(parts, "started") == ["run-0"])
        with dispatcher.reserve(run.id) as slot:
            assert slot is not None
            claimed, task = await parts.database.write(partial(claim_new, parts, run, slot))
            assert claimed is not None
            await stop(dispatcher, running)
            await slot.start(ClaimedTask(claimed, task))
    assert (await load(parts, "run-1")).status == "queued"
    assert names(parts, "started") == ["run-0"]
