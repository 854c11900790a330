"""Every store contract runs on every database of the roster: real ones, never a twin in memory."""

import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import NamedTuple

import pytest

from internal.agent.store.database import Database, Row
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database


class Kind(NamedTuple):
    """A kind of database. `peek` looks at committed rows past all our code."""

    open: Callable[[Path], AbstractAsyncContextManager[Database]]
    peek: Callable[[Path, str], list[Row]]


def peek_sqlite(folder: Path, sql: str) -> list[Row]:
    with closing(sqlite3.connect(folder / "larkspur.db")) as connection:
        return connection.execute(sql).fetchall()


ROSTER = {"sqlite": Kind(lambda folder: open_database(folder / "larkspur.db"), peek_sqlite)}


@pytest.fixture(params=sorted(ROSTER))
def kind(request: pytest.FixtureRequest) -> Kind:
    return ROSTER[request.param]


@pytest.fixture
async def database(kind: Kind, tmp_path: Path) -> AsyncGenerator[Database]:
    async with kind.open(tmp_path) as opened:
        yield opened


@pytest.fixture
def peek(kind: Kind, tmp_path: Path) -> Callable[[str], list[Row]]:
    return lambda sql: kind.peek(tmp_path, sql)


@pytest.fixture
def stores() -> Stores:
    return Stores()
