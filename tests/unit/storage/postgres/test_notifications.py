"""Notifications of a process about the commits of other processes."""

import asyncio
from collections.abc import AsyncGenerator
from functools import partial

import pytest

from internal.agent.domain.ids import SessionId
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from tests.support.postgres_server import postgres_url, shared_server
from tests.support.store_records import a_session

pytestmark = pytest.mark.postgres


@pytest.fixture
async def url() -> AsyncGenerator[str]:
    async with postgres_url() as created:
        yield created


class Calls:
    """Counts the calls of a watcher."""

    def __init__(self) -> None:
        self.count = 0
        self._changed = asyncio.Event()

    def __call__(self) -> None:
        self.count += 1
        self._changed.set()

    async def wait(self) -> None:
        """Wait for a call since the last wait."""
        async with asyncio.timeout(20):
            await self._changed.wait()
        self._changed.clear()


async def add(database: Database, name: str) -> None:
    await database.write(partial(Stores().sessions.add, a_session(name)))


async def exists(database: Database, name: str) -> bool:
    return await database.read(partial(Stores().sessions.get, SessionId(name))) is not None


async def test_commits_of_other_processes_are_announced(url: str) -> None:
    calls = Calls()
    async with open_database(url) as database, open_database(url) as other:
        with database.watch(calls):
            await calls.wait()  # when it begins to listen
            await add(other, "a")
            await calls.wait()
            assert await exists(database, "a")


async def test_own_commits_and_unchanged_transactions_are_not_announced(url: str) -> None:
    calls = Calls()
    async with open_database(url) as database, open_database(url) as other:
        await other.write(partial(Stores().sessions.get, SessionId("none")))
        with database.watch(calls):
            await calls.wait()
            await add(database, "own")
            await other.write(partial(Stores().sessions.get, SessionId("none")))
            assert calls.count == 1
            await add(other, "a")  # notifications arrive in order
            await calls.wait()
            assert calls.count == 2


async def test_nobody_is_called_after_the_context(url: str) -> None:
    left, stays = Calls(), Calls()
    async with open_database(url) as database, open_database(url) as other:
        with database.watch(stays):
            with database.watch(left):
                await stays.wait()
            before = left.count
            await add(other, "a")
            await stays.wait()
            assert left.count == before


async def test_watchers_are_called_after_the_connection_was_lost(url: str) -> None:
    calls = Calls()
    async with open_database(url) as database, open_database(url) as other:
        with database.watch(calls):
            await calls.wait()
            shared_server().sql(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where datname = current_database() and query like 'LISTEN%'",
                url.rpartition("/")[2],
            )
            await calls.wait()  # it listens again
            await add(other, "a")
            await calls.wait()
