"""The broadcaster on a real database. Streams of real runs: tests/integration/agent."""

from contextlib import aclosing

from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.events.subscription import Cursor, StreamItem
from internal.agent.domain.events.control import Connected, ReplayDone, StreamReset
from internal.agent.domain.events.envelope import EventRecord, RunIds, wrap_event
from internal.agent.domain.events.types import OutputDelta
from internal.agent.domain.ids import SessionId
from internal.agent.domain.tasks import Run
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import RUNNING, a_run, add_running_run, append


async def store(database: Database, stores: Stores, run: Run, seq: int) -> list[EventRecord]:
    return await database.write(lambda: append(stores, run, seq, RUNNING))


async def read(broadcaster: EventBroadcaster, start: Cursor | None, count: int) -> list[StreamItem]:
    """Return the first items of a stream of one session."""
    items: list[StreamItem] = []
    sessions = frozenset({SessionId("session-1")})
    async with aclosing(broadcaster.watch(sessions, start)) as batches:
        async for batch in batches:
            items += batch
            if len(items) >= count:
                break
    return items


async def test_a_stream_starts_with_the_stored_events_after_the_cursor(
    database: Database, stores: Stores, broadcaster: EventBroadcaster
) -> None:
    run = await add_running_run(database, stores, a_run())
    first = await store(database, stores, run, 1)
    second = await store(database, stores, run, 2)
    broadcaster.publish([*first, *second])
    assert broadcaster.head.position == 2

    connected, replayed, done = await read(broadcaster, Cursor(broadcaster.epoch, 1), 3)
    assert isinstance(connected, Connected)
    assert connected.active_run_id == run.id
    assert replayed == second[0]
    assert done == ReplayDone(head=str(Cursor(broadcaster.epoch, 2)))


async def test_an_unknown_cursor_resets_the_stream(
    database: Database, stores: Stores, broadcaster: EventBroadcaster
) -> None:
    run = await add_running_run(database, stores, a_run())
    broadcaster.publish(await store(database, stores, run, 1))
    await database.write(stores.events.skip_positions)
    for start, reason in (
        (Cursor("other", 1), "unknown_epoch"),
        (Cursor(broadcaster.epoch, 2**40), "ahead_of_log"),
        (Cursor(broadcaster.epoch, 5), "restored_log"),
    ):
        items = await read(broadcaster, start, 3)
        assert isinstance(items[1], StreamReset)
        assert items[1].reason == reason
        assert isinstance(items[2], EventRecord)


async def test_events_of_another_process_are_delivered_in_log_order(
    database: Database, stores: Stores, broadcaster: EventBroadcaster
) -> None:
    run = await add_running_run(database, stores, a_run())
    async with aclosing(broadcaster.watch(None, None)) as batches:
        items = await anext(batches)
        items += await anext(batches)
        await store(database, stores, run, 1)  # not published: like another process
        broadcaster.publish(await store(database, stores, run, 2))
        positions: list[int] = []
        while len(positions) < 2:
            positions += [
                item.position for item in await anext(batches) if isinstance(item, EventRecord)
            ]
    assert positions == [1, 2]


async def test_unfinished_outputs_follow_the_replay(broadcaster: EventBroadcaster) -> None:
    run = a_run()
    for k, text in enumerate(("one ", "two"), 1):
        delta = OutputDelta(node_id="iter:1:say", k=k, n=1, text=text)
        broadcaster.publish(
            [EventRecord.ephemeral(wrap_event(RunIds.of(run), delta, "2026", None))]
        )
    partial = (await read(broadcaster, None, 3))[-1]
    assert isinstance(partial, EventRecord)
    assert partial.event == "partial"
    assert b'"one two"' in partial.json


async def test_close_ends_every_stream(broadcaster: EventBroadcaster) -> None:
    async with aclosing(broadcaster.watch(None, None)) as batches:
        await anext(batches)
        await anext(batches)
        broadcaster.close()
        assert [batch async for batch in batches] == []
