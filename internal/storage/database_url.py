"""Opening a database by path or URL."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from internal.agent.domain.errors import StoreCorrupt, StoreUnavailable
from internal.agent.store.database import Database, Row, SqlValue
from internal.database_address.address import is_postgres
from internal.storage.sqlite.database import SqliteDatabase
from internal.storage.sqlite.file_check import check_file, read_file

if TYPE_CHECKING:
    from internal.storage.postgres.database import PostgresDatabase

_SQLITE = "sqlite:///"


@asynccontextmanager
async def open_database(url: str | Path) -> AsyncGenerator[Database]:
    """Open the database at a path or URL.

    Such as `sqlite:////home/ana/.larkspur/larkspur.db` or `postgresql://user:password@host/name`.
    A missing file is created. Leaving the context completes the queued work, then closes.

    Raises:
        StoreCorrupt: it is damaged, not a database of Larkspur or has an unknown schema, or the URL
            is not supported; nothing was changed.
        StoreUnavailable: it cannot be opened, created or changed.
    """
    database = await _open(str(url))
    try:
        yield database
    finally:
        await database.close()


async def _open(url: str) -> "SqliteDatabase | PostgresDatabase":
    if is_postgres(url):
        return await postgres_class().open(url)
    return await SqliteDatabase.open(database_path(url))


async def check_database(url: str) -> int:
    """Check the database at a path or URL without changing it, and return its schema version.

    The version is 0 when there are no tables yet. A file that this process has open must not be
    checked: closing it again would release the locks of SQLite
    (https://sqlite.org/howtocorrupt.html, section 2.2).

    Raises:
        StoreCorrupt, StoreUnavailable: it cannot be used.
    """
    if is_postgres(url):
        return await postgres_class().check(url)
    return check_file(database_path(url)).version


async def read_rows(url: str, query: str, *values: SqlValue) -> list[Row]:
    """Return the rows of a named statement without changing the database at a path or URL.

    What `check_database` says about open files applies here as well.

    Raises:
        StoreError, StoreCorrupt, StoreUnavailable: the database cannot be read, or has another
            schema.
    """
    if is_postgres(url):
        return await postgres_class().read_rows(url, query, *values)
    return read_file(database_path(url), query, *values)


def postgres_class() -> type["PostgresDatabase"]:
    """Return the PostgreSQL implementation.

    Raises:
        StoreUnavailable: its driver is not installed.
    """
    try:
        from internal.storage.postgres.database import (  # noqa: PLC0415 - an optional package
            PostgresDatabase,
        )
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise StoreUnavailable(
            "PostgreSQL needs the package asyncpg: install the extra larkspur-gateway[postgres]."
        ) from error
    return PostgresDatabase


def database_path(url: str) -> Path:
    """Return the file that a path or URL names.

    Raises:
        StoreCorrupt: it names none.
    """
    if "://" in url and not url.startswith(_SQLITE):
        raise StoreCorrupt(
            "This is not a database URL: use a path, sqlite:///PATH or postgresql://…."
        )
    path = url.removeprefix(_SQLITE)
    if not path or "\0" in path or path.endswith("/"):
        raise StoreCorrupt(f"{url} does not name a file: use a path or sqlite:///PATH.")
    return Path(path).absolute()
