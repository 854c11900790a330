"""SQLite: one thread that writes, two that read, on a file that several processes may share."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar, cast

from internal.agent.domain.errors import StoreUnavailable
from internal.agent.store.database import Read, Write
from internal.storage import queries
from internal.storage.sqlite import errors
from internal.storage.sqlite.connection import connect, prepare
from internal.storage.sqlite.transactions import Job, drive, settle
from internal.storage.sqlite.writer import Writer

T = TypeVar("T")

_READERS = 2


class SqliteDatabase:
    """A `Database` on one file. Belongs to the event loop that opened it."""

    def __init__(self, path: Path, connections: list[sqlite3.Connection]) -> None:
        self.path = path
        """Start the threads. Each gets one of the connections, the writer the first."""
        self._loop = asyncio.get_running_loop()
        self._open = True
        self._writer = Writer(path, connections[0], self._loop)
        self._reads: SimpleQueue[Job | None] = SimpleQueue()
        self._readers = [
            threading.Thread(
                target=_answer,
                args=(path, connection, self._loop, self._reads),
                name=f"storage-reader-{number}",
                daemon=True,
            )
            for number, connection in enumerate(connections[1:], 1)
        ]
        for reader in self._readers:
            reader.start()

    @classmethod
    async def open(cls, path: Path) -> "SqliteDatabase":
        """Open the file, made and brought up to date when needed.

        Raises:
            StoreRefused: it is damaged, not ours or newer than this program; nothing was touched.
            StoreUnavailable: it cannot be opened, made or changed where it is.
        """
        return cls(path, await asyncio.to_thread(_connections, path))

    @property
    def commits(self) -> int:
        """How many transactions were committed: works that wait together share one."""
        return self._writer.commits

    async def write(self, work: Callable[[], Write[T]], /) -> T:
        """Run the work in a transaction and return its result once it is on disk.

        Cancelling the caller does not undo the work. What the work raises is raised here.

        Raises:
            StoreUnavailable: disk full, read-only, locked or closed; nothing was written.
        """
        future = self._promise()
        self._writer.put(Job(work, future))
        return cast(T, await future)

    async def read(self, work: Callable[[], Read[T]], /) -> T:
        """Run the work on one state of the database and return its result.

        Raises:
            StoreUnavailable: the database cannot be read.
        """
        future = self._promise()
        self._reads.put(Job(work, future))
        return cast(T, await future)

    async def close(self) -> None:
        """Finish what was asked for, then close the file."""
        self._open = False
        for _ in self._readers:
            self._reads.put(None)
        await asyncio.to_thread(self._end)

    def _promise(self) -> "asyncio.Future[object]":
        if not self._open:
            raise StoreUnavailable("The database is closed.")
        return self._loop.create_future()

    def _end(self) -> None:
        for reader in self._readers:
            reader.join()
        self._writer.end()  # last and alone: then SQLite puts the log into the file and removes it


def _connections(path: Path) -> list[sqlite3.Connection]:
    """Return the writer's connection and those of the readers."""
    prepare(path)
    with ExitStack() as opened:
        try:
            connections = [
                opened.enter_context(closing(connect(path, writes=number == 0)))
                for number in range(1 + _READERS)
            ]
            connections[0].execute("select id from log").fetchall()  # the -wal file is there now
        except sqlite3.Error as error:
            raise errors.unavailable(error, path) from error
        opened.pop_all()
    return connections


def _answer(
    path: Path,
    connection: sqlite3.Connection,
    loop: asyncio.AbstractEventLoop,
    reads: "SimpleQueue[Job | None]",
) -> None:
    """Run reads until there is a None, each on one state of the database."""
    known = queries.load()
    with closing(connection):
        while (job := reads.get()) is not None:
            try:
                connection.execute("begin")
                job.result = drive(connection, known, job.work)
            except sqlite3.Error as error:
                job.error = errors.unavailable(error, path)
            except Exception as error:  # noqa: BLE001 - it belongs to whoever waits for this work
                job.error = error
            with suppress(sqlite3.Error):  # nothing was changed, or SQLite has ended it by itself
                connection.execute("rollback")
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(settle, (job,))
