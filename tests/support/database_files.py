"""Database files of SQLite: create one, change it behind the program's back, read its bytes."""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from internal.storage.sqlite.database import SqliteDatabase
from internal.storage.sqlite.schema import prepare_file
from tests.support.store_records import a_session

MIGRATION_COMMITS = 1
"""Number of commits that prepare a new database."""


def write_new_database(path: Path) -> None:
    """Write the file that the first start of a gateway creates, unless the file exists.

    Its tables are created once in a process, because that takes several times as long as writing
    the file. The epoch of its event log is its own.
    """
    try:
        with path.open("xb") as file:
            file.write(_new_database())
    except FileExistsError:
        return
    execute(path, "update event_log set epoch = lower(hex(randomblob(3)))")


@cache
def _new_database() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "new.db"
        prepare_file(path)
        return path.read_bytes()


@asynccontextmanager
async def open_sqlite(path: Path) -> AsyncGenerator[SqliteDatabase]:
    database = await SqliteDatabase.open(path)
    try:
        yield database
    finally:
        await database.close()


async def create_database(path: Path, sessions: int = 0) -> None:
    """Create or open a database and add sessions to it."""
    stores = Stores()
    async with open_database(path) as database:
        for number in range(sessions):
            session = a_session(f"session-{number}", title="x" * 500)
            await database.write(partial(stores.sessions.add, session))


def execute(path: Path, *statements: str) -> None:
    """Execute statements on a database file with a plain connection."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement).fetchall()


def query(path: Path, statement: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query on a database file."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()


def file_contents(folder: Path, glob: str = "*") -> dict[str, bytes]:
    """Return the bytes of every file in a folder whose name matches."""
    return {file.name: file.read_bytes() for file in folder.glob(glob) if file.is_file()}


def file_size(path: Path) -> int:
    """Return the size of a file in bytes."""
    return path.stat().st_size


def create_unreleased_database(path: Path, version: int) -> None:
    """Create a database as versions before the first release did; an excerpt of their tables."""
    execute(
        path,
        "pragma journal_mode = wal",
        "create table schema_migrations (number bigint primary key, name text, applied text)",
        "create table log (id bigint primary key, epoch text, head bigint, arrivals bigint)",
        "insert into log (id, epoch, head, arrivals) values (1, 'a1b2c3', 0, 0)",
        "create table showings (run_id text, channel text, primary key (run_id, channel))",
        *(
            f"insert into schema_migrations values ({number}, 'core', '2026')"  # noqa: S608 - a number
            for number in range(1, version + 1)
        ),
        f"pragma application_id = {0x4C61726B}",
        f"pragma user_version = {version}",
    )
