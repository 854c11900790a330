"""Cost of the search for new artifacts, and of a page of many."""

import asyncio
import sqlite3
import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.events.writer import SerializingEventListener
from internal.agent.app.files.artifacts import ArtifactRecorder
from internal.agent.app.hosts.host import ONLY_HOST, WorkspaceUse
from internal.agent.app.queries import Queries
from internal.agent.app.runs.context import RunContext
from internal.agent.domain.artifacts import ArtifactFilter
from internal.agent.domain.events.envelope import RunIds
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.ports.attachments import FileFolders
from internal.agent.store.stores import Stores
from internal.observability.clock import SystemClock
from internal.storage.database_url import open_database
from internal.worktrees.worktrees import GitWorktrees
from tests.bench.table import Row, Table, most
from tests.support.session_files import session_files
from tests.support.store_records import T1, a_run, a_session, a_task, an_artifact

pytestmark = pytest.mark.bench

ROUNDS, CALLS = 5, 200
MANY = 100_000


async def _microseconds(call: Callable[[], Awaitable[object]], times: int = CALLS) -> list[float]:
    """Return the median duration of a call in each round."""
    medians: list[float] = []
    for _ in range(ROUNDS):
        taken: list[float] = []
        for _ in range(times):
            begun = time.perf_counter()
            await call()
            taken.append((time.perf_counter() - begun) * 1e6)
        medians.append(statistics.median(taken))
    return medians


async def _scans(folder: Path) -> dict[str, list[float]]:
    """Return the microseconds of a scan of the output folder after a batch of calls."""
    clock, stores = SystemClock(), Stores()
    async with open_database(folder / "larkspur.db") as database:
        broadcaster = EventBroadcaster(database, stores, clock, "1")
        await broadcaster.start()
        task, run = a_task(), a_run()
        await database.write(partial(stores.sessions.add, a_session()))
        recorder = ArtifactRecorder(
            database,
            stores,
            session_files(folder, database, stores),
            clock=clock,
            folders=lambda _session, folder: FileFolders(f"{folder}/input", f"{folder}/output"),
            worktrees=GitWorktrees(),
        )

        def context() -> RunContext:
            ids = RunIds.of(run)
            stream = SerializingEventListener(
                ids, 1, database, stores=stores, broadcaster=broadcaster, clock=clock
            )
            use = WorkspaceUse(ONLY_HOST, run, task, database=database, stores=stores)
            return RunContext(ids, run, task, stream, use, 0.0)

        async def look(used: RunContext) -> None:
            made = await recorder.record_output(used, str(folder), None)
            if made.also is not None:
                await database.write(made.also)

        found = {"no output/": await _microseconds(partial(look, context()))}
        (folder / "output").mkdir()
        for files in (0, 10, 200):
            for number in range(files):
                (folder / "output" / f"{number}.txt").write_text(str(number))
            known = context()
            await look(known)
            found[f"{files} unchanged files"] = await _microseconds(partial(look, known))
        first = _microseconds(lambda: look(context()), 20)
        found["200 unchanged files, first batch of a run"] = await first
        return found


def test_a_look_at_the_output_folder(tmp_path: Path, table: Table) -> None:
    for what, taken in asyncio.run(_scans(tmp_path)).items():
        goal = most(1_000, "ours") if what.startswith(("no", "0", "10 ")) else None
        table.add(Row(f"a look for new files after a batch: {what}", "µs", taken, goal=goal))


def _fill(path: Path) -> None:
    """Store many artifacts, as the statement of the product does."""
    names = [name for name in an_artifact().__struct_fields__ if name not in {"id", "favourite"}]
    with closing(sqlite3.connect(path)) as connection, connection:
        rows: list[tuple[Any, ...]] = []
        for number in range(MANY):
            made = an_artifact(
                number,
                session_id=f"session-{number % 500}",
                task_id=f"task-{number % 5_000}",
                name=f"folder/report {number}.pdf",
                caption="Sales per region and month",
                type=("document", "table", "text")[number % 3],
                created=T1,
            )
            row = [getattr(made, name) for name in names]
            search = f"{made.name}\n{made.caption}".lower()
            rows.append(
                (made.id, *row, made.run_id, "default", "local", 1, number % 999 == 0, "", search)
            )
        columns = "shared_run_id, team_id, principal, newest, favourite, source, search"
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(
            f"insert into artifacts (id, {', '.join(names)}, {columns}) values ({marks})",  # noqa: S608 - fixed names
            rows,
        )


async def _lists(folder: Path) -> dict[str, list[float]]:
    """Return the milliseconds of a page of 50 among many artifacts."""
    stores = Stores()
    async with open_database(folder / "larkspur.db") as database:
        await asyncio.to_thread(_fill, folder / "larkspur.db")
        queries = Queries(database, stores)
        wanted = {
            "newest": ArtifactFilter(),
            "a text in one of them": ArtifactFilter(text="report 123.pdf"),
            "a text in none": ArtifactFilter(text="nowhere"),
            "a type that none has": ArtifactFilter(type="video"),
            "favourites": ArtifactFilter(favourite=True),
            "of a session": ArtifactFilter(session_id=a_session("session-7").id, text="region"),
        }
        found: dict[str, list[float]] = {}
        for what, one in wanted.items():
            page = partial(queries.artifacts, LOCAL_OWNER, one)
            found[what] = [each / 1000 for each in await _microseconds(page, 5)]
        return found


def test_a_page_of_artifacts(tmp_path: Path, table: Table) -> None:
    for what, taken in asyncio.run(_lists(tmp_path)).items():
        goal = most(100, "ours")
        table.add(Row(f"a page of artifacts, {MANY:,} stored: {what}", "ms", taken, goal=goal))
