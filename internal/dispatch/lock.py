"""The lock of the dispatcher: one per data folder."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from internal.agent.domain.errors import Conflict, StoreUnavailable


@contextmanager
def dispatcher_lock(folder: Path) -> Generator[None]:
    """Hold the dispatcher lock of a data folder. The kernel releases it when the process dies.

    Raises:
        Conflict: another process holds it.
        StoreUnavailable: the folder is not writable.
    """
    try:
        handle = os.open(folder / "dispatcher.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreUnavailable(f"{folder} is not writable: {error.strerror}.") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Conflict(
                f"Another larkspur already serves the data folder {folder}. Stop it first, or set"
                " LARKSPUR_HOME to another folder."
            ) from error
        yield
    finally:
        os.close(handle)
