"""New databases of each kind."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from internal.storage.maintenance.interface import DatabaseMaintenance
from tests.support.new_databases import KINDS, POSTGRES, NewDatabase


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=POSTGRES)])
async def new_database(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncGenerator[NewDatabase]:
    """A database of each kind, with tables and without rows."""
    async with KINDS[request.param](tmp_path, "larkspur.db") as created:
        async with created.maintenance.target():
            pass
        yield created


@pytest.fixture
def maintenance(new_database: NewDatabase) -> DatabaseMaintenance:
    return new_database.maintenance
