"""The writer: group commit, and failures of disk and file."""

import asyncio
import sqlite3
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from internal.agent.domain.errors import Conflict, StoreError, StoreUnavailable
from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.tasks import SessionListFilter
from internal.agent.store.database import Batch, Read, Statement, Write
from internal.agent.store.stores import Stores
from internal.storage.pending_work import PendingWork, resolve_futures
from internal.storage.sqlite.database import SqliteDatabase
from internal.storage.sqlite.writer import execute
from tests.support.database_files import execute as execute_statements
from tests.support.database_files import open_sqlite
from tests.support.store_records import a_session

STORES = Stores()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "larkspur.db"


@pytest.fixture
async def database(path: Path) -> AsyncGenerator[SqliteDatabase]:
    async with open_sqlite(path) as opened:
        yield opened


def add(name: str, title: str = "") -> Callable[[], Write[None]]:
    return lambda: STORES.sessions.add(a_session(name, title=title))


async def count(database: SqliteDatabase) -> int:
    everything = SessionListFilter()
    page = await database.read(lambda: STORES.sessions.list_page(None, everything, None, 9999))
    return len(page.sessions)


class Held:
    """Holds the writer inside a unit of work, so that later writes are committed together."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._go, self._inside = threading.Event(), threading.Event()
        self._holding = asyncio.create_task(database.write(self._work))

    def _work(self) -> Write[None]:
        self._inside.set()
        assert self._go.wait(30)
        yield from ()

    async def __aenter__(self) -> None:
        await asyncio.to_thread(self._inside.wait, 30)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0)  # one turn of the loop: the block's tasks put their works
        self._go.set()
        with suppress(StoreUnavailable):  # it is part of the group that may fail
            await self._holding


async def test_concurrent_writes_share_a_commit(database: SqliteDatabase) -> None:
    async with asyncio.TaskGroup() as tasks, Held(database):
        before = database.commits
        for number in range(300):
            tasks.create_task(database.write(add(f"session-{number}")))

    assert await count(database) == 300
    assert database.commits - before < 30, "one for all that came in the time of a group"


async def test_sequential_writes_have_one_commit_each(database: SqliteDatabase) -> None:
    before = database.commits
    for number in range(5):
        await database.write(add(f"session-{number}"))
    assert database.commits - before == 5


async def test_writes_queued_before_close_are_completed(path: Path) -> None:
    async with open_sqlite(path) as database:
        writes = [
            asyncio.create_task(database.write(add(f"session-{number}"))) for number in range(99)
        ]
        await asyncio.sleep(0)
    await asyncio.wait(writes)

    async with open_sqlite(path) as database:
        assert await count(database) == 99


async def test_an_integer_over_64_bits_fails_its_own_write(database: SqliteDatabase) -> None:
    def too_large() -> Read[list[EventRecord]]:
        return (yield from STORES.events.list_after(2**63, None, 1))

    with pytest.raises(StoreError, match=r"events_after failed: .* too large"):
        await database.read(too_large)
    with pytest.raises(StoreError, match=r"events_after failed: .* too large"):
        await database.write(too_large)
    await database.write(add("after"))


async def test_the_writer_goes_on_after_an_error_before_its_first_write(path: Path) -> None:
    async with open_sqlite(path) as database:
        execute_statements(path, "alter table event_log rename to lost")
        assert "no such table" in await failure(database, add("before"))
        assert "no such table" in database.state.failure
        execute_statements(path, "alter table lost rename to event_log")
        await database.write(add("after"))
        assert database.state.failure == ""


async def test_a_full_disk_fails_the_whole_group(
    database: SqliteDatabase,
) -> None:
    await database.write(add("before"))
    limit(database, 60)
    async with asyncio.TaskGroup() as tasks, Held(database):
        small = tasks.create_task(failure(database, add("small")))
        large = tasks.create_task(failure(database, add("large", "x" * 10**6)))

    for sentence in (small.result(), large.result()):
        assert f"The disk of the database {database.path} is full: nothing was written." in sentence
    assert await count(database) == 1

    limit(database, 10**6)  # space was freed
    await database.write(add("after", "x" * 10**6))
    assert await count(database) == 2


def limit(database: SqliteDatabase, pages: int) -> None:
    database._writer._connection.execute(f"pragma max_page_count = {pages}")


async def failure(database: SqliteDatabase, work: Callable[[], Write[None]]) -> str:
    with pytest.raises(StoreUnavailable) as failed:
        await database.write(work)
    return str(failed.value)


async def test_no_write_after_damage(path: Path) -> None:
    async with open_sqlite(path) as database:
        for number in range(50):
            await database.write(add(f"session-{number}", "x" * 500))

    async with open_sqlite(path) as database:
        overwrite(path)
        assert "is damaged" in await failure(database, add("a"))
        sentence = await failure(database, add("b"))

    assert sentence.endswith("Restart Larkspur to continue.")


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 4096))


def move(path: Path, to: Path) -> None:
    path.rename(to)


@pytest.mark.parametrize("suffix", ["", "-wal"])
async def test_no_write_after_the_file_was_moved(path: Path, suffix: str) -> None:
    file, elsewhere = path.with_name(path.name + suffix), path.with_name("elsewhere")
    async with open_sqlite(path) as database:
        await database.write(add("before"))
        move(file, elsewhere)

        assert "moved or replaced: nothing was written" in await failure(database, add("lost"))
        move(elsewhere, file)
        assert "moved or replaced" in await failure(database, add("late")), "until opened anew"

    async with open_sqlite(path) as database:
        assert await count(database) == 1


FILE_LIMIT = """
import asyncio, resource, sys
from internal.agent.domain.errors import StoreUnavailable
from internal.storage.database_url import open_database
from internal.agent.store.stores import Stores
from tests.support.database_files import execute as execute_statements
from tests.support.store_records import a_session

async def fill(path, limit_before, limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_before, limit_before))
    async with open_database(path) as database:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        for number in range(999):
            session = a_session(f"session-{number}", title="x" * 5000)
            try:
                await database.write(lambda: Stores().sessions.add(session))
            except StoreUnavailable as error:
                print(number, error)
                return

try:
    asyncio.run(fill(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
except StoreUnavailable as error:
    print("made", error)
"""


async def limited(path: Path, before: int, after: int) -> tuple[str, str]:
    """Return the number of stored rows, or `made`, and the error sentence under a size limit."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", FILE_LIMIT, path, str(before), str(after)),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    written, _, sentence = output.decode().partition(" ")
    return written, sentence


async def test_a_failed_write_of_the_kernel_loses_no_acknowledged_row(path: Path) -> None:
    """A real write fails in the kernel: a file may not grow beyond the limit of its process."""
    written, sentence = await limited(path, 900_000, 900_000)

    assert sentence.startswith(f"The disk of the database {path} reports an error")
    async with open_sqlite(path) as database:
        assert await count(database) == int(written)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]


async def test_an_interrupted_creation_is_repeated_later(path: Path) -> None:
    written, sentence = await limited(path, 50_000, 50_000)
    assert written == "made"
    assert sentence.startswith(f"The disk of the database {path} reports an error")

    async with open_sqlite(path) as database:
        await database.write(add("a"))
        assert await count(database) == 1


QUERIES = {
    "insert": "insert into birds (name) values ($1)",
    "list": "select name from birds order by name",
    "broken": "select nothing from nowhere",
}


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        opened.execute("create table birds (name text unique)")
        yield opened


def insert_and_list(*names: str) -> Write[list[str]]:
    yield Batch("insert", [(name,) for name in names])
    rows = yield Statement("list")
    return [name for (name,) in rows]


def test_statements_are_executed_and_the_result_returned(connection: sqlite3.Connection) -> None:
    assert execute(connection, QUERIES, lambda: insert_and_list("heron", "crane")) == [
        "crane",
        "heron",
    ]


def test_a_duplicate_key_is_a_conflict(connection: sqlite3.Connection) -> None:
    with pytest.raises(Conflict):
        execute(connection, QUERIES, lambda: insert_and_list("heron", "heron"))


def test_a_failing_statement_is_named(connection: sqlite3.Connection) -> None:
    def work() -> Read[None]:
        yield Statement("broken")

    with pytest.raises(StoreError, match="The statement broken failed"):
        execute(connection, QUERIES, work)


async def test_futures_are_resolved_unless_cancelled() -> None:
    loop = asyncio.get_running_loop()
    futures: list[asyncio.Future[int]] = [loop.create_future() for _ in range(3)]
    done, failed, cancelled = (PendingWork(insert_and_list, future) for future in futures)
    done.result, failed.error = 1, ValueError("x")
    cancelled.future.cancel()

    resolve_futures([done, failed, cancelled])

    assert await futures[0] == 1
    with pytest.raises(ValueError, match="x"):
        await futures[1]
    assert futures[2].cancelled()
