"""Vacuum and backup of a real file, also while it is used and when the disk refuses."""

import sqlite3
import stat
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from internal.agent.domain.errors import Conflict, StoreCorrupt, StoreUnavailable
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from internal.storage.maintenance.sqlite_files import back_up, read_sizes, vacuum
from tests.support.database_files import create_database, execute, file_size, query
from tests.support.file_size_limit import limited_file_size
from tests.support.store_records import a_session

COUNT = "select count(*) from sessions"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "larkspur.db"


def truncate(path: Path, kept: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept)])


def hidden_files(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir() if file.name.startswith(".")]


async def test_a_backup_of_a_database_in_use_has_every_commit(path: Path, tmp_path: Path) -> None:
    stores, target = Stores(), tmp_path / "backup.db"
    async with open_database(path) as database:
        for number in range(20):
            session = a_session(f"session-{number}")
            await database.write(partial(stores.sessions.add, session))
        size = back_up(path, target)
        await database.write(partial(stores.sessions.add, a_session("session-later")))
    assert target.stat().st_size == size
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert query(target, COUNT) == [(20,)]
    async with open_database(target):
        pass
    assert hidden_files(tmp_path) == []


async def test_a_file_that_exists_is_not_replaced(path: Path, tmp_path: Path) -> None:
    await create_database(path)
    target = tmp_path / "backup.db"
    target.write_text("precious")
    with pytest.raises(Conflict, match="exists and was not changed"):
        back_up(path, target)
    assert target.read_text() == "precious"


async def test_a_backup_that_cannot_be_written_leaves_nothing(path: Path, tmp_path: Path) -> None:
    await create_database(path)
    folder = tmp_path / "backups"
    with pytest.raises(StoreUnavailable, match=r"cannot be written: no such file"):
        back_up(path, folder / "a.db")
    folder.mkdir()
    with limited_file_size(100_000), pytest.raises(StoreUnavailable, match=str(folder / "a.db")):
        back_up(path, folder / "a.db")
    assert list(folder.iterdir()) == []


async def test_no_backup_is_made_of_a_damaged_database(path: Path, tmp_path: Path) -> None:
    await create_database(path, sessions=200)
    with path.open("r+b") as file:
        file.seek(-8 * 4096, 2)
        file.write(b"\xff" * 4 * 4096)
    with pytest.raises(StoreCorrupt, match="is damaged"):
        back_up(path, tmp_path / "backup.db")
    assert not (tmp_path / "backup.db").exists()


@pytest.mark.parametrize("kept", [0.5, 0.01])
async def test_no_backup_is_made_of_a_truncated_database(
    path: Path, tmp_path: Path, kept: float
) -> None:
    await create_database(path, sessions=200)
    truncate(path, kept)
    with pytest.raises(StoreCorrupt, match="is damaged"):
        back_up(path, tmp_path / "backup.db")


def test_a_missing_database_is_not_created(path: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="There is no database"):
        back_up(path, tmp_path / "backup.db")
    with pytest.raises(StoreUnavailable, match="There is no database"):
        vacuum(path)
    assert list(tmp_path.iterdir()) == []


async def test_a_vacuum_gives_unused_space_back_beside_another_process(path: Path) -> None:
    await create_database(path, sessions=2_000)
    execute(path, "delete from sessions")
    unused = read_sizes(path).unused
    assert unused > 500_000
    async with open_database(path) as database:
        assert vacuum(path) >= unused
        await database.write(partial(Stores().sessions.add, a_session("session-later")))
    sizes = read_sizes(path)
    assert (sizes.unused, query(path, COUNT)) == (0, [(1,)])
    assert query(path, "pragma integrity_check") == [("ok",)]


async def test_sizes_are_those_of_the_tables(path: Path) -> None:
    await create_database(path, sessions=100)
    sizes = read_sizes(path)
    assert sizes.size == file_size(path)
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("select name from sqlite_master where type = 'table'")
        assert sizes.tables.keys() >= {name for (name,) in tables}
    assert sizes.tables["sessions"] > 50_000
