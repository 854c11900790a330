"""The list of the processes that serve a database: one gateway on SQLite, any number elsewhere."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

from internal.agent.app.background_task import background_task
from internal.agent.app.processes.lease_watch import Lease, LeaseWatch
from internal.agent.app.supervision import Supervisor
from internal.agent.domain.errors import Conflict, StoreUnavailable
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.ports.runtime import Clock, Processes, ProcessIdentity
from internal.agent.store.database import Database, Write
from internal.agent.store.runs import ProcessEntry, Role
from internal.agent.store.stores import Stores
from internal.dispatch.leases import LeaseKeeper
from internal.dispatch.lock import conflict, describe

CHECK_SECONDS = 5.0
"""Interval at which the entries of ended processes are removed."""


class ProcessRegistry:
    """Enters this process into the list, and removes processes that have ended.

    The caller keeps the lease of the entry (see `LeaseKeeper`).
    """

    def __init__(
        self,
        database: Database,
        stores: Stores,
        clock: Clock,
        *,
        leases: LeaseKeeper,
        processes: Processes,
        version: str,
    ) -> None:
        self._database = database
        self._stores = stores
        self._clock = clock
        self._leases = leases
        self._processes = processes
        self._version = version
        self._started = rfc3339(clock.now())
        self._watch = LeaseWatch(processes, clock, leases.seconds)

    async def list_all(self) -> list[ProcessEntry]:
        """Return the gateways and workers of the database, this process included."""
        return await self._database.read(self._stores.processes.list_all)

    @asynccontextmanager
    async def enter(
        self, process: ProcessIdentity, role: Role, supervisor: Supervisor
    ) -> AsyncGenerator[None]:
        """Be in the list, beside others, for the length of a block.

        Raises:
            StoreError: the database cannot be used.
        """
        entry = self._entry(process, role)
        await self._database.write(partial(self._stores.processes.add, entry))
        check = partial(self._check_list, entry)
        async with (
            self._removed_at_end(entry),
            background_task(supervisor.repeat("processes", check, interval=CHECK_SECONDS)),
        ):
            yield

    @asynccontextmanager
    async def enter_alone(
        self, process: ProcessIdentity, path: Path, *, has_lock: bool
    ) -> AsyncGenerator[None]:
        """Be the only gateway of an SQLite database for the length of a block.

        Args:
            process: this process.
            path: the database file.
            has_lock: this process holds the lock file.

        Raises:
            Conflict: another gateway lives, or has a lease and cannot be checked.
            StoreError: the database cannot be used.
        """
        found = await self.list_all()
        for other in found:
            self._check_dead(other, process, path, has_lock=has_lock)
        entry = self._entry(process, "gateway")
        if not await self._database.write(partial(self._replace, found, entry)):
            raise conflict(path, None, process)  # it started at the same time
        async with self._removed_at_end(entry):
            yield

    @asynccontextmanager
    async def _removed_at_end(self, entry: ProcessEntry) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            with suppress(StoreUnavailable):  # others see that this process has ended
                await self._database.write(partial(self._stores.processes.remove, entry.owner))

    def _entry(self, process: ProcessIdentity, role: Role) -> ProcessEntry:
        expiry = self._leases.expiry()
        host = self._leases.host.name or process.host
        return ProcessEntry(
            str(process), role, host, process.pid, self._version, self._started, expiry
        )

    def _replace(self, found: list[ProcessEntry], entry: ProcessEntry) -> Write[bool]:
        """Store the only gateway; runs that its predecessor led may be continued at once."""
        if [each.owner for each in (yield from self._stores.processes.list_all())] != [
            each.owner for each in found
        ]:
            return False
        for other in found:
            yield from self._stores.processes.remove(other.owner)
        yield from self._stores.processes.add(entry)
        yield from self._stores.leaderships.release_all()
        return True

    async def _check_list(self, own: ProcessEntry) -> None:
        """Remove processes that have ended; enter this one again if others thought it had."""
        found = await self.list_all()
        states = self._watch.look(Lease(each.owner, each.owner, each.lease_until) for each in found)
        for each in found:
            if each.owner != own.owner and states[each.owner].is_over:
                await self._database.write(partial(self._stores.processes.remove_ended, each))
        if all(each.owner != own.owner for each in found):
            again = own._replace(lease_until=self._leases.expiry())
            await self._database.write(partial(self._stores.processes.add, again))

    def _check_dead(
        self, found: ProcessEntry, process: ProcessIdentity, path: Path, *, has_lock: bool
    ) -> None:
        """Raise Conflict unless a process may replace the gateway."""
        other = ProcessIdentity.parse(found.owner)
        alive = None if other is None else self._processes.is_alive(other)
        if alive:
            raise conflict(path, other, process)
        if alive is None and other is not None and has_lock:
            # on the same machine, such as in another container, the free lock says that it ended
            alive = False if other.boot == process.boot != "" else None
        if alive is None and found.lease_until > rfc3339(self._clock.now()):
            raise Conflict(
                f"The database {path} is served by {describe(other, process)}. Whether it still"
                f" runs cannot be checked from here, and its lease lasts until {found.lease_until}."
                " Stop it, or start again after that."
            )
