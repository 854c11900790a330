"""Fixtures of the store contracts, which run on every kind of database."""

import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import NamedTuple

import pytest

from internal.agent.store.database import Database, Row
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database


class DatabaseKind(NamedTuple):
    """A kind of database. `select` reads committed rows without the code under test."""

    open: Callable[[Path], AbstractAsyncContextManager[Database]]
    select: Callable[[Path, str], list[Row]]


def select_from_sqlite(folder: Path, sql: str) -> list[Row]:
    with closing(sqlite3.connect(folder / "larkspur.db")) as connection:
        return connection.execute(sql).fetchall()


DATABASE_KINDS = {
    "sqlite": DatabaseKind(lambda folder: open_database(folder / "larkspur.db"), select_from_sqlite)
}


@pytest.fixture(params=sorted(DATABASE_KINDS))
def kind(request: pytest.FixtureRequest) -> DatabaseKind:
    return DATABASE_KINDS[request.param]


@pytest.fixture
async def database(kind: DatabaseKind, tmp_path: Path) -> AsyncGenerator[Database]:
    async with kind.open(tmp_path) as opened:
        yield opened


@pytest.fixture
def select(kind: DatabaseKind, tmp_path: Path) -> Callable[[str], list[Row]]:
    return lambda sql: kind.select(tmp_path, sql)


@pytest.fixture
def stores() -> Stores:
    return Stores()
