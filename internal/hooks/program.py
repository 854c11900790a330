"""The programs of hooks, which must not change after the settings were read.

They run outside of the sandbox. Commands of agents could replace a program in a folder where they
may write.
"""

import asyncio
import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from internal.hooks.answer import HookFailed


class _State(NamedTuple):
    """The state of a file. Unchanged `times` mean that it need not be read again."""

    place: tuple[int, int]
    size: int
    times: tuple[int, int]
    digest: bytes


class PinnedPrograms:
    """The files that a hook executes, as they are now. Blocks.

    Args:
        files: their paths; of files that may not be executed only the first counts.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._states = {
            file: _read_state(file)
            for number, file in enumerate(files)
            if not number or os.access(file, os.X_OK)
        }

    async def check(self) -> None:
        """Check that the files are unchanged.

        Raises:
            HookFailed: a file has changed.
        """
        for file, before in self._states.items():
            now = await asyncio.to_thread(_read_state, file, before)
            if before is None and now is not None:
                raise HookFailed(f"does not run: {file} was not there when {_START}")
            if before is not None and (now is None or not _is_same(before, now)):
                raise HookFailed(f"does not run: {file} is not what it was when {_START}")


_START = "Larkspur read its settings; look at it, then restart Larkspur"


def _is_same(before: _State, now: _State) -> bool:
    return (before.place, before.digest) == (now.place, now.digest)


def _read_state(file: Path, before: _State | None = None) -> _State | None:
    """Return the state of a file, links followed; None if it is missing or a folder."""
    try:
        number = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode):
            return None
        place = (status.st_dev, status.st_ino)
        times = (status.st_mtime_ns, status.st_ctime_ns)
        if before is not None and before[:3] == (place, status.st_size, times):
            return before
        with os.fdopen(number, "rb", closefd=False) as opened:
            digest = hashlib.file_digest(opened, "sha256").digest()
        return _State(place, status.st_size, times, digest)
    finally:
        os.close(number)
