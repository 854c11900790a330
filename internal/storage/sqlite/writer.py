"""The one thread of a process that writes: what waits shares a commit, what fails fails alone."""

import asyncio
import os
import sqlite3
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from queue import SimpleQueue

from internal.agent.domain.errors import StoreUnavailable
from internal.storage import queries
from internal.storage.sqlite import errors
from internal.storage.sqlite.connection import LOCK_SECONDS
from internal.storage.sqlite.transactions import Job, drive, settle

_GROUP_WORKS = 512
_GROUP_SECONDS = 0.05
"""A commit waits no longer than this for more work, however fast it comes."""


class Writer:
    """Runs works in the order in which they were put, many in one transaction.

    `commits` counts the transactions. After a failed sync, damage, or when the file was moved away,
    nothing is written any more: what the disk holds is not certain until it is opened anew.
    """

    def __init__(
        self, path: Path, connection: sqlite3.Connection, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.commits = 0
        self._path = path
        self._files = _identities(path)
        self._connection = connection
        self._connection.execute("pragma busy_timeout = 0")  # see _begin
        self._queries = queries.load()
        self._loop = loop
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._broken: str | None = None
        self._thread = threading.Thread(target=self._run, name="storage-writer", daemon=True)
        self._thread.start()

    def put(self, job: Job) -> None:
        """Queue a work. Its future is settled when it is on disk."""
        self._jobs.put(job)

    def end(self) -> None:
        """Write what was put before this, then close the connection. Blocks until it is done."""
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        with closing(self._connection):
            while (job := self._jobs.get()) is not None:
                group = [job]
                try:
                    self._transaction(group)
                except StoreUnavailable as error:
                    self._broken = str(error)
                    self._fail(group, error)
                except sqlite3.Error as error:
                    failure = errors.unavailable(error, self._path)
                    if errors.is_lasting(error):
                        self._broken = f"{failure} Start Larkspur again to go on."
                    self._fail(group, failure)
                with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    self._loop.call_soon_threadsafe(settle, group)

    def _transaction(self, group: list[Job]) -> None:
        if self._broken is not None:
            raise StoreUnavailable(self._broken)
        execute = self._connection.execute
        self._begin()
        deadline = time.monotonic() + _GROUP_SECONDS
        for job in group:  # the group grows while it is worked through
            execute("savepoint work")
            job.result = job.error = None
            try:
                job.result = drive(self._connection, self._queries, job.work)
            except sqlite3.Error:
                raise
            except Exception as error:  # noqa: BLE001 - it belongs to whoever waits for this work
                job.error = error
                execute("rollback to work")
            execute("release work")
            if len(group) < _GROUP_WORKS and time.monotonic() < deadline:
                self._take(group)
        if _identities(self._path) != self._files:
            raise StoreUnavailable(
                f"The database {self._path} or its -wal file was moved or replaced: "
                "nothing was written. Start Larkspur again to go on."
            )
        execute("commit")
        self.commits += 1

    def _begin(self) -> None:
        """Take the file's lock. Raises when another process keeps it for LOCK_SECONDS.

        Tried often: SQLite's own waiting sleeps 100 ms at a time, through all the short gaps that a
        busy process leaves.
        """
        deadline, pause = time.monotonic() + LOCK_SECONDS, 0.0002
        while True:
            try:
                self._connection.execute("begin immediate")
            except sqlite3.OperationalError as error:
                if not errors.is_lock(error) or time.monotonic() > deadline:
                    raise
                time.sleep(pause)
                pause = min(1.2 * pause, 0.005)
            else:
                return

    def _take(self, group: list[Job]) -> None:
        if self._jobs.empty():  # nobody else takes from this queue
            return
        job = self._jobs.get_nowait()
        if job is None:
            self._jobs.put(None)  # stopping comes after this group
        else:
            group.append(job)

    def _fail(self, group: list[Job], failure: StoreUnavailable) -> None:
        for job in group:
            job.error = StoreUnavailable(str(failure))  # one each: a raised one grows a traceback
        if self._connection.in_transaction:
            with suppress(sqlite3.Error):  # SQLite may have rolled back by itself
                self._connection.execute("rollback")


def _identities(path: Path) -> list[tuple[int, int]]:
    """Return which files stand under the names of the database and its log."""
    found = []
    for name in (path, f"{path}-wal"):
        with suppress(OSError):
            status = os.stat(name)  # noqa: PTH116 - half of what Path.stat costs, at every commit
            found.append((status.st_dev, status.st_ino))
    return found
