"""Runs: lanes, leases, fences, checkpoints and results."""

import asyncio
from functools import partial
from typing import Any

import pytest

from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.tasks import Run, Share, Status, StopReason, StopRequest
from internal.agent.domain.usage import Usage
from internal.agent.store.checkpoints import (
    CHECKPOINT_VERSION,
    CheckpointDelta,
    StoredCheckpoint,
)
from internal.agent.store.database import Database
from internal.agent.store.runs import RunEnd
from internal.agent.store.stores import Stores
from tests.support.store_records import (
    CLEANED,
    HOSTILE,
    T0,
    T1,
    T2,
    T3,
    a_run,
    add_run,
    add_running_run,
    claim_run,
)

SESSION = SessionId("session-1")


def ended(status: Status = "completed", stop_reason: StopReason = "final_answer") -> RunEnd:
    return RunEnd(status, stop_reason, Usage(1, 2, 3, 4), 0.25, "42", "", T2)


async def take(database: Database, stores: Stores, run: Run, owner: str = "worker") -> Run | None:
    return await database.write(lambda: stores.runs.claim(run.id, owner, lease_until=T1, now=T0))


async def get(database: Database, stores: Stores, run: Run) -> Run:
    stored = await database.read(lambda: stores.runs.get(run.id))
    assert stored is not None
    return stored


async def ready(database: Database, stores: Stores, owner: str = "worker") -> list[str]:
    return [run.id for run in await database.read(lambda: stores.runs.list_ready(owner, T0, 99))]


async def test_a_stored_run_is_returned_unchanged(database: Database, stores: Stores) -> None:
    run = a_run(
        fence=3, last_seq=5, attempt=2, parent_run_id=RunId("run-0"), owner="terminal-7",
        terminal=True, usage=Usage(1, 2, 3, 4),
    )  # fmt: skip
    await add_run(database, stores, run)

    assert await get(database, stores, run) == run
    assert await database.read(lambda: stores.runs.get_by_task(TaskId("task-1"))) == run
    assert await database.read(lambda: stores.runs.get(RunId("run-unknown"))) is None
    assert await database.read(lambda: stores.runs.get_by_task(TaskId("task-unknown"))) is None


async def test_the_newest_run_of_a_task(database: Database, stores: Stores) -> None:
    for number in (3, 1, 2):
        await add_run(database, stores, a_run(f"run-{number}", task_id=TaskId("task-1")))

    newest = await database.read(lambda: stores.runs.get_by_task(TaskId("task-1")))

    assert newest is not None
    assert newest.id == "run-2"


async def test_a_claim_raises_fence_and_attempt(database: Database, stores: Stores) -> None:
    run = await add_run(database, stores, a_run(fence=4, attempt=1))

    taken = await take(database, stores, run)

    assert taken == a_run(fence=5, attempt=2, status="running", owner="worker", started=T0)
    assert await get(database, stores, run) == taken
    assert await take(database, stores, run) is None
    assert await take(database, stores, a_run("run-unknown")) is None


async def test_one_run_of_a_lane_is_running_in_order_of_arrival(
    database: Database, stores: Stores
) -> None:
    first, second, third = [
        await add_run(database, stores, a_run(f"run-{name}")) for name in ("c", "a", "b")
    ]
    other = await add_run(database, stores, a_run("run-other", "session-2"))
    assert await ready(database, stores) == [first.id, other.id]

    assert await take(database, stores, second) is None
    taken = await take(database, stores, first)
    assert taken is not None
    assert await take(database, stores, second) is None
    assert await ready(database, stores) == [other.id]
    assert await take(database, stores, other) is not None

    await database.write(lambda: stores.runs.end(first.id, taken.fence, ended()))
    assert await ready(database, stores) == [second.id]
    assert await take(database, stores, third) is None
    assert await take(database, stores, second) is not None


async def test_concurrent_claims_of_a_lane_succeed_once(database: Database, stores: Stores) -> None:
    runs = [await add_run(database, stores, a_run(f"run-{n}")) for n in range(5)]

    async with asyncio.TaskGroup() as tasks:
        claims = [
            tasks.create_task(take(database, stores, run, owner))
            for run in reversed(runs)
            for owner in ("one", "two")
        ]

    assert [run.id for claim in claims if (run := claim.result())] == ["run-0"]


async def test_a_session_can_have_several_lanes(database: Database, stores: Stores) -> None:
    chat = await add_run(database, stores, a_run("run-1"))
    background = await add_run(database, stores, a_run("run-2", lane="task-2"))

    assert await ready(database, stores) == [chat.id, background.id]
    assert await take(database, stores, background) is not None
    assert await take(database, stores, chat) is not None


async def test_list_ready_with_only_own_returns_the_runs_of_that_terminal(
    database: Database, stores: Stores
) -> None:
    for number, owner in enumerate(("", "mine", "other")):
        run = a_run(f"run-{number}", lane=f"lane-{number}", owner=owner, terminal=bool(owner))
        await add_run(database, stores, run, T3)
    ready = await database.read(lambda: stores.runs.list_ready("mine", T0, 9, only_own=True))
    assert [run.owner for run in ready] == ["mine"]


async def test_list_ready_respects_its_limit(database: Database, stores: Stores) -> None:
    for number in range(3):
        await add_run(database, stores, a_run(f"run-{number}", f"session-{number}"))

    assert len(await database.read(lambda: stores.runs.list_ready("worker", T0, 2))) == 2


async def test_a_terminal_run_is_claimed_by_its_owner_only(
    database: Database, stores: Stores
) -> None:
    run = a_run(owner="terminal", terminal=True)
    await add_run(database, stores, run, T1)
    behind = await add_run(database, stores, a_run("run-2"))

    assert await ready(database, stores) == []
    assert await take(database, stores, run) is None
    assert await take(database, stores, behind) is None
    assert await ready(database, stores, "terminal") == [run.id]
    assert await take(database, stores, run, "terminal") is not None


@pytest.mark.parametrize("way", ["requeue", "pause"])
async def test_a_resumed_run_is_ahead_of_its_lane(
    database: Database, stores: Stores, way: str
) -> None:
    run = await add_running_run(database, stores, a_run("run-1"))
    behind = await add_run(database, stores, a_run("run-2"))

    if way == "requeue":
        assert await database.write(lambda: stores.runs.requeue(run.id, run.fence))
    else:
        assert await database.write(lambda: stores.runs.pause(run.id, run.fence))
        assert (await get(database, stores, run)).status == "waiting"
        assert await ready(database, stores) == [behind.id], "a waiting run frees its lane"
        later = await add_run(database, stores, a_run("run-3"))
        behind = await claim_run(database, stores, behind)
        assert await database.write(lambda: stores.runs.queue_waiting(run.id, T0))
        assert await ready(database, stores) == []
        await database.write(lambda: stores.runs.end(behind.id, behind.fence, ended()))
        behind = later

    rested = await get(database, stores, run)
    assert (rested.status, rested.owner, rested.fence) == ("queued", "", 1)
    assert await take(database, stores, behind) is None
    again = await claim_run(database, stores, run)
    assert (again.fence, again.attempt) == (2, 1)


@pytest.mark.parametrize("crashed", [True, False])
async def test_a_failed_start_is_counted_until_the_run_makes_progress(
    database: Database, stores: Stores, *, crashed: bool
) -> None:
    run = await add_run(database, stores, a_run())

    async def fail() -> tuple[int, int]:
        again = await claim_run(database, stores, run)
        requeue = partial(stores.runs.requeue_failed, run.id, again.fence)
        assert await database.write(partial(requeue, not_before=T0, crashed=crashed))
        stored = await get(database, stores, run)
        return stored.attempt, stored.crashes

    assert await fail() == (1, int(crashed))
    assert await fail() == (2, 2 * crashed)
    await claim_run(database, stores, run)
    await database.write(partial(stores.runs.record_progress, run.id))
    assert (
        (await get(database, stores, run)).attempt,
        (await get(database, stores, run)).crashes,
    ) == (1, 0)


async def test_a_failed_run_is_not_claimed_before_its_time(
    database: Database, stores: Stores
) -> None:
    run = await add_running_run(database, stores, a_run("run-1"))
    behind = await add_run(database, stores, a_run("run-2"))
    requeue = partial(stores.runs.requeue_failed, run.id, run.fence)
    assert await database.write(partial(requeue, not_before=T1, crashed=False))

    assert await ready(database, stores) == []
    assert await take(database, stores, run) is None
    assert await take(database, stores, behind) is None, "it is behind in the same lane"
    claim = partial(stores.runs.claim, run.id, "worker", lease_until=T2, now=T1)
    assert await database.write(claim) is not None


async def test_runs_of_a_dead_process_are_listed_apart(database: Database, stores: Stores) -> None:
    runs = [
        await add_running_run(database, stores, a_run(f"run-{n}", f"session-{n}")) for n in range(3)
    ]
    for run, crashed in zip(runs, (True, False, True), strict=True):
        requeue = partial(stores.runs.requeue_failed, run.id, run.fence)
        await database.write(partial(requeue, not_before=T0, crashed=crashed))

    assert await ready(database, stores) == ["run-1"]
    suspect = await database.read(lambda: stores.runs.get_ready_crashed("worker", T0))
    assert suspect is not None
    assert suspect.id == "run-0"


async def test_resumed_runs_start_before_new_runs(database: Database, stores: Stores) -> None:
    new = await add_run(database, stores, a_run("run-1", "session-1"))
    woken = await add_running_run(database, stores, a_run("run-2", "session-2"))
    handed = await add_running_run(database, stores, a_run("run-3", "session-3"))

    await database.write(lambda: stores.runs.requeue(handed.id, handed.fence))
    await database.write(lambda: stores.runs.pause(woken.id, woken.fence))
    assert await ready(database, stores) == [handed.id, new.id]
    await database.write(lambda: stores.runs.queue_waiting(woken.id, T0))

    assert await ready(database, stores) == [woken.id, handed.id, new.id]


@pytest.mark.parametrize("way", ["requeue", "pause"])
async def test_a_waiting_terminal_run_keeps_its_owner(
    database: Database, stores: Stores, way: str
) -> None:
    run = await add_running_run(
        database, stores, a_run(owner="terminal", terminal=True), "terminal"
    )
    rest = stores.runs.requeue if way == "requeue" else stores.runs.pause

    assert await database.write(lambda: rest(run.id, run.fence))

    assert (await get(database, stores, run)).owner == "terminal"


async def test_an_outdated_fence_changes_nothing(database: Database, stores: Stores) -> None:
    run = await add_running_run(database, stores, a_run())

    assert not await database.write(lambda: stores.runs.requeue(run.id, run.fence - 1))
    assert not await database.write(lambda: stores.runs.pause(run.id, run.fence + 1))
    assert not await database.write(lambda: stores.runs.end(run.id, run.fence + 1, ended()))
    assert not await database.write(lambda: stores.runs.queue_waiting(run.id, T0))

    assert await get(database, stores, run) == run


async def test_leases_expire_unless_renewed(database: Database, stores: Stores) -> None:
    mine = await add_running_run(database, stores, a_run("run-1", "session-1"))
    terminals = a_run("run-2", "session-2", owner="terminal", terminal=True)
    await add_run(database, stores, terminals, T1)
    await add_run(database, stores, a_run("run-3", "session-3"))

    async def lost(now: str) -> list[str]:
        held = await database.read(stores.runs.list_held)
        return [run.id for run, lease in held if lease < now]

    assert await lost(T1) == []
    assert await lost(T2) == [mine.id, terminals.id]

    await database.write(lambda: stores.runs.renew_leases("worker", T3))
    assert await lost(T2) == [terminals.id]
    await database.write(lambda: stores.runs.renew_leases("terminal", T3))
    assert await lost(T2) == []

    await database.write(lambda: stores.runs.end(mine.id, mine.fence, ended()))
    assert await lost("2027") == [terminals.id]


async def test_running_runs_of_an_owner(database: Database, stores: Stores) -> None:
    mine = await add_running_run(database, stores, a_run("run-1", "session-1"))
    await add_running_run(database, stores, a_run("run-2", "session-2"), "another")
    await add_run(database, stores, a_run("run-3", "session-3", owner="worker", terminal=True))

    assert await database.read(lambda: stores.runs.list_owned("worker")) == [mine]


async def test_active_and_unfinished_runs_of_a_session(database: Database, stores: Stores) -> None:
    async def active() -> str | None:
        run = await database.read(lambda: stores.runs.get_active(SESSION))
        return None if run is None else run.id

    async def unfinished() -> list[str]:
        return [run.id for run in await database.read(lambda: stores.runs.list_unfinished(SESSION))]

    assert await active() is None
    assert await unfinished() == []
    first = await add_run(database, stores, a_run("run-9"))
    await add_run(database, stores, a_run("run-8"))
    assert await active() == "run-9"

    first = await claim_run(database, stores, first)
    assert await active() == "run-9"
    await database.write(lambda: stores.runs.pause(first.id, first.fence))
    assert await active() == "run-8"
    assert await unfinished() == ["run-9", "run-8"]

    await database.write(lambda: stores.runs.end(first.id, first.fence, ended()))
    assert await unfinished() == ["run-8"]


async def test_the_first_stop_request_is_kept(database: Database, stores: Stores) -> None:
    run = await add_running_run(database, stores, a_run())
    await add_running_run(database, stores, a_run("run-2", "session-2"))
    asked, later = StopRequest("ana", "web", "enough"), StopRequest("bo", "cli")

    assert await database.write(lambda: stores.runs.request_stop(run.id, asked))
    assert await database.write(lambda: stores.runs.request_stop(run.id, later))

    assert await database.read(lambda: stores.runs.list_stop_requests("worker")) == [
        (run.id, asked)
    ]
    assert await database.read(lambda: stores.runs.list_stop_requests("another")) == []
    assert (await get(database, stores, run)).stop == asked
    waiting = await add_run(database, stores, a_run("run-3"))
    assert not await database.write(lambda: stores.runs.request_stop(waiting.id, asked))


async def test_the_result_of_a_run_is_stored_once(database: Database, stores: Stores) -> None:
    run = await add_running_run(database, stores, a_run())
    end = RunEnd("failed", "error", Usage(1, 2, 3, 4), 0.1, HOSTILE, HOSTILE, T2)

    assert await database.write(lambda: stores.runs.end(run.id, run.fence, end))

    stored = await get(database, stores, run)
    assert (stored.status, stored.stop_reason) == ("failed", "error")
    assert (stored.usage, stored.cost) == (Usage(1, 2, 3, 4), 0.1)
    assert (stored.answer, stored.error) == (CLEANED, CLEANED)
    assert not await database.write(lambda: stores.runs.end(run.id, run.fence, end)), "once"


async def test_an_idle_run_can_be_ended(database: Database, stores: Stores) -> None:
    run = await add_run(database, stores, a_run())
    end = ended("cancelled", "user_stop")

    assert await database.write(lambda: stores.runs.end(run.id, run.fence, end))

    assert (await get(database, stores, run)).status == "cancelled"


async def test_a_checkpoint_is_the_turn_and_all_messages(
    database: Database, stores: Stores
) -> None:
    run = await add_running_run(database, stores, a_run())
    other = await add_running_run(database, stores, a_run("run-2", "session-2"))

    async def keep(point: CheckpointDelta, of: Run = run) -> tuple[bytes, list[bytes]] | None:
        await database.write(lambda: stores.runs.save_checkpoint(of.id, point))
        stored = await database.read(lambda: stores.runs.get_checkpoint(of.id))
        return stored and (stored.turn, stored.rows)

    assert await database.read(lambda: stores.runs.get_checkpoint(run.id)) is None
    assert await keep(CheckpointDelta(b"{}", 0, ())) == (b"{}", [])
    assert await keep(CheckpointDelta(b'{"n":1}', 0, (b'"a"', b'"b"'))) == (
        b'{"n":1}',
        [b'"a"', b'"b"'],
    )
    assert await keep(CheckpointDelta(b'{"n":2}', 2, ('"半"'.encode(),))) == (
        b'{"n":2}',
        [b'"a"', b'"b"', '"半"'.encode()],
    )
    assert await keep(CheckpointDelta(b"1", 0, (b"1",)), other) == (b"1", [b"1"])
    assert await keep(CheckpointDelta(b'{"n":3}', 1, (b'"c"',))) == (b'{"n":3}', [b'"a"', b'"c"'])
    assert await keep(CheckpointDelta(b'{"n":4}', 2, ())) == (b'{"n":4}', [b'"a"', b'"c"'])


@pytest.mark.parametrize(
    ("end", "kept"),
    [
        (ended(), False),
        (ended("cancelled", "user_stop"), False),
        (ended("failed", "interrupted"), True),
    ],
)
async def test_the_checkpoint_of_a_failed_run_is_kept(
    database: Database, stores: Stores, end: RunEnd, kept: bool
) -> None:
    run = await add_running_run(database, stores, a_run())
    point = CheckpointDelta(b"{}", 0, (b"1", b"2"), task_index=3)
    await database.write(lambda: stores.runs.save_checkpoint(run.id, point))
    assert not await database.write(lambda: stores.runs.end(run.id, run.fence + 1, end))
    assert await database.read(lambda: stores.runs.get_checkpoint(run.id)) is not None

    await database.write(lambda: stores.runs.end(run.id, run.fence, end))

    left = await database.read(lambda: stores.runs.get_checkpoint(run.id))
    assert left == (StoredCheckpoint(CHECKPOINT_VERSION, 3, b"{}", [b"1", b"2"]) if kept else None)


async def test_an_answered_run_keeps_a_terminal_with_a_valid_lease(
    database: Database, stores: Stores
) -> None:
    for number, (lease, kept) in enumerate(((T2, True), (T0, False)), 1):
        run = a_run(f"run-{number}", f"session-{number}", owner="repl", terminal=True)
        await add_run(database, stores, run, lease)
        taken = await database.write(
            partial(stores.runs.claim, run.id, "repl", lease_until=lease, now=T0)
        )
        assert taken is not None
        await database.write(partial(stores.runs.pause, run.id, taken.fence))
        assert await database.write(partial(stores.runs.queue_waiting, run.id, T1))
        woken = await database.read(partial(stores.runs.get, run.id))
        assert woken is not None
        assert (woken.terminal, woken.owner) == (kept, "repl" if kept else "")


async def test_a_run_without_owner_is_adopted_once(database: Database, stores: Stores) -> None:
    run = await add_run(database, stores, a_run())
    assert await database.write(lambda: stores.runs.adopt(run.id, "a", T2))
    assert not await database.write(lambda: stores.runs.adopt(run.id, "b", T2))
    assert (
        await database.write(lambda: stores.runs.claim(run.id, "b", lease_until=T2, now=T0)) is None
    )
    assert await database.write(lambda: stores.runs.release(run.id, "b")) is False
    assert await database.write(lambda: stores.runs.release(run.id, "a"))
    assert (
        await database.write(lambda: stores.runs.claim(run.id, "b", lease_until=T2, now=T0))
        is not None
    )


async def add_share(
    database: Database, stores: Stores, run_id: str, person: str, **fields: Any
) -> Run:
    """Insert a queued run of a person, who may have two running at once, in a lane of its own."""
    run = a_run(run_id, **{"lane": run_id, **fields})
    await database.write(lambda: stores.runs.add(run, T0, share=Share(person, 2)))
    return run


async def place(database: Database, stores: Stores, run: Run) -> int | None:
    return await database.read(lambda: stores.runs.get_place(run.id))


async def test_only_so_many_runs_of_a_person_run_at_once(
    database: Database, stores: Stores
) -> None:
    first, second, third = [
        await add_share(database, stores, f"run-{number}", "anna") for number in range(3)
    ]
    other = await add_share(database, stores, "run-other", "ben")
    owners = [await add_run(database, stores, a_run(f"run-o{n}", lane=f"o{n}")) for n in range(3)]
    claimed = await take(database, stores, first, "one")
    assert claimed is not None
    assert await take(database, stores, second, "two") is not None
    assert await take(database, stores, third, "three") is None
    assert third.id not in await ready(database, stores)
    assert await take(database, stores, other) is not None
    assert all([await take(database, stores, run) for run in owners]), "the owner has no limit"

    await database.write(lambda: stores.runs.pause(first.id, claimed.fence))
    assert await ready(database, stores) == [third.id], "a waiting run takes no share"
    assert await take(database, stores, third, "three") is not None


async def test_runs_of_people_start_in_turn(database: Database, stores: Stores) -> None:
    anna = [await add_share(database, stores, f"run-a{number}", "anna") for number in range(3)]
    ben = [await add_share(database, stores, f"run-b{number}", "ben") for number in range(3)]
    cleo = await add_share(database, stores, "run-c", "cleo")
    started = []
    for minute in range(7):  # one at a time
        now = f"2026-01-02T00:{minute:02}:00.000Z"
        [run] = await database.read(partial(stores.runs.list_next, "w", now, 1))
        claim = partial(stores.runs.claim, run.id, "w", lease_until=T3, now=now)
        claimed = await database.write(claim)
        assert claimed is not None
        started.append(claimed.id)
        await database.write(partial(stores.runs.end, claimed.id, claimed.fence, ended()))
    expected = [anna[0], ben[0], cleo, anna[1], ben[1], anna[2], ben[2]]
    assert started == [run.id for run in expected]


async def test_the_person_with_the_fewest_running_runs_comes_first(
    database: Database, stores: Stores
) -> None:
    anna = [await add_share(database, stores, f"run-a{number}", "anna") for number in range(2)]
    ben = await add_share(database, stores, "run-b", "ben")

    async def following() -> list[str]:
        found = await database.read(partial(stores.runs.list_next, "worker", T0, 9))
        return [run.id for run in found]

    assert await following() == [anna[0].id, ben.id]
    assert await take(database, stores, anna[0]) is not None
    assert await following() == [ben.id, anna[1].id]
    assert await take(database, stores, anna[1]) is not None
    assert await following() == [ben.id], "anna has her share"


async def test_the_place_in_the_queue_counts_the_turns_of_others(
    database: Database, stores: Stores
) -> None:
    anna = [await add_share(database, stores, f"run-a{number}", "anna") for number in range(4)]
    ben = [await add_share(database, stores, f"run-b{number}", "ben") for number in range(2)]
    behind = await add_share(database, stores, "run-a9", "anna", lane="run-a0")
    assert [await place(database, stores, run) for run in anna] == [2, 4, 5, 6]
    assert [await place(database, stores, run) for run in ben] == [2, 4]
    assert await place(database, stores, behind) is None, "it waits for its conversation"
    assert await database.read(lambda: stores.runs.count_new("anna")) == 5
    assert await take(database, stores, anna[0]) is not None
    assert await place(database, stores, anna[0]) is None
    assert await place(database, stores, ben[0]) == 2
    assert await database.read(lambda: stores.runs.count_new("anna")) == 4
