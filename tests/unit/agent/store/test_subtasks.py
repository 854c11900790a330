"""Subtasks: limits on concurrent runs, waits, and reports of their ends."""

from functools import partial
from typing import Any

from internal.agent.domain.delegation.subtask import Subtask
from internal.agent.domain.ids import RunId, TaskId
from internal.agent.domain.tasks import Run, Status, TaskWait
from internal.agent.domain.usage import Usage
from internal.agent.store.database import Database
from internal.agent.store.runs import RunEnd
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, T1, T2, T3, a_run, a_task, add_run, add_running_run

ROOT = a_run("run-root")


def a_place(number: int, **fields: Any) -> Subtask:
    values: dict[str, Any] = {
        "root_task_id": ROOT.task_id, "root_run_id": ROOT.id, "call_id": "c1", "number": number,
        "total": 9, "role": "digger", "preview": "dig", **fields,
    }  # fmt: skip
    return Subtask(**values)


def a_subtask(number: int, *, parent: str = "run-root", **fields: Any) -> Run:
    return a_run(
        f"run-{number}",
        lane=f"task-{number}",
        parent_run_id=RunId(parent),
        subtask=a_place(number, **fields),
    )


async def add_subtask(database: Database, stores: Stores, run: Run, blocked_by: int = 0) -> Run:
    task = a_task(run.task_id, kind="background", lane=run.lane, parent_task_id=ROOT.task_id)
    await database.write(partial(stores.tasks.add, task, None))
    await database.write(partial(stores.runs.add, run, T0, blocked_by=blocked_by))
    return run


async def end(database: Database, stores: Stores, run: Run, status: Status = "completed") -> None:
    taken = await database.write(partial(stores.runs.claim, run.id, "w", lease_until=T1, now=T0))
    assert taken is not None
    ended = RunEnd(status, "final_answer", Usage(), None, "", "", T2)
    assert await database.write(partial(stores.runs.end, run.id, taken.fence, ended))
    await database.write(
        partial(stores.tasks.set_status, run.task_id, status, "final_answer", now=T2)
    )


async def ready(database: Database, stores: Stores) -> list[str]:
    return [run.id for run in await database.read(partial(stores.runs.list_ready, "w", T0, 99))]


async def test_a_stored_subtask_is_returned_unchanged(database: Database, stores: Stores) -> None:
    run = await add_subtask(database, stores, a_subtask(1, max_cost=0.5, workspace="own"))

    assert await database.read(partial(stores.runs.get, run.id)) == run
    assert await database.read(partial(stores.subtasks.list_tree, ROOT.task_id)) == [run]
    assert await database.read(partial(stores.subtasks.list_of_run, ROOT.id)) == [run]
    assert await database.read(partial(stores.subtasks.list_of_run, run.id)) == []


async def test_people_come_before_subtasks_and_resumed_runs_before_both(
    database: Database, stores: Stores
) -> None:
    await add_subtask(database, stores, a_subtask(1))
    resumed = await add_running_run(database, stores, a_run("run-resumed", lane="other"))
    await add_run(database, stores, a_run("run-person", lane="third"))
    await database.write(partial(stores.runs.requeue, resumed.id, resumed.fence))

    assert await ready(database, stores) == ["run-resumed", "run-person", "run-1"]


async def test_eight_subtasks_of_a_root_run_at_once(database: Database, stores: Stores) -> None:
    runs = [await add_subtask(database, stores, a_subtask(n)) for n in range(1, 11)]
    claim = partial(stores.runs.claim, owner="w", lease_until=T1, now=T0)

    claimed = [await database.write(partial(claim, run.id)) for run in runs]

    assert [run is not None for run in claimed] == [True] * 8 + [False] * 2
    assert await ready(database, stores) == []
    first = claimed[0]
    assert first is not None
    assert await database.write(partial(stores.runs.pause, first.id, first.fence))
    assert await ready(database, stores) == ["run-9", "run-10"]


async def test_a_call_can_allow_fewer(database: Database, stores: Stores) -> None:
    for number in (1, 2):
        await add_subtask(database, stores, a_subtask(number, max_parallel=1))
    other = await add_subtask(database, stores, a_subtask(3, call_id="c2"))

    assert await database.write(
        partial(stores.runs.claim, RunId("run-1"), "w", lease_until=T1, now=T0)
    )
    assert await ready(database, stores) == [other.id]
    assert not await database.write(
        partial(stores.runs.claim, RunId("run-2"), "w", lease_until=T1, now=T0)
    )


async def test_a_subtask_starts_when_its_dependencies_are_gone(
    database: Database, stores: Stores
) -> None:
    first, second = TaskId("task-1"), TaskId("task-2")
    last = await add_subtask(database, stores, a_subtask(3), blocked_by=2)
    await database.write(partial(stores.subtasks.add_dependencies, last.task_id, [first, second]))

    assert await ready(database, stores) == []
    for task_id in (first, second):
        taken = await database.write(partial(stores.subtasks.take_dependents, task_id))
        assert taken == [last.task_id]
        assert await database.write(partial(stores.subtasks.take_dependents, task_id)) == []
        assert await ready(database, stores) == []
        await database.write(partial(stores.subtasks.unblock, last.task_id))
    assert await ready(database, stores) == [last.id]
    await database.write(partial(stores.subtasks.unblock, last.task_id))
    assert await ready(database, stores) == [last.id]


async def test_a_wait_is_settled_by_the_last_task_or_by_the_first(
    database: Database, stores: Stores
) -> None:
    runs = [await add_subtask(database, stores, a_subtask(n)) for n in (1, 2)]
    tasks = tuple(run.task_id for run in runs)
    for name, any_of in (("run-all", False), ("run-any", True)):
        waits = {"c1": TaskWait(tasks, T3, any_of)}
        await database.write(partial(stores.subtasks.set_waits, RunId(name), waits))
    settled = partial(stores.subtasks.has_settled_wait)

    async def states() -> list[bool]:
        return [
            await database.read(partial(settled, RunId(name))) for name in ("run-all", "run-any")
        ]

    assert await states() == [False, False]
    await end(database, stores, runs[0], "failed")
    assert await states() == [False, True]
    await end(database, stores, runs[1])
    assert await states() == [True, True]
    waiting = await database.read(partial(stores.subtasks.list_waiting_for, tasks[0]))
    assert sorted(waiting) == ["run-all", "run-any"]
    await database.write(partial(stores.subtasks.clear_waits, RunId("run-all")))
    assert await states() == [False, True]


async def test_a_run_that_waits_for_tasks_is_found_when_its_time_is_over(
    database: Database, stores: Stores
) -> None:
    run = await add_running_run(database, stores, a_run())
    assert await database.write(partial(stores.runs.await_tasks, run.id, run.fence, T2))
    past = stores.subtasks.list_past_wait

    stored = await database.read(partial(stores.runs.get, run.id))
    assert stored is not None
    assert (stored.awaits_tasks, stored.is_settled) == (True, False)
    assert await database.read(partial(past, T1)) == []
    assert [each.id for each in await database.read(partial(past, T2))] == [run.id]
    assert await database.read(partial(stores.runs.get_active, run.session_id)) == stored
    assert await database.write(partial(stores.runs.queue_waiting, run.id, T2))
    assert await database.read(partial(past, T3)) == []
    queued = await database.read(partial(stores.runs.get, run.id))
    assert queued is not None
    assert (queued.status, queued.stop_reason) == ("queued", None)


async def test_a_run_with_a_stale_fence_cannot_begin_to_wait(
    database: Database, stores: Stores
) -> None:
    run = await add_running_run(database, stores, a_run())
    assert not await database.write(partial(stores.runs.await_tasks, run.id, run.fence - 1, T2))


async def test_ended_subtasks_are_unreported_once(database: Database, stores: Stores) -> None:
    runs = [await add_subtask(database, stores, a_subtask(n)) for n in (1, 2, 3)]
    for run in runs[:2]:
        await end(database, stores, run)
    unreported = partial(stores.subtasks.list_unreported, ROOT.id)

    assert await database.read(unreported) == ["task-1", "task-2"]
    await database.write(partial(stores.subtasks.mark_reported, [runs[0].task_id]))
    assert await database.read(unreported) == ["task-2"]
    assert await database.read(partial(stores.subtasks.count_ended, ROOT.task_id)) == 2


async def test_the_cost_of_a_tree_is_that_of_its_root_and_all_below(
    database: Database, stores: Stores
) -> None:
    root = await add_run(database, stores, ROOT)
    child = await add_subtask(database, stores, a_subtask(1))
    below = await add_subtask(database, stores, a_subtask(2, parent="run-1", depth=2))
    other = await add_run(database, stores, a_run("run-other", lane="other"))
    for run, cost in ((root, 1.0), (child, 0.5), (below, 0.25), (other, 8.0)):
        save = partial(stores.usage.save, run, "local", "m", usage=Usage(), cost=cost, now=T0)
        await database.write(save)

    assert await database.read(partial(stores.subtasks.get_cost, ROOT.task_id)) == 1.75


async def test_a_run_in_the_background_leaves_the_lane_of_its_session(
    database: Database, stores: Stores
) -> None:
    run = await add_running_run(database, stores, a_run())
    await database.write(partial(stores.tasks.add, a_task(run.task_id), None))
    await add_run(database, stores, a_run("run-2"))
    move = partial(stores.subtasks.move_to_background, run.task_id, run.id)

    assert await ready(database, stores) == []
    assert await database.write(move)
    assert await ready(database, stores) == ["run-2"]
    moved = await database.read(partial(stores.tasks.get, run.task_id))
    assert moved is not None
    assert (moved.kind, moved.lane) == ("background", run.task_id)
    active = await database.read(partial(stores.runs.get_active, run.session_id))
    assert active is not None
    assert active.id == "run-2"
