"""Execution of a unit of work on a SQLite connection, statement by statement."""

import asyncio
import sqlite3
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from internal.agent.store.database import Batch, Row, SqlValue, Statement
from internal.storage.sqlite import errors

Work = Callable[[], Generator[Statement | Batch, list[Row], Any]]

_PARAMETERS = tuple(str(n) for n in range(1, 33))  # no statement has more


class PendingWork:
    """A unit of work, the future of its caller, and its result or error."""

    __slots__ = ("error", "future", "result", "work")

    def __init__(self, work: Work, future: asyncio.Future[Any]) -> None:
        self.work = work
        self.future = future
        self.result: Any = None
        self.error: Exception | None = None


def resolve_futures(items: Sequence[PendingWork]) -> None:
    """Set the results of the futures, in the thread of their event loop. Skips cancelled ones."""
    for item in items:
        if item.future.done():
            continue
        if item.error is None:
            item.future.set_result(item.result)
        else:
            item.future.set_exception(item.error)


def execute(connection: sqlite3.Connection, queries: Mapping[str, str], work: Work) -> Any:
    """Execute the statements of a unit of work in the open transaction and return its result.

    Raises:
        sqlite3.Error: disk, file or lock failed.
        StoreError, Conflict: a statement failed.
        Exception: whatever the work raises.
    """
    generator = work()
    query = ""
    try:
        statement = next(generator)
        while True:
            query, arguments = statement
            sql = queries[query]
            if type(statement) is Batch:
                connection.executemany(sql, [_bind(values) for values in statement.arguments])
                rows = []
            else:
                rows = connection.execute(sql, dict(zip(_PARAMETERS, arguments))).fetchall()  # noqa: B905 - most take fewer
            statement = generator.send(rows)
    except StopIteration as end:
        return end.value
    except sqlite3.Error as error:
        if errors.is_environment(error):
            raise
        raise errors.statement_error(error, query) from error
    finally:
        generator.close()


def _bind(values: tuple[SqlValue, ...]) -> dict[str, SqlValue]:
    return dict(zip(_PARAMETERS, values))  # noqa: B905 - most take fewer
