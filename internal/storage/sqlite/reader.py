"""A connection that reads."""

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

from internal.storage import queries
from internal.storage.pending_work import Work
from internal.storage.sqlite import errors
from internal.storage.sqlite.writer import execute


class Reader:
    """Executes units of work that change nothing."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self._queries = queries.load()

    def read(self, work: Work) -> Any:
        """Execute a unit of work on one snapshot of the database and return its result.

        Raises:
            StoreUnavailable: the file cannot be read.
            Exception: any exception of the work.
        """
        try:
            self._connection.execute("begin")
            return execute(self._connection, self._queries, work)
        except sqlite3.Error as error:
            raise errors.unavailable(error, self._path) from error
        finally:
            with suppress(sqlite3.Error):  # nothing was changed, or SQLite rolled back by itself
                self._connection.execute("rollback")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
