"""Commits that other processes make to a database file."""

import ctypes
import os
import sqlite3
import sys
import time
from contextlib import suppress
from pathlib import Path

REPORT_SECONDS = 0.02
"""The shortest time between two calls of `look` that find a commit."""
PAUSE_SECONDS = 0.05
"""Interval of the checks where the kernel does not report changes of the file.

Elsewhere it is the first pause after an own commit and after a detected one.
"""
_FIRST_PAUSE_SECONDS = 0.001
_MAX_PAUSE_SECONDS = 1.0
_IN_MODIFY = 2  # of sys/inotify.h


class CommitWatch:
    """Detects commits of other connections to a file, and tells when to check for them.

    On Linux the kernel reports writes to the `-wal` file (inotify(7)). A commit becomes visible
    only later, when it is on disk, so the watch polls at growing intervals. Elsewhere it polls
    every `PAUSE_SECONDS`.

    Args:
        connection: belongs to the thread that calls the methods.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.descriptor = _watch_file(f"{path}-wal")
        """Can be read after the file has changed. None where the kernel does not tell."""
        self._connection = connection
        self._max_pause = _MAX_PAUSE_SECONDS
        if self.descriptor is None:
            self._max_pause = PAUSE_SECONDS
        self._pause = PAUSE_SECONDS
        self._version = self._read_version()
        self._next_look = 0.0
        self._next_report = 0.0

    def seconds_to_look(self) -> float:
        """Return how long to wait for a change before `look` is called next."""
        return self._next_look - time.monotonic()

    def look(self) -> bool:
        """Return whether other connections have committed since the last call.

        Raises:
            sqlite3.Error: the file cannot be read.
        """
        now = time.monotonic()
        self._pause = min(2 * self._pause, self._max_pause)
        self._next_look = now + self._pause
        version = self._read_version()
        if version == self._version:
            return False
        self._version = version
        self._pause = PAUSE_SECONDS
        self._next_report = now + REPORT_SECONDS
        self._next_look = now + self._pause
        return True

    def read_changes(self) -> None:
        """Call it after the descriptor became readable: another process may be committing."""
        if self._forget_changes():
            self._pause = _FIRST_PAUSE_SECONDS
            self._next_look = self._next_report  # now, or soon after the last report

    def skip_own_commit(self) -> None:
        """Call it after a commit of this connection, which changed the file as well.

        Another process may have changed it just before or after, so look for it once more.
        """
        self._forget_changes()
        self._pause = PAUSE_SECONDS
        self._next_look = min(self._next_look, time.monotonic() + self._pause)

    def close(self) -> None:
        """Stop watching the file."""
        if self.descriptor is not None:
            os.close(self.descriptor)

    def _read_version(self) -> int:
        """Return a number that only commits of other connections change."""
        ((version,),) = self._connection.execute("pragma data_version").fetchall()
        return int(version)

    def _forget_changes(self) -> bool:
        """Return whether the kernel has reported changes, and make the descriptor unreadable."""
        if self.descriptor is not None:
            with suppress(BlockingIOError):
                return bool(os.read(self.descriptor, 4096))  # it joins equal reports
        return False


def _watch_file(path: str) -> int | None:
    """Return a descriptor that can be read after the file has changed, if the kernel offers it."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    descriptor: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:  # the user has too many of them
        return None
    if libc.inotify_add_watch(descriptor, os.fsencode(path), _IN_MODIFY) < 0:
        os.close(descriptor)
        return None
    return descriptor
