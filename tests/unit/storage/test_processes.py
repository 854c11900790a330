"""Several processes on one database: concurrent writes and kills."""

import asyncio
import signal
from collections.abc import Callable
from functools import partial

import pytest

from internal.agent.domain.events.envelope import EventRecord
from internal.agent.store.database import Row
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from tests.support.event_writer import Ack, acks, assert_complete, event_writer
from tests.support.store_records import a_run, add_running_run, append_events

STORES = Stores()
Stored = Callable[[], list[Ack]]


@pytest.fixture
def stored(select: Callable[[str], list[Row]]) -> Stored:
    """Return all events by position."""
    return lambda: [
        (run_id, seq, position)
        for run_id, seq, position in select(
            "select run_id, seq, position from events join event_runs on number = run"
            " order by position"
        )
    ]


async def test_two_processes_write_and_a_third_reads(address: str, stored: Stored) -> None:
    followed: list[EventRecord] = []

    async with (
        event_writer(address, "a", 8, 60) as one,
        event_writer(address, "b", 8, 60) as two,
        open_database(address) as database,
        asyncio.TaskGroup() as tasks,
    ):
        ends = [tasks.create_task(acks(process)) for process in (one, two)]
        while len(followed) < 960:
            last = followed[-1].position if followed else 0
            followed += await database.read(partial(STORES.events.list_after, last, None, 50))

    acknowledged = [ack for end in ends for ack in end.result()]
    events = stored()
    assert_complete(events, processes=2)
    assert sorted(acknowledged) == sorted(events)
    assert [(e.run_id, e.seq, e.position) for e in followed] == events, "visible in order"


@pytest.mark.parametrize("count", [1, 40, 400])
@pytest.mark.first_rows(2)
async def test_acknowledged_writes_survive_a_kill(address: str, stored: Stored, count: int) -> None:
    async with event_writer(address, "a", 8, 10_000) as process:
        acknowledged = await acks(process, count)
        process.kill()
        acknowledged += await acks(process)
        assert await process.wait() == -signal.SIGKILL

    async with open_database(address) as database:
        run = await add_running_run(database, STORES, a_run())
        await database.write(lambda: append_events(STORES, run))
    events = stored()
    assert_complete(events, processes=2)
    assert len(acknowledged) >= count
    assert set(acknowledged) <= set(events)
