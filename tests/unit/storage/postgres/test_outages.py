"""Writes and reads while the server or the connection fails."""

import asyncio
import secrets
import signal
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from functools import partial

import pytest

from internal.agent.domain.errors import InvalidRequest, StoreUnavailable
from internal.agent.domain.ids import SessionId
from internal.agent.store.database import Database, Read, Write
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from tests.support.postgres_proxy import Cut, postgres_proxy
from tests.support.postgres_server import PostgresServer, find_binaries, postgres_url, shared_server
from tests.support.store_records import a_session

pytestmark = pytest.mark.postgres

_END_SESSIONS = """
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid()
"""


@pytest.fixture
async def url() -> AsyncGenerator[str]:
    async with postgres_url() as created:
        yield created


@pytest.fixture
async def database(url: str) -> AsyncGenerator[Database]:
    async with open_database(url) as opened:
        yield opened


@pytest.fixture
def own_server() -> Generator[PostgresServer]:
    """A server that the test may stop."""
    binaries = find_binaries()
    assert binaries
    server = PostgresServer(binaries)
    server.start()
    server.create_role()
    yield server
    server.remove()


def sql(url: str, statement: str) -> object:
    return shared_server().sql(statement, url.rpartition("/")[2])


def add(name: str) -> Callable[[], Write[None]]:
    return partial(Stores().sessions.add, a_session(name))


async def exists(database: Database, name: str) -> bool:
    return await database.read(partial(Stores().sessions.get, SessionId(name))) is not None


async def test_writes_and_reads_continue_on_a_new_connection(url: str, database: Database) -> None:
    await database.write(add("a"))
    assert await exists(database, "a")
    sql(url, _END_SESSIONS)

    await database.write(add("b"))
    assert await exists(database, "b")
    assert database.state.failure == ""


async def test_a_write_is_repeated_when_its_transaction_is_ended(
    url: str, database: Database
) -> None:
    times: list[int] = []

    def work() -> Write[None]:
        yield from Stores().sessions.add(a_session("a"))
        times.append(1)
        if len(times) == 1:
            sql(url, _END_SESSIONS)
        yield from Stores().sessions.add(a_session("b"))

    await database.write(work)

    assert len(times) == 2
    assert await exists(database, "a")
    assert await exists(database, "b")


@pytest.mark.slow
async def test_a_suspended_writer_does_not_block_other_processes(
    url: str, database: Database
) -> None:
    """The server ends its transaction after some seconds; the writer repeats its work."""
    times: list[int] = []
    began, go = threading.Event(), threading.Event()

    def work() -> Write[None]:
        times.append(1)
        yield from Stores().sessions.add(a_session("slow"))
        began.set()
        assert go.wait(30)

    async with open_database(url) as other, asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(database.write(work))
        await asyncio.to_thread(began.wait, 30)
        await other.write(add("fast"))
        assert not writing.done()
        go.set()

    assert len(times) == 2
    assert await exists(database, "slow")


async def test_writes_wait_for_a_server_that_restarts(own_server: PostgresServer) -> None:
    name = own_server.create_database(template="template1")
    async with open_database(own_server.url(name)) as database:
        await database.write(add("before"))
        own_server.stop(signal.SIGQUIT)
        writing = asyncio.create_task(database.write(add("during")))
        with pytest.raises(StoreUnavailable, match=f"The database {name} at 127.0.0.1:[0-9]+ can"):
            await exists(database, "before")
        await asyncio.to_thread(own_server.start)
        await writing
        assert await exists(database, "before")
        assert await exists(database, "during")
        assert database.state.failure == ""


@pytest.mark.slow
async def test_writes_fail_when_the_server_stays_away(own_server: PostgresServer) -> None:
    name = own_server.create_database(template="template1")
    async with open_database(own_server.url(name)) as database:
        own_server.stop()
        async with asyncio.TaskGroup() as tasks:
            for number in range(3):
                tasks.create_task(_fails(database, str(number)))
        assert "cannot be reached" in database.state.failure

        await asyncio.to_thread(own_server.start)
        await database.write(add("after"))
        assert database.state.failure == ""
        assert not await exists(database, "0")


async def _fails(database: Database, name: str) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await database.write(add(name))


@pytest.mark.parametrize(("cut", "executions"), [(Cut.BEFORE_COMMIT, 2), (Cut.BEFORE_REPLY, 1)])
async def test_a_lost_reply_to_a_commit_is_looked_up(url: str, cut: Cut, executions: int) -> None:
    times: list[int] = []

    def work() -> Write[int]:
        times.append(1)
        yield from Stores().sessions.add(a_session("a"))
        return 7

    async with postgres_proxy(url) as (proxy, address), open_database(address) as database:
        proxy.cut = cut
        assert await database.write(work) == 7
        assert await exists(database, "a")
    assert len(times) == executions


async def test_a_read_only_transaction_fails_at_once(url: str, database: Database) -> None:
    await database.write(add("a"))
    name = url.rpartition("/")[2]
    shared_server().sql(f"alter database {name} set default_transaction_read_only = on")
    sql(url, _END_SESSIONS)

    with pytest.raises(StoreUnavailable, match="is read-only: nothing was written"):
        await database.write(add("b"))
    assert "is read-only" in database.state.failure

    shared_server().sql(f"alter database {name} reset default_transaction_read_only")
    await database.write(add("c"))
    assert database.state.failure == ""


async def test_closing_completes_queued_work(url: str) -> None:
    async with open_database(url) as database:
        futures = [database.submit(add(str(number))) for number in range(20)]
    assert all(future.result(0) is None for future in futures)
    with pytest.raises(StoreUnavailable, match="The database is closed"):
        database.submit(add("late"))


async def test_a_key_that_is_too_long_for_an_index(database: Database) -> None:
    work = partial(Stores().sessions.add, a_session(secrets.token_hex(8_000)))
    with pytest.raises(InvalidRequest, match="too long for the database"):
        await database.write(work)
    assert database.state.failure == ""


async def test_an_error_of_the_work_itself_is_no_failure_of_the_server(database: Database) -> None:
    def work() -> Write[None]:
        yield from Stores().sessions.add(a_session("a"))
        raise TimeoutError("of the work")

    with pytest.raises(TimeoutError, match="of the work"):
        await database.write(work)
    with pytest.raises(TimeoutError, match="of the work"):
        await database.read(_raise_timeout)
    assert not await exists(database, "a")


def _raise_timeout() -> Read[None]:
    yield from Stores().sessions.get(SessionId("a"))
    raise TimeoutError("of the work")


async def test_a_nul_character_is_replaced(database: Database) -> None:
    """PostgreSQL cannot store it, and nothing else of the text is lost."""
    await database.write(partial(Stores().sessions.add, a_session("a", title="x\0y")))
    session = await database.read(partial(Stores().sessions.get, SessionId("a")))
    assert session is not None
    assert session.title == "x\ufffdy"
