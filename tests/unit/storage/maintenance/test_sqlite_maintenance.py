"""Maintenance specific to SQLite files."""

from pathlib import Path

import pytest

from internal.agent.domain.errors import StoreCorrupt, StoreUnavailable
from internal.storage.maintenance.selection import find_maintenance
from internal.storage.migrations import migrations
from tests.support.database_files import create_database, execute, file_contents, file_size


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "larkspur.db"


async def test_migrations_are_listed_and_applied_one_by_one(path: Path, tmp_path: Path) -> None:
    maintenance = find_maintenance(path)
    numbers = [step.number for step in migrations("sqlite")]
    assert [step.number for step in await maintenance.list_pending()] == numbers
    assert file_contents(tmp_path) == {}
    applied: list[int] = []
    await maintenance.migrate(lambda step: applied.append(step.number))
    assert applied == numbers
    assert await maintenance.list_pending() == []
    await maintenance.migrate(lambda step: applied.append(step.number))
    assert applied == numbers


async def test_a_newer_schema_is_refused_and_not_changed(path: Path, tmp_path: Path) -> None:
    await create_database(path)
    execute(path, "insert into schema_migrations values (999, 'next', 'now')")
    before = file_contents(tmp_path)
    maintenance = find_maintenance(path)
    for work in (maintenance.snapshot, maintenance.source, maintenance.target):
        with pytest.raises(StoreCorrupt, match="newer version of Larkspur"):
            async with work():
                pass
    with pytest.raises(StoreCorrupt, match="newer version of Larkspur"):
        await maintenance.list_pending()
    assert file_contents(tmp_path) == before


async def test_a_large_file_is_not_vacuumed_beside_a_gateway(path: Path) -> None:
    await create_database(path)
    with path.open("r+b") as file:  # sparse: it takes no space
        file.truncate(65 * 2**20)
    size = file_size(path)
    done = await find_maintenance(path).vacuum(is_served=True)
    assert "stop the gateway and repeat this" in done
    assert file_size(path) == size


async def test_a_snapshot_needs_a_database(path: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="There is no database"):
        async with find_maintenance(path).snapshot():
            pass
    with pytest.raises(StoreUnavailable, match="There is no database"):
        async with find_maintenance(path).source():
            pass
    assert file_contents(tmp_path) == {}
