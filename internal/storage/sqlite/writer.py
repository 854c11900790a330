"""The writer thread: waiting units of work share a commit, and each fails alone.

A unit of work is executed on a connection statement by statement, here and by the readers.
"""

import asyncio
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty
from typing import Any

from internal.agent.domain.errors import StoreError, StoreUnavailable
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.secrets import mask_secrets_in_values
from internal.agent.store.database import Batch, DatabaseState, Lookup, Row, SqlValue
from internal.agent.store.events import EventStore
from internal.storage import queries
from internal.storage.pending_work import PendingWork, Work, resolve_from_thread, state_after
from internal.storage.sqlite import errors
from internal.storage.sqlite.commit_watch import CommitWatch
from internal.storage.sqlite.connection import LOCK_TIMEOUT_SECONDS
from internal.storage.sqlite.work_queue import WorkQueue

logger = logging.getLogger(__name__)

_PARAMETERS = tuple(str(n) for n in range(1, 33))  # no statement has more


def execute(connection: sqlite3.Connection, queries: Mapping[str, str], work: Work) -> Any:
    """Execute the statements of a unit of work in the open transaction and return its result.

    Raises:
        sqlite3.Error: disk, file or lock failed.
        StoreError, Conflict: a statement failed.
        Exception: any exception of the work.
    """
    generator = work()
    query = ""
    try:
        statement = next(generator)
        while True:
            query = statement.query
            sql = queries[query]
            rows: list[Row] = []
            if isinstance(statement, Batch):
                connection.executemany(sql, [_bind(values) for values in statement.arguments])
            elif isinstance(statement, Lookup):
                for values in statement.arguments:
                    rows += connection.execute(sql, _bind(values)).fetchall()
            else:
                rows = connection.execute(sql, _bind(statement.arguments)).fetchall()
            statement = generator.send(rows)
    except StopIteration as end:
        return end.value
    except sqlite3.Error as error:
        if errors.is_environment(error):
            raise
        raise errors.statement_error(error, query) from error
    except OverflowError as error:  # raised by Python's sqlite3 for an integer over 64 bits
        raise StoreError(f"The statement {query} failed: {error}.") from error
    finally:
        generator.close()


def _bind(values: tuple[SqlValue, ...]) -> dict[str, SqlValue]:
    """Return the parameters of a statement, with every secret masked: nothing stored has one."""
    return dict(zip(_PARAMETERS, mask_secrets_in_values(values)))  # noqa: B905 - most take fewer


_MAX_GROUP_SIZE = 512
_MAX_GROUP_SECONDS = 0.05
"""Maximum delay of a commit while more work keeps arriving."""


class Writer:
    """Executes units of work in call order, many in one transaction.

    `commits` counts the transactions, `state` has the success of the last one. After a failed sync,
    damage, or when the file was moved or replaced, every further write fails: the content of the
    disk is uncertain until it is reopened.

    Args:
        on_foreign_commit: is called in the loop after other processes have committed.
    """

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        loop: asyncio.AbstractEventLoop,
        on_foreign_commit: Callable[[], None],
    ) -> None:
        self.commits = 0
        self.state = DatabaseState("", rfc3339(datetime.now(UTC)))
        self._path = path
        self._file_ids = _file_ids(path)
        self._connection = connection
        self._connection.execute("pragma busy_timeout = 0")  # see _begin
        self._queries = queries.load()
        self._loop = loop
        self._on_foreign_commit = on_foreign_commit
        self._watch = CommitWatch(connection, path)
        self._queue = WorkQueue(self._watch.descriptor)
        self._permanent_failure: str | None = None
        self._has_skipped = False
        self._thread = threading.Thread(target=self._run, name="storage-writer", daemon=True)
        self._thread.start()

    def put(self, item: PendingWork) -> None:
        """Queue a unit of work. Its future is resolved when it is on disk."""
        self._queue.put(item)

    def close(self) -> None:
        """Write the queued work, then close the connection. Blocks until the thread has ended."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        with closing(self._connection), closing(self._watch), closing(self._queue):
            while (item := self._next()) is not None:
                group = [item]
                try:
                    self._write(group)
                except StoreUnavailable as error:
                    self._permanent_failure = str(error)
                    self._fail(group, error)
                except sqlite3.Error as error:
                    failure = errors.unavailable(error, self._path)
                    if errors.is_permanent(error):
                        self._permanent_failure = f"{failure} Restart Larkspur to continue."
                    self._fail(group, failure)
                except Exception as error:  # the thread must not end: all writes would wait forever
                    logger.exception("storage writer failed")
                    self._fail(
                        group, StoreUnavailable(f"The database {self._path} failed: {error}.")
                    )
                resolve_from_thread(group, self._loop)

    def _next(self) -> PendingWork | None:
        """Return the next unit of work, None at the end. Look for foreign commits meanwhile."""
        while True:
            wait = self._watch.seconds_to_look()
            if wait <= 0:
                self._look()
                continue
            try:
                return self._queue.get(wait)
            except Empty:
                self._watch.read_changes()

    def _look(self) -> None:
        """Call back when the file has changed other than by this connection."""
        with suppress(sqlite3.Error):  # the next write reports the failure
            if self._watch.look():
                with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    self._loop.call_soon_threadsafe(self._on_foreign_commit)

    def _write(self, group: list[PendingWork]) -> None:
        if self._permanent_failure is not None:
            raise StoreUnavailable(self._permanent_failure)
        is_isolated = False
        while not self._attempt(group, is_isolated=is_isolated):
            is_isolated = True

    def _attempt(self, group: list[PendingWork], *, is_isolated: bool) -> bool:
        """Execute and commit the group, which grows while it is processed.

        A unit of work that fails undoes the transaction. If it is alone, that is all. Otherwise
        False is returned, and the group is to be executed again with a savepoint for each unit:
        that costs two statements for each one, and few fail.
        """
        execute_sql = self._connection.execute
        self._begin()
        if not self._has_skipped:
            execute(self._connection, self._queries, EventStore().skip_positions)
        deadline = time.monotonic() + _MAX_GROUP_SECONDS
        for item in group:
            if is_isolated:
                execute_sql("savepoint work")
            self._execute(item)
            if item.error is not None and not is_isolated:
                execute_sql("rollback")
                return len(group) == 1
            if is_isolated:
                if item.error is not None:
                    execute_sql("rollback to work")
                execute_sql("release work")
            if len(group) < _MAX_GROUP_SIZE and time.monotonic() < deadline:
                self._add_waiting(group)
        if _file_ids(self._path) != self._file_ids:
            raise StoreUnavailable(
                f"The database {self._path} or its -wal file was moved or replaced: "
                "nothing was written. Restart Larkspur to continue."
            )
        execute_sql("commit")
        self._watch.skip_own_commit()
        self.commits += 1
        self._has_skipped = True
        self._set_failure("")
        return True

    def _execute(self, item: PendingWork) -> None:
        item.result = item.error = None
        try:
            item.result = execute(self._connection, self._queries, item.work)
        except sqlite3.Error:
            raise
        except Exception as error:  # noqa: BLE001 - raised to the caller of this unit of work
            item.error = error

    def _begin(self) -> None:
        """Take the file's lock, waiting up to LOCK_TIMEOUT_SECONDS for another process.

        Tries often: SQLite's own wait sleeps 100 ms at a time and misses the short gaps that a busy
        process leaves.
        """
        deadline, pause = time.monotonic() + LOCK_TIMEOUT_SECONDS, 0.0002
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

    def _add_waiting(self, group: list[PendingWork]) -> None:
        try:
            item = self._queue.get_nowait()
        except Empty:
            return
        if item is None:
            self._queue.put(None)  # closing comes after this group
        else:
            group.append(item)

    def _set_failure(self, failure: str) -> None:
        self.state = state_after(self.state, failure)

    def _fail(self, group: list[PendingWork], failure: StoreUnavailable) -> None:
        self._set_failure(str(failure))
        for item in group:
            item.error = StoreUnavailable(str(failure))  # one each: raising adds a traceback to it
        if self._connection.in_transaction:
            with suppress(sqlite3.Error):  # SQLite may have rolled back by itself
                self._connection.execute("rollback")


def _file_ids(path: Path) -> list[tuple[int, int]]:
    """Return device and inode of the database and its log."""
    found = []
    for name in (path, f"{path}-wal"):
        with suppress(OSError):
            status = os.stat(name)  # noqa: PTH116 - half of what Path.stat costs, at every commit
            found.append((status.st_dev, status.st_ino))
    return found
