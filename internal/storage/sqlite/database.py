"""The SQLite database: a writer thread, two reader threads, and short reads in the event loop."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar, cast

from internal.agent.domain.errors import StoreUnavailable
from internal.agent.domain.system_errors import check_descriptors, describe_system_error
from internal.agent.store.database import DatabaseState, Read
from internal.storage.moves import check_move
from internal.storage.pending_work import PendingWork, resolve_from_thread
from internal.storage.queued_database import QueuedDatabase
from internal.storage.sqlite import errors
from internal.storage.sqlite.connection import connect
from internal.storage.sqlite.reader import Reader
from internal.storage.sqlite.schema import prepare_file
from internal.storage.sqlite.writer import Writer

T = TypeVar("T")

_READER_COUNT = 2
_NEEDED_DESCRIPTORS = 20
"""Database, log and shared memory of each connection, three of the writer, and some to spare."""


class SqliteDatabase(QueuedDatabase):
    """A `Database` on one file, which other processes may use at the same time.

    Belongs to the event loop that opened it. Use `open` to create an instance.
    """

    def __init__(self, path: Path, connections: list[sqlite3.Connection]) -> None:
        self.path = path
        self._watchers: list[Callable[[], None]] = []
        loop = asyncio.get_running_loop()
        self._writer = Writer(path, connections[0], loop, self._on_foreign_commit)
        self._short_reader = Reader(path, connections[1])
        self._reads: SimpleQueue[PendingWork | None] = SimpleQueue()
        super().__init__(self._writer.put, self._reads.put)
        self._readers = [
            threading.Thread(
                target=_run_reader,
                args=(Reader(path, connection), loop, self._reads),
                name=f"storage-reader-{number}",
                daemon=True,
            )
            for number, connection in enumerate(connections[2:], 1)
        ]
        for reader in self._readers:
            reader.start()

    @classmethod
    async def open(cls, path: Path) -> "SqliteDatabase":
        """Open the file, after creating or migrating it when necessary.

        Raises:
            StoreCorrupt: it is damaged, not a database of Larkspur, or has an unknown schema;
                nothing was changed.
            StoreUnavailable: it cannot be opened, created or changed.
        """
        return cls(path, await asyncio.to_thread(_open_connections, path))

    @property
    def commits(self) -> int:
        """The number of committed transactions. Concurrent writes share one."""
        return self._writer.commits

    @property
    def state(self) -> DatabaseState:
        """Whether the last write succeeded."""
        return self._writer.state

    @property
    def messages(self) -> None:
        """Processes on one file exchange no messages: one gateway shows the runs of all."""
        return

    @contextmanager
    def watch(self, callback: Callable[[], None], /) -> Generator[None]:
        """Call `callback` soon after another process has committed, for the length of a block.

        It is called in the event loop of the database, at most once in `REPORT_SECONDS`.
        """
        self._watchers.append(callback)
        try:
            yield
        finally:
            self._watchers.remove(callback)

    async def read(self, work: Callable[[], Read[T]], /, *, is_short: bool = False) -> T:
        """Execute the work on one snapshot of the database and return its result.

        Raises:
            StoreUnavailable: the database cannot be read.
        """
        if is_short and self._is_open:
            with suppress(StoreUnavailable):  # a thread waits for a lock, or reports the failure
                return cast(T, self._short_reader.read(work))
        return await super().read(work)

    async def close(self) -> None:
        """Complete the queued work, then close the file. A second call does nothing."""
        if not self._is_open:
            return
        self._refuse_work()
        self._short_reader.close()
        for _ in self._readers:
            self._reads.put(None)
        await asyncio.to_thread(self._join_threads)

    def _on_foreign_commit(self) -> None:
        for callback in [*self._watchers]:
            callback()

    def _join_threads(self) -> None:
        for reader in self._readers:
            reader.join()
        self._writer.close()  # last: only the last connection makes SQLite remove the -wal file


def _open_connections(path: Path) -> list[sqlite3.Connection]:
    """Return the connections of the writer, of the event loop and of the readers."""
    try:
        check_descriptors(_NEEDED_DESCRIPTORS)  # SQLite would only say that it cannot open the file
    except OSError as error:
        raise StoreUnavailable(describe_system_error(error)) from error
    prepare_file(path)
    with ExitStack() as opened:
        try:
            connections = [
                opened.enter_context(closing(connect(path, writes=number == 0)))
                for number in range(2 + _READER_COUNT)
            ]
            connections[1].execute("pragma busy_timeout = 0")  # the event loop never waits
            moves = connections[0].execute(  # this also creates the -wal file
                "select direction, place, finished from database_moves"
            )
            for row in moves.fetchall():
                check_move(f"sqlite:///{path}", *row)
        except sqlite3.Error as error:
            raise errors.unavailable(error, path) from error
        opened.pop_all()
    return connections


def _run_reader(
    reader: Reader, loop: asyncio.AbstractEventLoop, reads: "SimpleQueue[PendingWork | None]"
) -> None:
    """Execute reads until the queue yields None."""
    with closing(reader):
        while (item := reads.get()) is not None:
            try:
                item.result = reader.read(item.work)
            except Exception as error:  # noqa: BLE001 - raised to the caller of this unit of work
                item.error = error
            resolve_from_thread((item,), loop)
