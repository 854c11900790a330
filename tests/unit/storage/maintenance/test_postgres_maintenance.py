"""Maintenance specific to PostgreSQL."""

from pathlib import Path

import pytest

from internal.agent.domain.errors import Conflict, InvalidRequest, StoreCorrupt, StoreUnavailable
from internal.storage.database_url import open_database
from internal.storage.maintenance.selection import find_maintenance
from tests.support.postgres_server import postgres_url, shared_server

pytestmark = pytest.mark.postgres


async def test_a_backup_names_the_program_that_makes_one(tmp_path: Path) -> None:
    maintenance = find_maintenance("postgresql://ana:s3cret@db.example:6000/birds")
    with pytest.raises(InvalidRequest) as caught:
        await maintenance.back_up(tmp_path / "a.dump")
    assert str(caught.value).endswith(
        f"pg_dump --format=custom --file={tmp_path}/a.dump --host=db.example --port=6000"
        " --username=ana birds"
    )


async def test_a_vacuum_works_beside_other_processes() -> None:
    async with postgres_url() as url, open_database(url):
        done = await find_maintenance(url).vacuum(is_served=True)
    assert done.startswith("The space of removed rows can be used again")


@pytest.mark.slow
async def test_pending_migrations_are_listed_and_applied_alone() -> None:
    server = shared_server()
    name = server.create_database(template="template0")
    url = server.url(name)
    try:
        maintenance = find_maintenance(url)
        pending = [step.number for step in await maintenance.list_pending()]
        assert pending[-1] == maintenance.newest_version
        with pytest.raises(StoreUnavailable, match="has no tables of Larkspur yet"):
            async with maintenance.snapshot():
                pass
        applied: list[int] = []
        await maintenance.migrate(lambda step: applied.append(step.number))
        assert (applied, await maintenance.list_pending()) == (pending, [])
        async with open_database(url):
            with pytest.raises(Conflict, match="Other processes of Larkspur use"):
                await maintenance.migrate(lambda step: applied.append(step.number))
    finally:
        server.drop_database(name)


async def test_a_newer_schema_is_refused() -> None:
    async with postgres_url() as url:
        name = url.rpartition("/")[2]
        shared_server().sql(
            "insert into schema_migrations (number, name, applied) values (999, '', '')", name
        )
        maintenance = find_maintenance(url)
        for work in (maintenance.snapshot, maintenance.source, maintenance.target):
            with pytest.raises(StoreCorrupt, match="newer version of Larkspur"):
                async with work():
                    pass


@pytest.mark.slow
async def test_a_target_that_another_process_uses_is_refused() -> None:
    async with postgres_url() as url, open_database(url):
        with pytest.raises(Conflict, match="Other processes of Larkspur use"):
            async with find_maintenance(url).target():
                pass
