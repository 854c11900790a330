"""Throughput of durable events to the disk, through the one path that every event takes."""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.background_task import background_task
from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.events.writer import SerializingEventListener
from internal.agent.app.gateway import Gateway
from internal.agent.app.runs.active import claim_run
from internal.agent.app.runs.creation import Submission
from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.domain.events.envelope import RunIds
from internal.agent.domain.events.types import NodeStarted
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.store.stores import Stores
from internal.observability.clock import SystemClock
from internal.storage.database_url import open_database
from internal.tools.commands.background import BackgroundCommandPool
from internal.tools.instruction_trust import InstructionTrust
from tests.bench.load import run
from tests.bench.table import Row, Table, least
from tests.support.owner_reviews import owner_reviews
from tests.support.postgres_server import PostgresServer, find_binaries
from tests.support.session_files import session_files
from tests.support.store_records import a_session
from tests.support.web_app import IdleDispatcher, defaults

pytestmark = pytest.mark.bench

SECONDS = 1.0
ROUNDS = 3
LATER = "2999-01-01T00:00:00.000Z"
EVENT = NodeStarted(node_id="iter:1", kind="iteration", iteration=1)


async def _rate(address: str, folder: Path, writers: int, together: int) -> float:
    """Return the events per second of several concurrent runs that wait for their last entry."""
    clock, stores, written = SystemClock(), Stores(), 0

    async def write(stream: SerializingEventListener, until: float) -> None:
        nonlocal written
        while time.perf_counter() < until:
            await stream.commit(*(EVENT,) * together)
            written += together

    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(address))
        broadcaster = EventBroadcaster(database, stores, clock, "1")
        await broadcaster.start()
        gateway = Gateway(
            database,
            stores,
            broadcaster=broadcaster,
            dispatcher=IdleDispatcher(),
            clock=clock,
            files=session_files(folder, database, stores),
            commands=BackgroundCommandPool(clock, InstructionTrust(folder)),
            reviews=owner_reviews(folder),
        )
        streams = []
        for _ in range(writers):
            brief = build_run_spec(defaults(), TaskOptions(), LOCAL_OWNER)
            given = await gateway.submit(Submission("append", brief, "web"), LOCAL_OWNER)
            claimed = await database.write(
                partial(claim_run, stores, given.run_id, "bench", lease_until=LATER, now=LATER)
            )
            assert claimed is not None
            ids = RunIds(given.session_id, given.task_id, given.run_id)
            stream = SerializingEventListener(
                ids, claimed.fence, database, stores=stores, broadcaster=broadcaster, clock=clock
            )
            await stack.enter_async_context(background_task(stream.deliver()))
            streams.append(stream)
        begun = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for stream in streams:
                tasks.create_task(write(stream, begun + SECONDS))
        return written / (time.perf_counter() - begun)


async def _read_rate(address: str, readers: int) -> float:
    """Return the rows read per second by several callers."""
    stores, done = Stores(), 0
    session = a_session("session")
    async with open_database(address) as database:
        await database.write(partial(stores.sessions.add, session))
        begun = time.perf_counter()

        async def read() -> None:
            nonlocal done
            while time.perf_counter() < begun + SECONDS:
                assert await database.read(partial(stores.sessions.get, session.id))
                done += 1

        async with asyncio.TaskGroup() as tasks:
            for _ in range(readers):
                tasks.create_task(read())
        return done / (time.perf_counter() - begun)


def _bare_rate(file: Path, together: int) -> float:
    """Return the rows a second of a plain loop, with rows, index and safety like ours."""
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("pragma journal_mode = wal")
        database.execute("pragma synchronous = full")
        database.execute(
            "create table events (position integer primary key, run_id text, seq integer,"
            " envelope text, unique (run_id, seq))"
        )
        written, row = 0, ("run-" + 27 * "r", "x" * 600)
        begun = time.perf_counter()
        while time.perf_counter() < begun + SECONDS:
            database.execute("begin immediate")
            database.executemany(
                "insert into events (run_id, seq, envelope) values (?, ?, ?)",
                [(row[0], written + number, row[1]) for number in range(together)],
            )
            database.execute("commit")
            written += together
        return written / (time.perf_counter() - begun)


def test_appends(tmp_path: Path, table: Table) -> None:
    rates: dict[str, list[float]] = {}
    for number in range(ROUNDS):
        for name, writers, together in (("one", 1, 1), ("many", 32, 1), ("entries", 32, 8)):
            work = partial(
                _rate, str(tmp_path / f"{name}-{number}.db"), tmp_path, writers, together
            )
            rates.setdefault(name, []).append(run(work))
        for name, together in (("bare 1", 1), ("bare 200", 200)):
            file = tmp_path / f"{name}-{number}.db"
            rates.setdefault(name, []).append(_bare_rate(file, together))
    unit, bare = "/s", "bare sqlite3"
    table.add(
        Row("event appends, 1 writer", unit, rates["one"], rates["bare 1"], f"{bare}, 1 a commit"),
        Row("event appends, 32 writers", unit, rates["many"], rates["one"], "1 writer", least(10)),
        Row("the same, 8 events an entry", unit, rates["entries"], rates["one"], "1 writer"),
        Row(
            "the same beside the disk",
            unit,
            rates["entries"],
            rates["bare 200"],
            f"{bare}, 200 a commit",
        ),
    )


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    binaries = find_binaries()
    assert binaries, "PostgreSQL is not installed"
    opened = PostgresServer(binaries, is_durable=True)
    opened.start()
    opened.create_role()
    yield opened
    opened.remove()


@pytest.mark.postgres
def test_postgres_beside_sqlite(tmp_path: Path, table: Table, server: PostgresServer) -> None:
    cases: dict[str, Callable[[str], Coroutine[Any, Any, float]]] = {
        "event appends, 1 writer": partial(_rate, folder=tmp_path, writers=1, together=1),
        "event appends, 32 writers": partial(_rate, folder=tmp_path, writers=32, together=1),
        "the same, 8 events an entry": partial(_rate, folder=tmp_path, writers=32, together=8),
        "reads of a row, 1 reader": partial(_read_rate, readers=1),
        "reads of a row, 32 readers": partial(_read_rate, readers=32),
    }
    rates: dict[tuple[str, str], list[float]] = {}
    for number in range(ROUNDS):
        for place, (name, case) in enumerate(cases.items()):
            file = str(tmp_path / f"{place}-{number}.db")
            url = server.url(server.create_database(template="template1"))
            for kind, address in (("SQLite", file), ("PostgreSQL", url)):
                rates.setdefault((name, kind), []).append(run(partial(case, address)))
    table.add(
        *(
            Row(
                f"PostgreSQL: {name}",
                "/s",
                rates[name, "PostgreSQL"],
                rates[name, "SQLite"],
                "SQLite",
            )
            for name in cases
        )
    )
