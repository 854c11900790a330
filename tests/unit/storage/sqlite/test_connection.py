"""Connections to a database file."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from internal.storage.sqlite.connection import connect, connect_read_only
from tests.support.database_files import create_database, file_contents
from tests.support.store_records import a_session


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "larkspur.db"


async def test_file_names_with_url_syntax(tmp_path: Path) -> None:
    path = tmp_path / "100%41?mode=ro#半角 .db"
    await create_database(path, sessions=1)
    assert list(file_contents(tmp_path)) == [path.name]


async def test_a_reader_cannot_write(path: Path) -> None:
    await create_database(path)
    with closing(connect(path, writes=False)) as connection:
        assert connection.execute("select count(*) from sessions").fetchone() == (0,)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("delete from sessions")


def test_a_missing_file_is_not_created(path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        connect(path, writes=True)
    assert file_contents(path.parent) == {}


@pytest.mark.parametrize("has_wal", [False, True])
async def test_a_read_only_connection_sees_the_log_and_changes_no_file(
    path: Path, has_wal: bool
) -> None:
    copy = path.with_name("copy")
    copy.mkdir()
    async with open_database(path) as database:
        await database.write(lambda: Stores().sessions.add(a_session()))
        if has_wal:  # as after a crash
            for suffix in ("", "-wal"):
                shutil.copy(f"{path}{suffix}", copy)
    if not has_wal:
        shutil.copy(path, copy)
    before = file_contents(copy)

    with closing(connect_read_only(copy / path.name, has_wal=has_wal)) as connection:
        assert connection.execute("select count(*) from sessions").fetchone() == (1,)

    after = file_contents(copy)
    after.pop(f"{path.name}-shm", None)  # SQLite's index of the log
    assert after == before
