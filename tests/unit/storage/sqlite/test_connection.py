"""The database file: refused with a sentence and left as it was, or made, sound and private."""

import asyncio
import os
import shutil
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from internal.agent.domain.errors import StoreCorrupt, StoreUnavailable
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from internal.storage.migrations import migrations
from internal.storage.sqlite.connection import APPLICATION_ID
from internal.storage.sqlite.file_systems import file_system, network_file_system
from tests.support.store_facts import a_run, a_session, running, say

STORES = Stores()
NEWEST = len(migrations("sqlite"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "larkspur.db"


async def make(path: Path, sessions: int = 0) -> None:
    async with open_database(path) as database:
        for number in range(sessions):
            session = a_session(f"session-{number}", title="x" * 500)
            await database.write(lambda session=session: STORES.sessions.add(session))  # type: ignore[misc] # mypy knows no lambda with a default


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def modes(folder: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


def open_to_others(path: Path) -> None:
    path.chmod(0o644)


def execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement).fetchall()


async def refused(path: Path) -> str:
    before = contents(path.parent)
    with pytest.raises(StoreCorrupt) as refusal:
        async with open_database(path):
            pass
    after = contents(path.parent)
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
async def test_a_foreign_file_is_left_alone(
    path: Path, make_foreign: Callable[[Path], None], words: str
) -> None:
    make_foreign(path)

    assert words in await refused(path)


async def test_a_newer_database_is_left_alone(path: Path) -> None:
    await make(path)
    newer = NEWEST + 1
    execute(
        path,
        "insert into schema_migrations select max(number) + 1, '', '' from schema_migrations",
        f"pragma user_version = {newer}",
    )
    assert not path.with_name("larkspur.db-wal").exists()

    assert f"newer Larkspur (schema {newer}, this one knows {NEWEST})" in await refused(path)


async def test_a_newer_database_that_was_not_closed_is_left_alone(path: Path) -> None:
    """Its version stands in the log beside the file, not yet in the file's header."""
    origin = path.with_name("origin")
    origin.mkdir()
    await make(origin / path.name)
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
async def test_a_damaged_database_is_left_alone(path: Path, damage: Callable[[Path], None]) -> None:
    await make(path, sessions=200)
    damage(path)

    sentence = await refused(path)

    assert "is damaged" in sentence
    assert "\n" not in sentence


async def test_damage_beside_a_log_is_left_alone(path: Path) -> None:
    """As after kill -9: the file was overwritten and a log is still beside it."""
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
    assert contents(tmp_path) == {}


async def test_something_else_in_its_place(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(StoreUnavailable, match="it is not a plain file"):
        async with open_database(path):
            pass


async def test_a_folder_in_its_place(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="it is not a plain file"):
        async with open_database(tmp_path):
            pass


@pytest.mark.parametrize("prefix", ["sqlite:///", ""])
async def test_an_address_names_a_file(path: Path, prefix: str) -> None:
    async with open_database(f"{prefix}{path}"):
        assert path.name in contents(path.parent)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://host/larkspur", "comes in a later release"),
        ("postgres://host/larkspur", "comes in a later release"),
        ("mysql://host/larkspur", "names no database"),
        ("sqlite://larkspur.db", "names no database"),
        ("sqlite:///", "names no file"),
        ("", "names no file"),
        ("sqlite:////folder/", "names no file"),
        ("larkspur\0.db", "names no file"),
    ],
)
async def test_addresses_that_name_nothing_here(address: str, words: str) -> None:
    with pytest.raises(StoreCorrupt, match=words):
        async with open_database(address):
            pass


async def test_the_file_is_private_and_ours(path: Path) -> None:
    async with open_database(path) as database:
        await database.write(lambda: STORES.sessions.add(a_session()))
        private = {f"larkspur.db{suffix}": 0o600 for suffix in ("", "-wal", "-shm")}
        assert modes(path.parent) == private
    assert modes(path.parent) == {"larkspur.db": 0o600}, "closed without traces"
    with closing(sqlite3.connect(path)) as connection:
        settings = [
            connection.execute(f"pragma {name}").fetchone()[0]
            for name in ("application_id", "user_version", "journal_mode", "integrity_check")
        ]
        assert settings == [APPLICATION_ID, NEWEST, "wal", "ok"]


async def test_a_file_open_to_others_is_closed_to_them(path: Path) -> None:
    await make(path)
    open_to_others(path)

    async with open_database(path):
        assert modes(path.parent)[path.name] == 0o600


def empty(path: Path) -> None:
    path.touch()


async def test_an_empty_file_becomes_a_database(path: Path) -> None:
    empty(path)
    await make(path, sessions=1)
    assert contents(path.parent)[path.name]


async def test_names_that_look_like_parts_of_a_url(tmp_path: Path) -> None:
    path = tmp_path / "100%41?mode=ro#半角 .db"
    await make(path, sessions=1)
    assert list(contents(tmp_path)) == [path.name]


async def test_the_epoch_of_the_log_stays(path: Path) -> None:
    epochs = set()
    for _ in range(3):
        async with open_database(path) as database:
            epochs.add((await database.read(STORES.events.get_bounds)).epoch)
    assert len(epochs) == 1

    await make(path.with_name("another.db"))
    async with open_database(path.with_name("another.db")) as database:
        assert (await database.read(STORES.events.get_bounds)).epoch not in epochs


async def test_many_open_one_new_file_at_once(path: Path) -> None:
    async def open_and_say(number: int) -> str:
        async with open_database(path) as database:
            run = await running(database, STORES, a_run(f"run-{number}", f"session-{number}"))
            await database.write(lambda: say(STORES, run))
            return (await database.read(STORES.events.get_bounds)).epoch

    async with asyncio.TaskGroup() as tasks:
        opened = [tasks.create_task(open_and_say(number)) for number in range(6)]

    assert len({task.result() for task in opened}) == 1
    async with open_database(path) as database:
        assert (await database.read(STORES.events.get_bounds)).head == 6
        assert len(await database.read(lambda: STORES.events.list_after(0, None, 99))) == 6


async def test_a_file_whose_maker_died_before_the_log_was_on(path: Path) -> None:
    await make(path)
    execute(path, "pragma journal_mode = delete")

    async with open_database(path) as database:
        await database.write(lambda: STORES.sessions.add(a_session()))
        assert path.with_name("larkspur.db-wal").exists()


async def test_who_looks_at_the_file_makes_us_wait_for_the_log(path: Path) -> None:
    await make(path)
    execute(path, "pragma journal_mode = delete")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin")
        other.execute("select * from log").fetchall()
        opening = asyncio.create_task(make(path, sessions=1))
        assert not opening.done()
        other.execute("commit")
    await opening


async def test_a_maker_that_died_in_its_commit_is_rolled_back(path: Path) -> None:
    """A rollback journal lies beside the file: the lock is taken, SQLite rolls back, we go on."""
    origin = path.with_name("origin.db")
    await make(origin)
    execute(origin, "pragma journal_mode = delete")
    with closing(sqlite3.connect(origin, isolation_level=None)) as connection:
        connection.execute("pragma cache_size = 1")  # pages go to the file before the commit
        connection.execute("begin exclusive")
        connection.execute("create table half (made text)")
        for number in range(99):
            connection.execute("insert into half values (?)", (str(number) * 999,))
        shutil.copy(origin, path)
        shutil.copy(f"{origin}-journal", f"{path}-journal")
        connection.execute("rollback")

    await make(path, sessions=1)

    with closing(sqlite3.connect(path)) as connection:
        tables = {row[0] for row in connection.execute("select name from sqlite_master")}
        assert "half" not in tables
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]


MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /home rw - nfs4 server:/home rw
31 30 0:27 / /home/ana/my\\040disk rw shared:9 master:2 - ext4 /dev/sdb rw
32 22 0:28 / /mnt/c rw - 9p C:\\134 rw
33 22 0:29 / /cloud rw - fuse.sshfs host:/ rw
34 22 0:30 / /twice rw - nfs server:/ rw
35 34 0:31 / /twice rw - tmpfs none rw
"""


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("/", "ext4"),
        ("/homeless", "ext4"),
        ("/home", "nfs4"),
        ("/home/ana", "nfs4"),
        ("/home/ana/my disk/larkspur", "ext4"),
        ("/mnt/c/Users", "9p"),
        ("/cloud/x", "fuse.sshfs"),
        ("/twice/x", "tmpfs"),
    ],
)
def test_the_deepest_and_newest_mount_counts(folder: str, name: str) -> None:
    assert file_system(MOUNTS, Path(folder)) == name


def test_folders_of_this_machine_are_local(tmp_path: Path) -> None:
    assert network_file_system(tmp_path) is None


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

if os.geteuid() == 0:  # root may write anywhere: be somebody else
    os.setgid(65534)
    os.setuid(65534)
for path in sys.argv[1:]:
    asyncio.run(look(path))
"""


async def test_what_may_not_be_written_is_said(tmp_path: Path) -> None:
    locked, shared = tmp_path / "locked", tmp_path / "shared"
    for folder in (locked, shared):
        folder.mkdir()
        await make(folder / "larkspur.db")
    (shared / "larkspur.db").chmod(0o444)
    (shared / "secret.db").touch(mode=0o000)
    for folder in (tmp_path, *tmp_path.parents):
        if folder == Path(tempfile.gettempdir()):
            break
        folder.chmod(0o755)
    shared.chmod(0o777)
    locked.chmod(0o555)
    before = contents(locked), contents(shared)

    paths = locked / "larkspur.db", locked / "new.db", shared / "larkspur.db", shared / "secret.db"
    command = (sys.executable, "-c", READ_ONLY, *paths)
    found = await run_process(command)

    assert found.splitlines() == [
        f"The folder {locked} of the database cannot be written.",
        f"The folder {locked} of the database cannot be written.",
        f"The database {paths[2]} cannot be written. Check its permissions.",
        f"The database {paths[3]} cannot be opened: permission denied.",
    ]
    locked.chmod(0o755)
    assert (contents(locked), contents(shared)) == before


async def run_process(command: Sequence[str | Path]) -> str:
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode()
