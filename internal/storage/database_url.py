"""The way to a database by its address."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from internal.agent.domain.errors import StoreCorrupt
from internal.storage.sqlite.database import SqliteDatabase

_SQLITE = "sqlite:///"


@asynccontextmanager
async def open_database(where: str | Path) -> AsyncGenerator[SqliteDatabase]:
    """Open the database at a path or URL, such as `sqlite:////home/ana/.larkspur/larkspur.db`.

    A file is made when there is none. Leaving finishes what was asked for and closes it.

    Raises:
        StoreRefused: it is damaged, not ours or newer than this program, or the URL names a kind of
            database that is not known; nothing was touched.
        StoreUnavailable: it cannot be opened, made or changed where it is.
    """
    database = await SqliteDatabase.open(_path(where))
    try:
        yield database
    finally:
        await database.close()


def _path(where: str | Path) -> Path:
    address = str(where)
    kind, separator, _ = address.partition("://")
    if kind in {"postgres", "postgresql"} and separator:
        raise StoreCorrupt("A PostgreSQL database comes in a later release; use a sqlite:/// URL.")
    if separator and not address.startswith(_SQLITE):
        raise StoreCorrupt(f"{address} names no database: use a path or sqlite:///PATH.")
    path = address.removeprefix(_SQLITE)
    if not path or "\0" in path or path.endswith("/"):
        raise StoreCorrupt(f"{address} names no file: use a path or sqlite:///PATH.")
    return Path(path).absolute()
