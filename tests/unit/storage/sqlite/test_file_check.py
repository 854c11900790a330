"""Checks before a file is opened: unusable files are rejected and not changed."""

import asyncio
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from internal.agent.domain.errors import StoreCorrupt, StoreUnavailable
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from internal.storage.migrations import newest_version
from internal.storage.sqlite.file_check import FileState, check_file
from tests.support.database_files import (
    create_database,
    create_unreleased_database,
    execute,
    file_contents,
)
from tests.support.store_records import a_session

STORES = Stores()
NEWEST = newest_version("sqlite")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "larkspur.db"


async def refused(path: Path) -> str:
    before = file_contents(path.parent)
    with pytest.raises(StoreCorrupt) as refusal:
        async with open_database(path):
            pass
    after = file_contents(path.parent)
    if "larkspur.db-wal" in before:
        after.pop("larkspur.db-shm", None)  # SQLite's index of a log, without content of its own
    assert after == before, "nothing was touched, nothing left behind"
    assert str(path) in str(refusal.value)
    return str(refusal.value)


def text_file(path: Path) -> None:
    path.write_text("shopping list: " * 99)


def short_file(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" + b"\0" * 40)


def another_program(path: Path) -> None:
    execute(path, "create table notes (note text)", "insert into notes values ('mine')")


def an_empty_database(path: Path) -> None:
    execute(path, "pragma user_version = 1", "vacuum")


def another_program_with_a_log(path: Path) -> None:
    execute(path, "pragma journal_mode = wal", "create table notes (note text)")


@pytest.mark.parametrize(
    ("make_foreign", "words"),
    [
        (text_file, "not a database of Larkspur"),
        (short_file, "not a database of Larkspur"),
        (another_program, "another program"),
        (an_empty_database, "another program"),
        (another_program_with_a_log, "another program"),
    ],
)
async def test_a_file_of_another_program_is_rejected(
    path: Path, make_foreign: Callable[[Path], None], words: str
) -> None:
    make_foreign(path)

    assert words in await refused(path)


@pytest.mark.parametrize("version", [1, 4])
async def test_a_database_of_an_unreleased_version_is_rejected(path: Path, version: int) -> None:
    create_unreleased_database(path, version)

    sentence = await refused(path)

    assert sentence == (
        f"The database {path} was written by an earlier, unreleased version of Larkspur and cannot "
        "be used: move it away to start with a new one."
    )


async def test_a_newer_schema_is_rejected(path: Path) -> None:
    await create_database(path)
    newer = NEWEST + 1
    execute(
        path,
        "insert into schema_migrations select max(number) + 1, '', '' from schema_migrations",
        f"pragma user_version = {newer}",
    )
    assert not path.with_name("larkspur.db-wal").exists()

    assert (
        f"newer version of Larkspur (schema {newer}, this version supports {NEWEST})"
        in await refused(path)
    )


async def test_a_newer_schema_in_the_log_is_rejected(path: Path) -> None:
    """Its version stands in the log beside the file, not yet in the file's header."""
    origin = path.with_name("origin")
    origin.mkdir()
    await create_database(origin / path.name)
    with closing(sqlite3.connect(origin / path.name, isolation_level=None)) as connection:
        connection.execute("insert into schema_migrations values (99, 'next', 'now')")
        for suffix in ("", "-wal"):  # as kill -9 leaves them; the -shm is gone after a restart
            shutil.copy(origin / (path.name + suffix), path.parent)

    assert "schema 99" in await refused(path)


def cut_off(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def overwritten(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xa5" * (size // 4))


def overwritten_start(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xa5" * 5000)


def without_tables(path: Path) -> None:
    execute(path, "drop table schema_migrations")


@pytest.mark.parametrize("damage", [cut_off, overwritten, overwritten_start, without_tables])
async def test_a_damaged_database_is_rejected(path: Path, damage: Callable[[Path], None]) -> None:
    await create_database(path, sessions=200)
    damage(path)

    sentence = await refused(path)

    assert "is damaged" in sentence
    assert "\n" not in sentence


async def test_a_damaged_database_with_a_log_is_rejected(path: Path) -> None:
    """The state after kill -9: the file was overwritten and a log is still beside it."""
    async with open_database(path) as database:
        await database.write(lambda: STORES.sessions.add(a_session()))
        copy = path.with_name("copy")
        copy.mkdir()
        for file in ("larkspur.db", "larkspur.db-wal"):
            shutil.copy(path.with_name(file), copy)
    cut_off(copy / "larkspur.db")
    with (copy / "larkspur.db-wal").open("r+b") as log:
        log.seek(32 + 8)
        log.write(b"\xa5" * 16)  # checksums no longer fit: the log is empty

    assert "is damaged" in await refused(copy / "larkspur.db")


async def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"The folder \S+/nowhere of the database does not"):
        async with open_database(tmp_path / "nowhere" / "larkspur.db"):
            pass
    assert file_contents(tmp_path) == {}


async def test_a_path_that_is_not_a_regular_file(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(StoreUnavailable, match="it is not a regular file"):
        async with open_database(path):
            pass


async def test_a_path_that_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="it is not a regular file"):
        async with open_database(tmp_path):
            pass


async def test_a_file_with_two_names(path: Path) -> None:
    await create_database(path)
    os.link(path, path.with_name("other.db"))
    with pytest.raises(StoreUnavailable, match=r"has 2 names \(hard links\)"):
        async with open_database(path):
            pass


READ_ONLY = """
import asyncio, concurrent.futures.thread, os, sys
from internal.agent.domain.errors import StoreUnavailable
from internal.storage.database_url import open_database

async def look(path):
    try:
        async with open_database(path):
            print("opened")
    except StoreUnavailable as error:
        print(error)

if os.geteuid() == 0:  # root may write anywhere: drop to another user
    os.setgid(65534)
    os.setuid(65534)
for path in sys.argv[1:]:
    asyncio.run(look(path))
"""


async def test_files_and_folders_that_are_not_writable(tmp_path: Path) -> None:
    locked, shared = tmp_path / "locked", tmp_path / "shared"
    for folder in (locked, shared):
        folder.mkdir()
        await create_database(folder / "larkspur.db")
    (shared / "larkspur.db").chmod(0o444)
    (shared / "secret.db").touch()
    for folder in (tmp_path, *tmp_path.parents):
        if folder == Path(tempfile.gettempdir()):
            break
        folder.chmod(0o755)
    shared.chmod(0o777)
    locked.chmod(0o555)
    before = file_contents(locked), file_contents(shared)
    (shared / "secret.db").chmod(0o000)

    paths = locked / "larkspur.db", locked / "new.db", shared / "larkspur.db", shared / "secret.db"
    command = (sys.executable, "-c", READ_ONLY, *paths)
    found = await run_process(command)

    assert found.splitlines() == [
        f"The folder {locked} of the database is not writable.",
        f"The folder {locked} of the database is not writable.",
        f"The database {paths[2]} is not writable. Check its permissions.",
        f"The database {paths[3]} cannot be opened: permission denied.",
    ]
    locked.chmod(0o755)
    (shared / "secret.db").chmod(0o600)  # another user than root could not compare it
    assert (file_contents(locked), file_contents(shared)) == before


async def run_process(command: Sequence[str | Path]) -> str:
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode()


async def test_state_of_a_usable_file(path: Path) -> None:
    assert check_file(path) == FileState(0, is_wal=False), "it does not exist"
    await create_database(path)
    assert check_file(path) == FileState(NEWEST, is_wal=True)
    execute(path, "pragma journal_mode = delete")
    assert check_file(path) == FileState(NEWEST, is_wal=False)
