"""Delay from a commit to the start of a run in another process, and the rate of claims."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from internal.agent.app.background_task import background_task
from internal.agent.app.runs.active import ActiveRun
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from tests.bench.table import Row, Table
from tests.support.dispatch_parts import DispatchParts, FakeCoordinator, dispatcher_of
from tests.support.postgres_server import postgres_url
from tests.support.store_records import a_run, add_run

pytestmark = pytest.mark.bench

RUNS = 200


class TimedCoordinator(FakeCoordinator):
    """Ends every run at once and records the time of its start."""

    def __init__(self, parts: DispatchParts, started: asyncio.Queue[float]) -> None:
        super().__init__(parts.database, parts.stores)
        self.gate.set()
        self._started = started

    async def execute_task(self, live: ActiveRun) -> None:
        started = time.perf_counter()
        await super().execute_task(live)
        self._started.put_nowait(started)


@asynccontextmanager
async def addresses(kind: str, folder: Path) -> AsyncGenerator[str]:
    if kind == "sqlite":
        yield str(folder / "bench.db")
    else:
        async with postgres_url() as url:
            yield url


@asynccontextmanager
async def dispatchers(
    address: str, folder: Path, count: int
) -> AsyncGenerator[asyncio.Queue[float]]:
    """Run dispatchers with databases of their own; yield the starts of the runs that ended."""
    started: asyncio.Queue[float] = asyncio.Queue()
    async with AsyncExitStack() as stack:
        for number in range(count):
            database = await stack.enter_async_context(open_database(address))
            parts = DispatchParts(database, Stores(), folder, f"worker-{number}")
            coordinator = TimedCoordinator(parts, started)
            run_all = dispatcher_of(parts, 8).run(coordinator, is_alone=False)
            await stack.enter_async_context(background_task(run_all))
        yield started


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_commit_to_start(kind: str, tmp_path: Path, table: Table) -> None:
    async with (
        addresses(kind, tmp_path) as address,
        open_database(address) as database,
        dispatchers(address, tmp_path, 2) as started,
    ):
        stores, milliseconds = Stores(), list[float]()
        for number in range(RUNS):
            await add_run(database, stores, a_run(f"run-{number:04}", lane=f"lane-{number}"))
            committed = time.perf_counter()
            async with asyncio.timeout(30):
                milliseconds.append((await started.get() - committed) * 1000)
    milliseconds.sort()
    name = "commit of a run → start in another process"
    p99 = milliseconds[int(RUNS * 0.99)]
    table.add(Row(f"{name}, median, {kind}", "ms", [milliseconds[RUNS // 2]], steady=False))
    table.add(Row(f"{name}, 99 %, {kind}", "ms", [p99], steady=False))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("count", [1, 2, 4])
async def test_many_runs(kind: str, count: int, tmp_path: Path, table: Table) -> None:
    async with addresses(kind, tmp_path) as address, open_database(address) as database:
        stores = Stores()
        for number in range(RUNS):
            await add_run(database, stores, a_run(f"run-{number:04}", lane=f"lane-{number}"))
        began = time.perf_counter()
        async with dispatchers(address, tmp_path, count) as started, asyncio.timeout(120):
            for _ in range(RUNS):
                await started.get()
            rate = RUNS / (time.perf_counter() - began)
    row = Row(f"empty runs a second, {count} dispatchers, {kind}", "1/s", [rate], steady=False)
    table.add(row)
