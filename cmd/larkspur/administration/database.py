"""Maintenance of the database: retention, and the commands of `larkspur db`."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from internal.agent.app.retention.pruner import Pruner
from internal.agent.domain.errors import Conflict, InvalidRequest, StoreError
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import SessionId
from internal.agent.domain.text import format_size
from internal.agent.ports.maintenance.reports import DatabaseStatus, MoveResult, Pruned
from internal.agent.store.stores import Stores
from internal.config.loader import Loaded
from internal.database_address.address import is_postgres
from internal.dispatch.lock import database_lock
from internal.observability.clock import SystemClock
from internal.observability.processes import SystemProcesses
from internal.storage.database_url import database_path, open_database
from internal.storage.maintenance.interface import DatabaseMaintenance
from internal.storage.maintenance.json_lines import export_rows
from internal.storage.maintenance.move import cancel_move, move
from internal.storage.maintenance.selection import find_maintenance
from internal.storage.maintenance.sqlite_files import new_file
from internal.storage.maintenance.status import read_content
from internal.storage.migrations import Migration
from larkspur.file_storage import open_workspaces
from larkspur.retention import make_pruner, retention_policy
from larkspur.services import (
    make_gateway,
    make_terminal_dispatcher,
    open_services,
)


class DatabaseAdmin:
    """Implements `internal.channels.cli.application.DatabaseAdmin`."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._address = loaded.settings.database.address
        self._path = loaded.settings.database.path
        self._maintenance = find_maintenance(self._address)

    def status(self) -> DatabaseStatus:
        """Return the content and the size of the database. Changes nothing."""
        return asyncio.run(self._status())

    def pending(self) -> list[str]:
        """Return the migrations that are not applied yet."""
        return [_name(step) for step in asyncio.run(self._maintenance.list_pending())]

    def migrate(self, report: Callable[[str], None]) -> None:
        """Apply the pending migrations; `report` receives a line for each."""
        if self.pending():
            with self._without_gateway():
                asyncio.run(self._maintenance.migrate(lambda step: report(_name(step))))

    def vacuum(self) -> str:
        """Release unused space as far as possible now, and return a sentence about the result."""
        with ExitStack() as stack:
            try:
                stack.enter_context(self._without_gateway())
            except Conflict:
                return asyncio.run(self._maintenance.vacuum(is_served=True))
            return asyncio.run(self._maintenance.vacuum(is_served=False))

    def back_up(self, target: Path) -> str:
        """Copy the database to a new file while it is used; return a sentence about the result."""
        return asyncio.run(self._maintenance.back_up(target))

    def export(self, target: Path) -> str:
        """Write all rows to a new file as JSON Lines, and return a sentence about the result."""
        rows = asyncio.run(self._export(target))
        return f"{target} has {rows:,} rows ({format_size(target.stat().st_size)})."

    def prune(self, *, dry_run: bool) -> list[Pruned]:
        """Remove everything older than the settings allow, or only count it."""
        return asyncio.run(self._count_old() if dry_run else self._prune())

    def move(self, url: str, report: Callable[[str], None]) -> MoveResult:
        """Move all rows to the database at a URL; `report` receives the progress."""
        target = find_maintenance(url)
        if target.place == self._maintenance.place:
            raise InvalidRequest(f"{target.place} is the database of the settings already.")
        path = None if is_postgres(url) else database_path(url)
        with self._without_gateway(), _locked(path):
            return asyncio.run(self._move(target, report))

    def cancel_move(self) -> bool:
        """Let the database be used again that was moved away; False if it was not."""
        with self._without_gateway():
            return asyncio.run(self._cancel_move())

    async def _status(self) -> DatabaseStatus:
        maintenance = self._maintenance
        async with maintenance.snapshot() as tables:
            sizes = await maintenance.read_sizes()
            content = await read_content(tables, sizes.tables)
        old: list[Pruned] = []
        note = ""
        if content.schema == maintenance.newest_version:
            try:
                old = await self._count_old()
            except StoreError as error:  # moved away, or the disk is read-only
                note = str(error)
        return DatabaseStatus(
            kind=maintenance.kind,
            place=maintenance.place,
            schema=content.schema,
            supported=maintenance.newest_version,
            size=sizes.size,
            unused=sizes.unused,
            wal_size=sizes.wal_size,
            tables=content.tables,
            oldest_event=content.oldest_event,
            newest_event=content.newest_event,
            runs=content.runs,
            processes=content.processes,
            old=old,
            note=note,
        )

    async def _export(self, target: Path) -> int:
        with new_file(target) as (file, _):
            async with self._maintenance.snapshot() as tables:
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

        async with open_database(self._address) as database:
            policy = retention_policy(self._loaded.settings)
            return await Pruner(
                database,
                Stores(),
                clock=SystemClock(),
                policy=policy,
                remove_session=remove_none,
                workspaces=open_workspaces(self._loaded),
            ).count()

    async def _move(
        self, maintenance: DatabaseMaintenance, report: Callable[[str], None]
    ) -> MoveResult:
        async with self._maintenance.source() as source, maintenance.target() as target:
            return await move(source, target, report)

    async def _cancel_move(self) -> bool:
        async with self._maintenance.source() as source:
            return await cancel_move(source)

    def _without_gateway(self) -> AbstractContextManager[None]:
        return _locked(self._path)


@contextmanager
def _locked(path: Path | None) -> Generator[None]:
    """Keep gateways away from a file for the length of a block.

    Raises:
        Conflict: one serves the database.
    """
    if path is None:  # a server is asked who is connected
        yield
        return
    with database_lock(path, SystemProcesses().current("database-command")):
        yield


def _name(step: Migration) -> str:
    return f"{step.number:04} {step.name}"
