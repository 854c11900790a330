"""The lock file of an SQLite database: one gateway, whichever home folder or path names it.

The kernel's lock is exact, but some file systems have none, and the file may be deleted while a
gateway holds it. So the gateway is also a row in the database; see `registry`.
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from internal.agent.domain.errors import Conflict, StoreUnavailable
from internal.agent.ports.runtime import ProcessIdentity

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
            raise conflict(database, ProcessIdentity.parse(holder), process) from error
        except OSError:
            yield False
        else:
            with suppress(OSError):  # a full disk: the holder is only for the message
                os.truncate(handle, 0)
                os.pwrite(handle, str(process).encode(), 0)
            yield True
    finally:
        os.close(handle)


def conflict(database: Path, holder: ProcessIdentity | None, process: ProcessIdentity) -> Conflict:
    """Return the error of a process that cannot be the gateway beside another one."""
    return Conflict(
        f"Another larkspur already serves the database {database}: {describe(holder, process)}."
        " Stop it first, or use another database."
    )


def describe(other: ProcessIdentity | None, process: ProcessIdentity) -> str:
    """Return how a person finds a process from the place of this one."""
    if other is None:
        return "another process"
    is_inside = other.boot == process.boot and other.namespace != process.namespace
    container = " in another container" if is_inside else ""
    return f"process {other.pid}{container} on {other.host}"
