"""Several processes on one file: concurrent writes, kills and copies."""

import asyncio
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from functools import partial
from itertools import groupby
from operator import sub
from pathlib import Path

import pytest

from internal.agent.domain.events.envelope import EventRecord
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from tests.support.store_records import a_run, add_running_run, append_events

STORES = Stores()
Ack = tuple[str, int, int]  # run, seq, position


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "larkspur.db"


@asynccontextmanager
async def event_writer(
    path: Path, name: str, writers: int, each: int
) -> AsyncGenerator[asyncio.subprocess.Process]:
    command = (
        sys.executable,
        "-m",
        "tests.support.event_writer",
        path,
        name,
        str(writers),
        str(each),
    )
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def acks(process: asyncio.subprocess.Process, count: int | None = None) -> list[Ack]:
    """Read `count` acknowledged events of a process, or all until its end."""
    assert process.stdout is not None
    found: list[Ack] = []
    while count is None or len(found) < count:
        line = await process.stdout.readline()
        if not line.endswith(b"\n"):  # killed while writing a line, or at the end
            break
        run, seq, position = line.split()
        found.append((run.decode(), int(seq), int(position)))
    return found


def stored(path: Path) -> list[Ack]:
    """Check the integrity of the file and return all events by position."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        return connection.execute(
            "select run_id, seq, position from events order by position"
        ).fetchall()


def assert_complete(events: list[Ack], processes: int = 1) -> None:
    """Check that events have the same order by position and by the sequence number of their run.

    Sequence numbers have no gaps, positions have one per process after the first.
    """
    positions = [position for _, _, position in events]
    gaps = [step for step in map(sub, positions[1:], positions) if step != 1]
    assert positions[0] == 1
    assert len(gaps) <= processes - 1
    assert all(gap > 0 for gap in gaps)
    for _, group in groupby(sorted(events), key=lambda event: event[0]):
        run = list(group)
        assert [seq for _, seq, _ in run] == list(range(1, len(run) + 1))
        assert [position for *_, position in run] == sorted(position for *_, position in run)


async def test_two_processes_write_and_a_third_reads(path: Path) -> None:
    followed: list[EventRecord] = []

    async with (
        event_writer(path, "a", 8, 60) as one,
        event_writer(path, "b", 8, 60) as two,
        open_database(path) as database,
        asyncio.TaskGroup() as tasks,
    ):
        ends = [tasks.create_task(acks(process)) for process in (one, two)]
        while len(followed) < 960:
            last = followed[-1].position if followed else 0
            followed += await database.read(partial(STORES.events.list_after, last, None, 50))

    acknowledged = [ack for end in ends for ack in end.result()]
    events = stored(path)
    assert_complete(events, processes=2)
    assert sorted(acknowledged) == sorted(events)
    assert [(e.run_id, e.seq, e.position) for e in followed] == events, "visible in order"


@pytest.mark.parametrize("count", [1, 40, 400])
async def test_acknowledged_writes_survive_a_kill(path: Path, count: int) -> None:
    async with event_writer(path, "a", 8, 10_000) as process:
        acknowledged = await acks(process, count)
        process.kill()
        acknowledged += await acks(process)
        assert await process.wait() == -signal.SIGKILL

    async with open_database(path) as database:
        run = await add_running_run(database, STORES, a_run())
        await database.write(lambda: append_events(STORES, run))
    events = stored(path)
    assert_complete(events, processes=2)
    assert len(acknowledged) >= count
    assert set(acknowledged) <= set(events)


async def test_copies_of_the_folder_can_be_opened(path: Path, tmp_path: Path) -> None:
    """A copy is taken while the process stands still: a snapshot of one instant, any instant."""
    acknowledged: list[Ack] = []
    async with event_writer(path, "a", 8, 10_000) as process:
        for number in range(8):
            acknowledged += await acks(process, 150)
            copy = tmp_path / f"copy-{number}"
            copy_standing(process.pid, path, copy)

            async with open_database(copy / path.name) as database:
                head = (await database.read(STORES.events.get_bounds)).head
            events = stored(copy / path.name)
            assert_complete(events)
            assert head == len(events)
            assert set(acknowledged) <= set(events)


def copy_standing(pid: int, path: Path, copy: Path) -> None:
    os.kill(pid, signal.SIGSTOP)
    while "T" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]:
        os.sched_yield()
    copy.mkdir()
    for file in path.parent.glob(f"{path.name}*"):
        shutil.copy(file, copy)
    os.kill(pid, signal.SIGCONT)


async def test_a_writer_waits_for_the_lock_of_another_process(path: Path) -> None:
    async with open_database(path) as database:
        run = await add_running_run(database, STORES, a_run())
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("begin immediate")
            writing = asyncio.create_task(database.write(lambda: append_events(STORES, run)))
            assert (await database.read(STORES.events.get_bounds)).head == 0, "readers do not wait"
            assert not writing.done()
            other.execute("commit")
        assert await writing == [1]
