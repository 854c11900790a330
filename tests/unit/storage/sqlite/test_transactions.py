"""Execution of units of work on a connection."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from internal.agent.domain.errors import Conflict, StoreError
from internal.agent.store.database import Batch, Read, Statement, Write
from internal.storage.sqlite.transactions import PendingWork, execute, resolve_futures

QUERIES = {
    "insert": "insert into birds (name) values ($1)",
    "list": "select name from birds order by name",
    "broken": "select nothing from nowhere",
}


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        opened.execute("create table birds (name text unique)")
        yield opened


def insert_and_list(*names: str) -> Write[list[str]]:
    yield Batch("insert", [(name,) for name in names])
    rows = yield Statement("list")
    return [name for (name,) in rows]


def test_statements_are_executed_and_the_result_returned(connection: sqlite3.Connection) -> None:
    assert execute(connection, QUERIES, lambda: insert_and_list("heron", "crane")) == [
        "crane",
        "heron",
    ]


def test_a_duplicate_key_is_a_conflict(connection: sqlite3.Connection) -> None:
    with pytest.raises(Conflict):
        execute(connection, QUERIES, lambda: insert_and_list("heron", "heron"))


def test_a_failing_statement_is_named(connection: sqlite3.Connection) -> None:
    def work() -> Read[None]:
        yield Statement("broken")

    with pytest.raises(StoreError, match="The statement broken failed"):
        execute(connection, QUERIES, work)


async def test_futures_are_resolved_unless_cancelled() -> None:
    loop = asyncio.get_running_loop()
    done, failed, cancelled = (PendingWork(insert_and_list, loop.create_future()) for _ in range(3))
    done.result, failed.error = 1, ValueError("x")
    cancelled.future.cancel()

    resolve_futures([done, failed, cancelled])

    assert await done.future == 1
    with pytest.raises(ValueError, match="x"):
        await failed.future
    assert cancelled.future.cancelled()
