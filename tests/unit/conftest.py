"""Fixtures of the store contracts, which run on every kind of database."""

import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path
from typing import NamedTuple

import pytest

from internal.agent.store.database import Database, Row
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from tests.support.postgres_server import postgres_url, shared_server


class DatabaseKind(NamedTuple):
    """A kind of database.

    `create` yields the address of a new one. `select` reads committed rows there without the code
    under test.
    """

    create: Callable[[Path], AbstractAsyncContextManager[str]]
    select: Callable[[str, str], list[Row]]


TWINS = (
    "agent/store/test_access.py",
    "agent/store/test_database.py",
    "agent/store/test_events.py",
    "agent/store/test_lessons.py",
    "agent/store/test_runs.py",
    "storage",
    "agent/app/processes/test_leadership.py",
    "dispatch/test_leases.py",
    "dispatch/test_registry.py",
)
"""Tests of statements, of locks and of claims, whose twins on PostgreSQL `make test` runs."""
_FOLDER = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to CI the PostgreSQL twins of tests of the logic above the stores."""
    for item in items:
        if is_postgres_twin(item) and not any(
            item.path.is_relative_to(_FOLDER / name) for name in TWINS
        ):
            item.add_marker(pytest.mark.slow)


def is_postgres_twin(item: pytest.Item) -> bool:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return bool(parameters.get("kind") == "postgres")


@asynccontextmanager
async def sqlite_path(folder: Path) -> AsyncGenerator[str]:
    yield str(folder / "larkspur.db")


def select_from_sqlite(path: str, sql: str) -> list[Row]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def select_from_postgres(url: str, sql: str) -> list[Row]:
    return shared_server().sql(sql, url.rpartition("/")[2])


DATABASE_KINDS = {
    "sqlite": DatabaseKind(sqlite_path, select_from_sqlite),
    "postgres": DatabaseKind(lambda _: postgres_url(), select_from_postgres),
}


@pytest.fixture(
    params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)],
)
def kind(request: pytest.FixtureRequest) -> DatabaseKind:
    return DATABASE_KINDS[request.param]


@pytest.fixture
async def address(kind: DatabaseKind, tmp_path: Path) -> AsyncGenerator[str]:
    """The path or URL of a database of the test's own."""
    async with kind.create(tmp_path) as created:
        yield created


@pytest.fixture
async def database(address: str) -> AsyncGenerator[Database]:
    async with open_database(address) as opened:
        yield opened


@pytest.fixture
def select(kind: DatabaseKind, address: str) -> Callable[[str], list[Row]]:
    return lambda sql: kind.select(address, sql)


@pytest.fixture
def stores() -> Stores:
    return Stores()
