"""Duration of backup, export, clean-up and move of a database of 200 MB."""

import time
from functools import partial
from pathlib import Path

import pytest

from internal.agent.app.retention.pruner import Pruner, RetentionPolicy
from internal.agent.domain.ids import SessionId
from internal.agent.store.stores import Stores
from internal.observability.clock import SystemClock
from internal.sandbox.workspaces import Workspaces
from internal.storage.database_url import open_database
from internal.storage.maintenance.interface import DatabaseMaintenance
from internal.storage.maintenance.json_lines import export_rows
from internal.storage.maintenance.move import move
from internal.storage.maintenance.selection import find_maintenance
from internal.storage.maintenance.sqlite_files import back_up
from internal.storage.maintenance.tables import Table as DatabaseTable
from internal.storage.maintenance.tables import TableConnection
from internal.worktrees.worktrees import GitWorktrees
from tests.bench.load import run
from tests.bench.table import Row, Table
from tests.support.postgres_server import find_binaries, postgres_url

pytestmark = pytest.mark.bench

EVENTS, RUN_EVENTS = 100_000, 100
PAYLOAD = '{"text": "' + 1_700 * "x" + '"}'
OLD = "2026-01-01T00:00:00.000Z"


async def fill(path: Path) -> None:
    async with find_maintenance(path).target() as tables:
        runs, events = [await find_table(tables, name) for name in ("event_runs", "events")]
        async with tables.transaction():
            ids = [
                (n + 1, n + 1, f"session-{n}", f"task-{n}", f"run-{n}", "")
                for n in range(EVENTS // RUN_EVENTS)
            ]
            await tables.insert(runs, ids)
        for start in range(0, EVENTS, 10_000):
            rows = [
                (n + 1, n // RUN_EVENTS + 1, n // RUN_EVENTS + 1, n, "workflow.node.started", OLD,
                 None, None, PAYLOAD)
                for n in range(start, start + 10_000)
            ]  # fmt: skip
            async with tables.transaction():
                await tables.insert(events, rows)
        await tables.fetch("update event_log set head = $1", EVENTS)


async def find_table(tables: TableConnection, name: str) -> DatabaseTable:
    return next(each for each in await tables.list_tables() if each.name == name)


async def move_all(source: DatabaseMaintenance, target: DatabaseMaintenance) -> float:
    begun = time.perf_counter()
    async with source.source() as one, target.target() as other:
        result = await move(one, other, lambda _line: None)
    return result.rows / (time.perf_counter() - begun)


async def move_to_postgres(path: Path) -> float:
    async with postgres_url() as url:
        return await move_all(find_maintenance(path), find_maintenance(url))


async def export_all(path: Path, target: Path) -> float:
    begun = time.perf_counter()
    with target.open("wb") as file:
        async with find_maintenance(path).snapshot() as tables:
            rows = await export_rows(tables, file, OLD)
    return rows / (time.perf_counter() - begun)


async def prune_all(address: str) -> float:
    async def remove_none(_session_id: SessionId, _since: str) -> bool:
        return False

    async with open_database(address) as database:
        policy = RetentionPolicy(events_days=30)
        pruner = Pruner(
            database,
            Stores(),
            clock=SystemClock(),
            policy=policy,
            remove_session=remove_none,
            workspaces=Workspaces(Path(address).parent / "none", GitWorktrees()),
        )
        begun = time.perf_counter()
        (pruned,) = await pruner.prune()
        return pruned.total / (time.perf_counter() - begun)


def test_database_commands(tmp_path: Path, table: Table) -> None:
    path = tmp_path / "larkspur.db"
    run(partial(fill, path))
    begun = time.perf_counter()
    size = back_up(path, tmp_path / "backup.db") / 1e6
    backup = size / (time.perf_counter() - begun)
    exported = run(partial(export_all, path, tmp_path / "rows.jsonl"))
    source, target = find_maintenance(path), find_maintenance(tmp_path / "target.db")
    moved = run(partial(move_all, source, target))
    rows = [
        Row(f"backup of {size:.0f} MB, checked", " MB/s", [backup]),
        Row("export as JSON Lines", " rows/s", [exported]),
        Row("move to SQLite, compared", " rows/s", [moved]),
    ]
    if find_binaries():
        other = tmp_path / "backup.db"
        rows.append(Row("move to PostgreSQL", " rows/s", [run(partial(move_to_postgres, other))]))
    pruned = run(partial(prune_all, str(tmp_path / "target.db")))
    rows.append(Row("retention of events", " rows/s", [pruned]))
    table.add(*rows)
