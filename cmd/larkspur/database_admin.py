"""Maintenance of the database: retention, and the commands of `larkspur db`."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from internal.agent.app.gateway import Gateway
from internal.agent.app.retention.pruner import Pruner, RetentionPolicy
from internal.agent.domain.errors import Conflict, StoreError
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import SessionId
from internal.agent.domain.text import format_size
from internal.agent.ports.databases import DatabaseStatus, MoveResult, Pruned
from internal.agent.store.stores import Stores
from internal.config.loader import Loaded
from internal.config.settings import Settings
from internal.dispatch.lock import database_lock
from internal.observability.clock import SystemClock
from internal.observability.processes import SystemProcesses
from internal.storage.database_url import database_path, open_database
from internal.storage.maintenance import sqlite_files
from internal.storage.maintenance.json_lines import export_rows
from internal.storage.maintenance.move import cancel_move, move
from internal.storage.maintenance.sqlite_tables import open_snapshot, open_source, open_target
from internal.storage.maintenance.status import read_content
from internal.storage.maintenance.tables import TableConnection
from internal.storage.migrations import newest
from internal.storage.sqlite.schema import list_pending, prepare_file
from larkspur.services import Services, make_gateway, make_terminal_dispatcher, open_services

_MAX_ONLINE_VACUUM_BYTES = 64 * 1024 * 1024
"""Larger files are not vacuumed beside a gateway, whose writes would wait for seconds."""


class DatabaseAdmin:
    """Implements `internal.channels.cli.application.DatabaseAdmin`."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._path = loaded.settings.database.path

    def status(self) -> DatabaseStatus:
        """Return what is in the database and how large it is. Changes nothing."""
        return asyncio.run(self._status())

    def pending(self) -> list[str]:
        """Return the migrations that are not applied yet."""
        return [f"{step.number:04} {step.name}" for step in list_pending(self._path)]

    def migrate(self, report: Callable[[str], None]) -> None:
        """Apply the pending migrations; `report` receives a line for each."""
        if not list_pending(self._path):
            return
        with self._without_gateway():
            prepare_file(self._path, lambda step: report(f"{step.number:04} {step.name}"))

    def vacuum(self) -> str:
        """Give unused space back, as far as that is possible now, and return what was done."""
        path = self._path
        sqlite_files.check_exists(path)
        size = path.stat().st_size
        try:
            with self._without_gateway():
                freed = sqlite_files.vacuum(path)
        except Conflict:
            if size > _MAX_ONLINE_VACUUM_BYTES:
                sqlite_files.checkpoint(path)
                return (
                    "The log was written to the file. Stop the gateway to give unused space back:"
                    f" its writes would wait too long ({format_size(size)})."
                )
            freed = sqlite_files.vacuum(path)
        return f"{format_size(freed)} were given back; {format_size(path.stat().st_size)} are used."

    def back_up(self, target: Path) -> str:
        """Copy the database to a new file while it is used, and return what was done."""
        size = sqlite_files.back_up(self._path, target)
        return f"{target} has a checked copy of the database ({format_size(size)})."

    def export(self, target: Path) -> str:
        """Write all rows to a new file as JSON Lines, and return what was done."""
        rows = asyncio.run(self._export(target))
        return f"{target} has {rows:,} rows ({format_size(target.stat().st_size)})."

    def prune(self, *, dry_run: bool) -> list[Pruned]:
        """Remove what is older than the settings allow, or only count it."""
        return asyncio.run(self._count_old() if dry_run else self._prune())

    def move(self, url: str, report: Callable[[str], None]) -> MoveResult:
        """Move all rows to the database at a URL; `report` receives the progress."""
        return asyncio.run(self._move(url, report))

    def cancel_move(self) -> bool:
        """Let the database be used again that was moved away; False if it was not."""
        return asyncio.run(self._cancel_move())

    async def _status(self) -> DatabaseStatus:
        async with open_snapshot(self._path) as tables:
            sizes = tables.read_sizes()
            content = await read_content(tables, sizes.tables)
        old, note = [], ""
        if content.schema == newest("sqlite"):
            try:
                old = await self._count_old()
            except StoreError as error:
                note = str(error)
        return DatabaseStatus(
            "sqlite",
            tables.place,
            content.schema,
            newest("sqlite"),
            sizes.size,
            sizes.unused,
            sizes.wal_size,
            content.tables,
            content.oldest_event,
            content.newest_event,
            content.runs,
            content.processes,
            old,
            note,
        )

    async def _export(self, target: Path) -> int:
        with sqlite_files.new_file(target) as (file, _):
            async with open_snapshot(self._path) as tables:
                return await export_rows(tables, file, rfc3339(datetime.now(UTC)))

    async def _prune(self) -> list[Pruned]:
        async with open_services(self._loaded, "terminal") as services:
            gateway = make_gateway(services, make_terminal_dispatcher(services))
            pruned = await make_pruner(services, gateway).prune()
            await services.files.remove_unused()
            return pruned

    async def _count_old(self) -> list[Pruned]:
        async def remove_none(_session_id: SessionId, _since: str) -> bool:
            return False

        async with open_database(self._path) as database:
            policy = _policy(self._loaded.settings)
            return await Pruner(
                database, Stores(), clock=SystemClock(), policy=policy, remove_session=remove_none
            ).count()

    async def _move(self, url: str, report: Callable[[str], None]) -> MoveResult:
        sqlite_files.check_exists(self._path)
        async with self._open_source() as source, _open_target(url, source) as target:
            return await move(source, target, report)

    async def _cancel_move(self) -> bool:
        sqlite_files.check_exists(self._path)
        async with self._open_source() as source:
            return await cancel_move(source)

    @asynccontextmanager
    async def _open_source(self) -> AsyncGenerator[TableConnection]:
        with self._without_gateway():
            async with open_source(self._path) as source:
                yield source

    @contextmanager
    def _without_gateway(self) -> Generator[None]:
        """Keep gateways away for the length of a block.

        Raises:
            Conflict: one serves the database.
        """
        process = SystemProcesses().current("database-command")
        with database_lock(self._path, process):
            yield


@asynccontextmanager
async def _open_target(url: str, source: TableConnection) -> AsyncGenerator[TableConnection]:
    path = database_path(url).resolve()
    if f"sqlite:///{path}" == source.place:
        raise Conflict("The database is there already: the target is the database of the settings.")
    async with open_target(path) as target:
        yield target


def make_pruner(services: Services, gateway: Gateway) -> Pruner:
    """Return what removes rows and sessions that are older than the settings allow."""
    return Pruner(
        services.database,
        services.stores,
        clock=services.clock,
        policy=_policy(services.settings),
        remove_session=gateway.delete_idle_session,
    )


def _policy(settings: Settings) -> RetentionPolicy:
    return RetentionPolicy(**settings.retention.model_dump())
