"""Opening a database by path or URL."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from internal.agent.domain.errors import StoreCorrupt
from internal.storage.sqlite.database import SqliteDatabase

_SQLITE = "sqlite:///"


@asynccontextmanager
async def open_database(url: str | Path) -> AsyncGenerator[SqliteDatabase]:
    """Open the database at a path or URL, such as `sqlite:////home/ana/.larkspur/larkspur.db`.

    A missing file is created. Leaving the context completes the queued work and closes the file.

    Raises:
        StoreCorrupt: it is damaged, not a database of Larkspur or has an unknown schema, or the URL
            is not supported; nothing was changed.
        StoreUnavailable: it cannot be opened, created or changed.
    """
    database = await SqliteDatabase.open(database_path(str(url)))
    try:
        yield database
    finally:
        await database.close()


def database_path(url: str) -> Path:
    """Return the file that a path or URL names.

    Raises:
        StoreCorrupt: the URL is not supported.
    """
    scheme, separator, _ = url.partition("://")
    if scheme in {"postgres", "postgresql"} and separator:
        raise StoreCorrupt("PostgreSQL is not supported yet; use a sqlite:/// URL.")
    if separator and not url.startswith(_SQLITE):
        raise StoreCorrupt(f"{url} is not a database URL: use a path or sqlite:///PATH.")
    path = url.removeprefix(_SQLITE)
    if not path or "\0" in path or path.endswith("/"):
        raise StoreCorrupt(f"{url} does not name a file: use a path or sqlite:///PATH.")
    return Path(path).absolute()
