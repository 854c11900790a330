"""Empty databases of each kind."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from internal.storage.maintenance.interface import DatabaseMaintenance
from internal.storage.maintenance.selection import find_maintenance
from tests.support.postgres_server import postgres_url


class NewDatabase(NamedTuple):
    """A new database: its path or URL, and its maintenance."""

    address: str
    maintenance: DatabaseMaintenance


CreateDatabase = Callable[[Path, str], AbstractAsyncContextManager[NewDatabase]]


@asynccontextmanager
async def create_sqlite(folder: Path, name: str) -> AsyncGenerator[NewDatabase]:
    yield NewDatabase(str(folder / name), find_maintenance(folder / name))


@asynccontextmanager
async def create_postgres(_folder: Path, _name: str) -> AsyncGenerator[NewDatabase]:
    async with postgres_url() as url:
        yield NewDatabase(url, find_maintenance(url))


KINDS: dict[str, CreateDatabase] = {"sqlite": create_sqlite, "postgres": create_postgres}


POSTGRES = pytest.mark.postgres
