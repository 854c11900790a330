"""Several processes on one file: locks and copies."""

import asyncio
import os
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from tests.support.event_writer import Ack, acks, assert_complete, event_writer
from tests.support.store_records import a_run, add_running_run, append_events

STORES = Stores()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "larkspur.db"


def stored(path: Path) -> list[Ack]:
    """Check the integrity of the file and return all events by position."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        return connection.execute(
            "select run_id, seq, position from events join event_runs on number = run"
            " order by position"
        ).fetchall()


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
