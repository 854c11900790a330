"""The event log: sequence numbers, positions and fences."""

import re
from collections.abc import Callable
from functools import partial

import pytest

from internal.agent.domain.delegation.subtask import Subtask
from internal.agent.domain.errors import Conflict, LeaseLost
from internal.agent.domain.events.envelope import EventRecord, RunIds, encode_envelope, wrap_event
from internal.agent.domain.events.types import (
    NodeCompleted,
    NodeStarted,
    OutputDelta,
    ToolCompleted,
)
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.secrets import MASK, register_secret
from internal.agent.domain.tasks import StopRequest
from internal.agent.domain.usage import Usage
from internal.agent.store.database import Database, Row, Write
from internal.agent.store.events import LogBounds
from internal.agent.store.runs import RunEnd
from internal.agent.store.stores import Stores
from tests.support.event_samples import FULL
from tests.support.store_records import (
    RUNNING,
    T0,
    T1,
    a_run,
    a_session,
    add_run,
    add_running_run,
    append,
    append_events,
)

A, B, C = SessionId("session-a"), SessionId("session-b"), SessionId("session-c")


async def test_sequence_numbers_start_at_one_without_gaps(
    database: Database, stores: Stores
) -> None:
    run = await add_running_run(database, stores, a_run())

    firsts = [
        await database.write(partial(stores.events.reserve_seqs, run.id, run.fence, count))
        for count in (2, 3, 0, 1)
    ]

    assert firsts == [(1, None), (3, None), (6, None), (6, None)]
    stored = await database.read(lambda: stores.runs.get(run.id))
    assert stored is not None
    assert stored.last_seq == 6


async def test_reserved_numbers_can_be_given_back_and_a_stop_request_comes_with_them(
    database: Database, stores: Stores
) -> None:
    run = await add_running_run(database, stores, a_run())
    stop = StopRequest("ann", "web", "enough")
    await database.write(partial(stores.runs.request_stop, run.id, stop))

    def reserve() -> Write[list[tuple[int, StopRequest | None]]]:
        first = yield from stores.events.reserve_seqs(run.id, run.fence, 5)
        back = yield from stores.events.reserve_seqs(run.id, run.fence, -3)
        return [first, back, (yield from stores.events.reserve_seqs(run.id, run.fence, 1))]

    assert await database.write(reserve) == [(1, stop), (6, stop), (3, stop)]


@pytest.mark.parametrize("fence", [0, 2])
async def test_a_wrong_fence_reserves_no_numbers(
    database: Database, stores: Stores, fence: int
) -> None:
    run = await add_running_run(database, stores, a_run())
    assert run.fence == 1

    with pytest.raises(LeaseLost):
        await database.write(lambda: stores.events.reserve_seqs(run.id, fence, 1))

    assert await database.write(lambda: stores.events.reserve_seqs(run.id, 1, 1)) == (1, None)


async def test_only_a_running_run_reserves_numbers_with_its_fence(
    database: Database, stores: Stores
) -> None:
    run = await add_running_run(database, stores, a_run())
    await database.write(lambda: stores.runs.pause(run.id, run.fence))

    with pytest.raises(LeaseLost):
        await database.write(lambda: stores.events.reserve_seqs(run.id, run.fence, 0))
    with pytest.raises(LeaseLost):
        await database.write(lambda: stores.events.reserve_seqs(RunId("run-unknown"), 1, 0))


async def test_numbers_of_an_idle_run_need_no_fence(database: Database, stores: Stores) -> None:
    run = await add_run(database, stores, a_run())
    assert await database.write(lambda: stores.events.reserve_seqs_of_idle_run(run.id, 2)) == 1

    run = await add_running_run(database, stores, a_run("run-2", "session-2"))
    with pytest.raises(Conflict):
        await database.write(lambda: stores.events.reserve_seqs_of_idle_run(run.id, 1))

    await database.write(lambda: stores.runs.pause(run.id, run.fence))
    assert await database.write(lambda: stores.events.reserve_seqs_of_idle_run(run.id, 1)) == 1

    end = RunEnd("cancelled", "user_stop", Usage(), None, "", "", T1)
    await database.write(lambda: stores.runs.end(run.id, run.fence, end))
    with pytest.raises(Conflict):
        await database.write(lambda: stores.events.reserve_seqs_of_idle_run(run.id, 1))


async def test_positions_increase_over_all_sessions(database: Database, stores: Stores) -> None:
    one = await add_running_run(database, stores, a_run("run-1", A))
    two = await add_running_run(database, stores, a_run("run-2", B))

    positions = [
        await database.write(partial(append_events, stores, run, count))
        for run, count in ((one, 2), (two, 1), (one, 1))
    ]

    assert positions == [[1, 2], [3], [4]]
    assert await database.write(partial(append, stores, one, 4)) == []


async def test_events_of_kinds_come_by_kind_and_then_in_order(
    database: Database, stores: Stores
) -> None:
    run = await add_running_run(database, stores, a_run())
    other = await add_running_run(database, stores, a_run("run-2", "session-2"))
    started = NodeStarted(node_id="iter:1", kind="iteration")
    completed = NodeCompleted(node_id="iter:1", duration_ms=1)
    kinds = (completed.name, "workflow.result.final", started.name)

    await database.write(partial(append, stores, run, 1, started, completed, started))
    await database.write(partial(append, stores, other, 1, RUNNING))

    every = await database.read(lambda: stores.events.list_by_run(run.id))
    found = await database.read(lambda: stores.events.list_of_kinds(run.id, kinds))
    assert found == [every[1], every[0], every[2]]
    assert await database.read(lambda: stores.events.list_of_kinds(other.id, kinds)) == []


async def test_a_stored_event_is_returned_unchanged(database: Database, stores: Stores) -> None:
    run = await add_running_run(database, stores, a_run())
    event = OutputDelta(node_id="iter:1:say", k=1, n=1, text='半角 \0 " 😀')
    (appended,) = await database.write(partial(append, stores, run, 1, event))

    (stored,) = await database.read(lambda: stores.events.list_by_run(run.id))

    ids = RunIds(run.session_id, run.task_id, run.id)
    json = encode_envelope(wrap_event(ids, event, T0, 1))
    assert '"半角 \\u0000 \\" 😀"'.encode() in json
    assert stored == EventRecord(run.session_id, run.id, event.name, json, 1, 1)
    assert stored == appended


@pytest.mark.parametrize("is_subtask", [False, True])
async def test_every_event_is_read_as_it_was_sent(
    database: Database, stores: Stores, *, is_subtask: bool
) -> None:
    run = await add_running_run(database, stores, a_run())
    ids = RunIds.of(run)
    if is_subtask:
        place = Subtask(
            TaskId("task-0"), RunId("run-0"), 'call"1', 2, 3, "analyst", ',"event":"x","payload":'
        )
        ids = RunIds(
            ids.session_id, ids.task_id, ids.run_id, RunId("run-p"), RunId("run-0"), "call", place
        )
    events = [(event, T0) for event, _ in FULL if event.durable]
    appended = await database.write(partial(stores.events.append, ids, 1, events))

    stored = await database.read(partial(stores.events.list_after, 0, [run.session_id], 99))

    assert stored == appended
    envelopes = [record.envelope for record in appended]
    assert [record.json for record in stored] == [
        encode_envelope(envelope) for envelope in envelopes if envelope is not None
    ]


@pytest.mark.parametrize(
    "task_id", ["task-1", 'task"1', "task\\1", "task\t1", "task\x7f", "任务-1", "a b"]
)
async def test_an_event_is_read_as_it_was_sent_whatever_its_ids_are(
    database: Database, stores: Stores, task_id: str
) -> None:
    run = await add_running_run(database, stores, a_run())
    ids = RunIds(run.session_id, TaskId(task_id), run.id)
    event = NodeStarted(node_id="execute")
    appended = await database.write(partial(stores.events.append, ids, 1, [(event, T0)]))
    stored = await database.read(partial(stores.events.list_after, 0, [run.session_id], 99))
    assert [record.json for record in stored] == [encode_envelope(wrap_event(ids, event, T0, 1))]
    assert stored == appended


async def test_a_secret_in_an_event_is_neither_sent_nor_stored(
    database: Database, stores: Stores, select: Callable[[str], list[Row]]
) -> None:
    run = await add_running_run(database, stores, a_run())
    register_secret("s3cret-token-1")
    event = ToolCompleted(
        call_id="s3cret-token-1", tool_name="x", duration_ms=1, result="a s3cret-token-1"
    )
    (appended,) = await database.write(partial(append, stores, run, 1, event))
    (stored,) = await database.read(lambda: stores.events.list_by_run(run.id))

    assert stored == appended
    assert b"s3cret-token-1" not in stored.json
    assert select("select node_id, node_kind from events") == [(f'"{MASK}"', "tool")]


async def test_a_sequence_number_is_stored_once(database: Database, stores: Stores) -> None:
    run = await add_running_run(database, stores, a_run())
    await database.write(partial(append, stores, run, 1, RUNNING))

    def append_twice() -> Write[None]:
        yield from append(stores, run, 2, RUNNING)
        yield from append(stores, run, 1, RUNNING)

    with pytest.raises(Conflict):
        await database.write(append_twice)

    assert [e.seq for e in await database.read(lambda: stores.events.list_by_run(run.id))] == [1]
    assert (await database.read(stores.events.get_bounds)).head == 1


async def test_events_after_a_position(database: Database, stores: Stores) -> None:
    runs = [await add_running_run(database, stores, a_run(f"run-{s}", s)) for s in (A, B, C)]
    for run in (*runs, *runs):
        await database.write(partial(append_events, stores, run, 2))  # A12 B34 C56 A78 B910 C1112

    async def positions(after: int, sessions: list[SessionId] | None, limit: int = 99) -> list[int]:
        events = await database.read(lambda: stores.events.list_after(after, sessions, limit))
        return [event.position for event in events]

    assert await positions(0, None) == list(range(1, 13))
    assert await positions(3, None, 4) == [4, 5, 6, 7]
    assert await positions(12, None) == []
    assert await positions(0, [A]) == [1, 2, 7, 8]
    assert await positions(2, [A], 1) == [7]
    assert await positions(1, [C, A]) == [2, 5, 6, 7, 8, 11, 12]
    assert await positions(1, [C, A, C], 3) == [2, 5, 6]
    assert await positions(0, []) == []
    assert await positions(0, [SessionId("session-unknown")]) == []


async def test_a_page_of_limited_size_has_at_least_one_event(
    database: Database, stores: Stores
) -> None:
    runs = [await add_running_run(database, stores, a_run(f"run-{s}", s)) for s in (A, B, C)]
    for run in (*runs, *runs):
        await database.write(partial(append_events, stores, run, 150))
    every = await database.read(lambda: stores.events.list_after(0, None, 999))
    assert len(every) == 900

    for sessions in (None, [A], [A, C], [C, B, A, SessionId("session-unknown")]):
        wanted = [e for e in every if sessions is None or e.session_id in sessions]
        for limit, max_bytes, start in ((500, 10_000, 0), (7, 10_000, 0), (500, 1, 850)):
            read = [event for event in wanted if event.position <= start]
            while page := await database.read(
                partial(
                    stores.events.list_after,
                    read[-1].position if read else 0,
                    sessions,
                    limit,
                    max_bytes,
                )
            ):
                assert len(page) <= min(limit, 400)
                read += page
            assert read == wanted


async def test_positions_are_skipped_after_the_first_event_only(
    database: Database, stores: Stores
) -> None:
    async def head() -> int:
        return (await database.read(stores.events.get_bounds)).head

    async def skipped(*positions: int) -> list[int]:
        return [
            position
            for position in positions
            if await database.read(partial(stores.events.is_skipped, position))
        ]

    await database.write(stores.events.skip_positions)
    assert await head() == 0
    run = await add_running_run(database, stores, a_run())
    await database.write(partial(append_events, stores, run, 3))
    await database.write(stores.events.skip_positions)
    first = await head()
    assert 2**32 <= first - 3 < 2**33
    await database.write(stores.events.skip_positions)
    second = await head()
    await database.write(partial(append_events, stores, run, 2))
    assert await head() == second + 2
    inside = [4, first - 1, first + 1, second - 1]
    assert await skipped(0, 1, 3, *inside, first, second, second + 1, second + 2) == inside


async def test_the_bounds_of_the_log(database: Database, stores: Stores) -> None:
    epoch, head, earliest = await database.read(stores.events.get_bounds)
    assert re.fullmatch("[a-z0-9]{6}", epoch)
    assert (head, earliest) == (0, 1)

    for session in (A, B):
        await database.write(partial(stores.sessions.add, a_session(session)))
        run = await add_running_run(database, stores, a_run(f"run-{session}", session))
        await database.write(partial(append_events, stores, run, 3))
        end = RunEnd("completed", "final_answer", Usage(), None, "", "", T1)
        await database.write(partial(stores.runs.end, run.id, run.fence, end))
    assert await database.read(stores.events.get_bounds) == LogBounds(epoch, 6, 1)

    await database.write(lambda: stores.sessions.delete(A))
    assert await database.read(stores.events.get_bounds) == LogBounds(epoch, 6, 4)

    await database.write(lambda: stores.sessions.delete(B))
    assert await database.read(stores.events.get_bounds) == LogBounds(epoch, 6, 7)
