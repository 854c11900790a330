"""How a piece of work meets a SQLite connection: its statements one by one, in this thread."""

import asyncio
import sqlite3
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from internal.agent.store.database import Batch, Row, SqlValue, Statement
from internal.storage.sqlite import errors

Work = Callable[[], Generator[Statement | Batch, list[Row], Any]]

_NAMES = tuple(str(n) for n in range(1, 33))  # no statement has more values


class Job:
    """A piece of work, the future of whoever waits for it, and what came of it."""

    __slots__ = ("error", "future", "result", "work")

    def __init__(self, work: Work, future: asyncio.Future[Any]) -> None:
        self.work = work
        self.future = future
        self.result: Any = None
        self.error: Exception | None = None


def settle(jobs: Sequence[Job]) -> None:
    """Tell the waiting callers, in the thread of their event loop. Who was cancelled left."""
    for job in jobs:
        if job.future.done():
            continue
        if job.error is None:
            job.future.set_result(job.result)
        else:
            job.future.set_exception(job.error)


def drive(connection: sqlite3.Connection, queries: Mapping[str, str], work: Work) -> Any:
    """Run the work's statements in the open transaction and return its result.

    Raises:
        sqlite3.Error: disk, file or lock failed.
        StoreError, Conflict: a statement itself was refused.
        Exception: what the work raises.
    """
    generator = work()
    query = ""
    try:
        statement = next(generator)
        while True:
            query, arguments = statement
            sql = queries[query]
            if type(statement) is Batch:
                connection.executemany(sql, [_bound(values) for values in statement.arguments])
                rows = []
            else:
                rows = connection.execute(sql, dict(zip(_NAMES, arguments))).fetchall()  # noqa: B905 - most take fewer
            statement = generator.send(rows)
    except StopIteration as end:
        return end.value
    except sqlite3.Error as error:
        if errors.is_environment(error):
            raise
        raise errors.refusal(error, query) from error
    finally:
        generator.close()


def _bound(values: tuple[SqlValue, ...]) -> dict[str, SqlValue]:
    return dict(zip(_NAMES, values))  # noqa: B905 strict would refuse the names that are left over
