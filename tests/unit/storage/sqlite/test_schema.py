"""Creation of the database file, alone and by several processes at once."""

import asyncio
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from internal.storage.migrations import newest_version
from internal.storage.sqlite.file_check import APPLICATION_ID
from tests.support.database_files import create_database, execute, file_contents
from tests.support.store_records import a_run, a_session, add_running_run, append_events

STORES = Stores()
NEWEST = newest_version("sqlite")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "larkspur.db"


def modes(folder: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


def open_to_others(path: Path) -> None:
    path.chmod(0o644)


async def test_mode_and_settings_of_a_new_file(path: Path) -> None:
    async with open_database(path) as database:
        await database.write(lambda: STORES.sessions.add(a_session()))
        private = {f"larkspur.db{suffix}": 0o600 for suffix in ("", "-wal", "-shm")}
        assert modes(path.parent) == private
    assert modes(path.parent) == {"larkspur.db": 0o600}, "closed without traces"
    with closing(sqlite3.connect(path)) as connection:
        settings = [
            connection.execute(f"pragma {name}").fetchone()[0]
            for name in ("application_id", "user_version", "journal_mode", "integrity_check")
        ]
        assert settings == [APPLICATION_ID, NEWEST, "wal", "ok"]


async def test_the_mode_of_an_existing_file_is_corrected(path: Path) -> None:
    await create_database(path)
    open_to_others(path)

    async with open_database(path):
        assert modes(path.parent)[path.name] == 0o600


def empty(path: Path) -> None:
    path.touch()


async def test_an_empty_file_becomes_a_database(path: Path) -> None:
    empty(path)
    await create_database(path, sessions=1)
    assert file_contents(path.parent)[path.name]


async def test_the_epoch_of_the_log_is_permanent(path: Path) -> None:
    epochs = set()
    for _ in range(3):
        async with open_database(path) as database:
            epochs.add((await database.read(STORES.events.get_bounds)).epoch)
    assert len(epochs) == 1

    await create_database(path.with_name("another.db"))
    async with open_database(path.with_name("another.db")) as database:
        assert (await database.read(STORES.events.get_bounds)).epoch not in epochs


async def test_concurrent_creation(path: Path) -> None:
    async def open_and_say(number: int) -> str:
        async with open_database(path) as database:
            run = await add_running_run(
                database, STORES, a_run(f"run-{number}", f"session-{number}")
            )
            await database.write(lambda: append_events(STORES, run))
            return (await database.read(STORES.events.get_bounds)).epoch

    async with asyncio.TaskGroup() as tasks:
        opened = [tasks.create_task(open_and_say(number)) for number in range(6)]

    assert len({task.result() for task in opened}) == 1
    async with open_database(path) as database:
        assert len(await database.read(lambda: STORES.events.list_after(0, None, 99))) == 6


async def test_wal_mode_is_enabled_after_an_interrupted_creation(path: Path) -> None:
    await create_database(path)
    execute(path, "pragma journal_mode = delete")

    async with open_database(path) as database:
        await database.write(lambda: STORES.sessions.add(a_session()))
        assert path.with_name("larkspur.db-wal").exists()


async def test_enabling_wal_mode_waits_for_readers(path: Path) -> None:
    await create_database(path)
    execute(path, "pragma journal_mode = delete")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin")
        other.execute("select * from event_log").fetchall()
        opening = asyncio.create_task(create_database(path, sessions=1))
        assert not opening.done()
        other.execute("commit")
    await opening


async def test_an_interrupted_creation_is_rolled_back(path: Path) -> None:
    """A rollback journal lies beside the file: the lock is taken, SQLite rolls back, we go on."""
    origin = path.with_name("origin.db")
    await create_database(origin)
    execute(origin, "pragma journal_mode = delete")
    with closing(sqlite3.connect(origin, isolation_level=None)) as connection:
        connection.execute("pragma cache_size = 1")  # pages go to the file before the commit
        connection.execute("begin exclusive")
        connection.execute("create table half (made text)")
        for number in range(99):
            connection.execute("insert into half values (?)", (str(number) * 999,))
        shutil.copy(origin, path)
        shutil.copy(f"{origin}-journal", f"{path}-journal")
        connection.execute("rollback")

    await create_database(path, sessions=1)

    with closing(sqlite3.connect(path)) as connection:
        tables = {row[0] for row in connection.execute("select name from sqlite_master")}
        assert "half" not in tables
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
