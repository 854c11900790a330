"""The folder's lock: one dispatcher a data folder."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from internal.agent.domain.errors import Conflict, StoreUnavailable


@contextmanager
def dispatcher_lock(folder: Path) -> Generator[None]:
    """Hold the role of the dispatcher of a data folder. The kernel frees it when we die.

    Raises:
        Conflict: another process holds it.
        StoreUnavailable: the folder cannot be written.
    """
    try:
        handle = os.open(folder / "dispatcher.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreUnavailable(f"{folder} cannot be written: {error.strerror}.") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Conflict(
                f"Another larkspur serves the data folder {folder} already. Stop it first, or set"
                " LARKSPUR_HOME to another folder."
            ) from error
        yield
    finally:
        os.close(handle)
