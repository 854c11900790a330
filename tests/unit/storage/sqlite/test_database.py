"""Opening, reading and closing a SQLite database."""

import asyncio
import os
import sqlite3
import threading
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from internal.agent.domain.errors import Conflict, StoreUnavailable
from internal.agent.domain.tasks import Session
from internal.agent.store.database import Read
from internal.agent.store.stores import Stores
from internal.storage.sqlite.database import SqliteDatabase
from tests.support.store_records import a_session

STORES = Stores()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "larkspur.db"


async def test_a_closed_database_raises(path: Path) -> None:
    database = await SqliteDatabase.open(path)
    await database.close()

    with pytest.raises(StoreUnavailable, match="closed"):
        await database.write(partial(STORES.sessions.add, a_session()))
    with pytest.raises(StoreUnavailable, match="closed"):
        await database.read(STORES.events.get_bounds)
    with pytest.raises(StoreUnavailable, match="closed"):
        database.submit(partial(STORES.sessions.add, a_session()))


async def test_work_that_a_thread_submits_is_stored_without_the_event_loop(path: Path) -> None:
    database = await SqliteDatabase.open(path)
    try:
        submitted = [
            database.submit(partial(STORES.sessions.add, a_session(f"session-{number}")))
            for number in range(20)
        ]
        failing = database.submit(partial(STORES.sessions.add, a_session("session-1")))
        for future in submitted:
            future.result(timeout=30)  # blocks the loop
        with pytest.raises(Conflict):
            failing.result(timeout=30)
        assert not failing.cancel()
        assert database.commits < len(submitted)
        found = await database.read(partial(STORES.sessions.get, a_session("session-19").id))
        assert found == a_session("session-19")
    finally:
        await database.close()


async def test_a_read_does_not_wait_for_a_lock(path: Path) -> None:
    database = await SqliteDatabase.open(path)
    try:
        await database.write(partial(STORES.sessions.add, a_session()))
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("begin immediate")
            session = await database.read(partial(STORES.sessions.get, a_session().id))
            assert session == a_session()
        assert database.commits == 1
    finally:
        await database.close()


async def test_a_short_read_sees_one_snapshot_in_the_event_loop(path: Path) -> None:
    database = await SqliteDatabase.open(path)
    threads = set[int]()
    try:
        await database.write(partial(STORES.sessions.add, a_session()))
        with closing(sqlite3.connect(path, isolation_level=None)) as other:

            def twice() -> Read[list[Session | None]]:
                first = yield from STORES.sessions.get(a_session().id)
                other.execute("delete from sessions")
                threads.add(threading.get_ident())
                return [first, (yield from STORES.sessions.get(a_session().id))]

            assert await database.read(twice, is_short=True) == [a_session(), a_session()]
            assert await database.read(twice, is_short=True) == [None, None]
        assert threads == {threading.get_ident()}
    finally:
        await database.close()


async def test_a_short_read_of_a_damaged_file_is_an_error(path: Path) -> None:
    database = await SqliteDatabase.open(path)
    await database.close()  # everything is in the file itself
    database = await SqliteDatabase.open(path)
    try:
        with path.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(4096)
            file.write(b"\xff" * (size - 4096))
        with pytest.raises(StoreUnavailable, match="malformed"):
            await database.read(partial(STORES.sessions.get, a_session().id), is_short=True)
    finally:
        await database.close()


async def test_commits_of_other_processes_are_noticed_and_own_ones_are_not(path: Path) -> None:
    here, there = await SqliteDatabase.open(path), await SqliteDatabase.open(path)
    try:
        noticed_here, noticed_there = asyncio.Event(), asyncio.Event()
        with here.watch(noticed_here.set), there.watch(noticed_there.set):
            await here.write(partial(STORES.sessions.add, a_session("session-1")))
            async with asyncio.timeout(30):
                await noticed_there.wait()
            await here.write(partial(STORES.sessions.add, a_session("session-2")))
            noticed_there.clear()
            await here.write(partial(STORES.sessions.add, a_session("session-3")))
            async with asyncio.timeout(30):
                await noticed_there.wait()
            assert not noticed_here.is_set()
        noticed_there.clear()
        await here.write(partial(STORES.sessions.add, a_session("session-4")))
        with there.watch(noticed_here.set):
            async with asyncio.timeout(30):
                await noticed_here.wait()
        assert not noticed_there.is_set(), "it is not called after the block"
    finally:
        await here.close()
        await there.close()
