"""The lock of the gateway: one per database, whichever home folder or path names it.

The kernel's lock on a file beside the database is exact, but some file systems have none, and the
file may be deleted while a gateway holds it. So the gateway is also a row in the database.
"""

import fcntl
import os
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path

from internal.agent.domain.errors import Conflict, StoreUnavailable
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.ports.runtime import Clock, Processes, ProcessIdentity
from internal.agent.store.database import Database, Write
from internal.agent.store.runs import GatewayRow
from internal.agent.store.stores import Stores
from internal.dispatch.leases import LeaseKeeper

_MAX_OWNER_BYTES = 4096


@contextmanager
def database_lock(database: Path, process: ProcessIdentity) -> Generator[bool]:
    """Hold the lock file of a database. The kernel releases it when the process dies.

    Yields False on a file system without locks: only the row in the database counts there.

    Raises:
        Conflict: another process holds it.
        StoreUnavailable: the folder is not writable.
    """
    real = database.resolve()
    try:
        path = real.with_name(f"{real.name}-gateway")
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise StoreUnavailable(
            f"The folder {real.parent} of the database cannot be written: {reason}."
        ) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(handle, _MAX_OWNER_BYTES, 0).decode("utf-8", "replace")
            raise _conflict(str(database), ProcessIdentity.parse(holder), process) from error
        except OSError:
            yield False
        else:
            with suppress(OSError):  # a full disk: the holder is only for the message
                os.truncate(handle, 0)
                os.pwrite(handle, str(process).encode(), 0)
            yield True
    finally:
        os.close(handle)


class GatewayLock:
    """Makes a process the gateway of a database: holds the row that says so."""

    def __init__(
        self,
        database: Database,
        stores: Stores,
        clock: Clock,
        *,
        leases: LeaseKeeper,
        processes: Processes,
    ) -> None:
        self._database = database
        self._stores = stores
        self._clock = clock
        self._leases = leases
        self._processes = processes

    @asynccontextmanager
    async def hold(
        self, process: ProcessIdentity, database: str, *, has_lock: bool
    ) -> AsyncGenerator[None]:
        """Be the gateway. The caller keeps the lease.

        Args:
            process: this process.
            database: its path or URL in messages.
            has_lock: this process holds the lock file.

        Raises:
            Conflict: another gateway lives, or has a lease and cannot be checked.
            StoreError: the database cannot be used.
        """
        owner, replaced = str(process), ""
        found = await self._database.read(self._stores.gateways.get)
        if found is not None:
            self._check(found, process, database, has_lock=has_lock)
            replaced = found.owner
        claim = partial(self._claim, owner, replaced)
        if not await self._database.write(claim):
            raise _conflict(database, None, process)  # it started at the same time
        try:
            yield
        finally:
            with suppress(StoreUnavailable):  # the next gateway sees that this process has ended
                await self._database.write(partial(self._stores.gateways.remove, owner))

    def _claim(self, owner: str, replaced: str) -> Write[bool]:
        """Store the gateway; the run displays of the one before may be continued at once."""
        claimed = yield from self._stores.gateways.claim(owner, self._leases.expiry(), replaced)
        if claimed:
            yield from self._stores.run_displays.end_leases()
        return claimed

    def _check(
        self, found: GatewayRow, process: ProcessIdentity, database: str, *, has_lock: bool
    ) -> None:
        """Raise Conflict unless a process may replace the gateway."""
        other = ProcessIdentity.parse(found.owner)
        alive = None if other is None else self._processes.is_alive(other)
        if alive:
            raise _conflict(database, other, process)
        if alive is None and other is not None and has_lock:
            # on the same machine, such as in another container, the free lock says that it ended
            alive = False if other.boot == process.boot != "" else None
        if alive is None and found.lease_until > rfc3339(self._clock.now()):
            raise Conflict(
                f"The database {database} is served by {_describe(other, process)}. Whether it"
                " still runs cannot be checked from here, and its lease lasts until"
                f" {found.lease_until}. Stop it, or start again after that."
            )


def _conflict(database: str, holder: ProcessIdentity | None, process: ProcessIdentity) -> Conflict:
    return Conflict(
        f"Another larkspur already serves the database {database}: {_describe(holder, process)}."
        " Stop it first, or use another database."
    )


def _describe(other: ProcessIdentity | None, process: ProcessIdentity) -> str:
    """Return how a person finds a process from the place of this one."""
    if other is None:
        return "another process"
    is_inside = other.boot == process.boot and other.namespace != process.namespace
    container = " in another container" if is_inside else ""
    return f"process {other.pid}{container} on {other.host}"
