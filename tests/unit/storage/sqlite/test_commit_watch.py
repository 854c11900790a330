"""Checks for commits of other connections, and their detection. On Linux."""

import select
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from internal.storage.sqlite.commit_watch import PAUSE_SECONDS, REPORT_SECONDS, CommitWatch

MAX_PAUSE_SECONDS = 1.0


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("create table if not exists items (text)")
    return connection


@pytest.fixture
def here(tmp_path: Path) -> Generator[sqlite3.Connection]:
    with closing(connect(tmp_path / "items.db")) as connection:
        yield connection


@pytest.fixture
def there(here: sqlite3.Connection, tmp_path: Path) -> Generator[sqlite3.Connection]:
    del here  # it creates the table
    with closing(connect(tmp_path / "items.db")) as connection:
        yield connection


@pytest.fixture
def watch(
    here: sqlite3.Connection, there: sqlite3.Connection, tmp_path: Path
) -> Generator[CommitWatch]:
    del there  # it changes the file before it is watched
    with closing(CommitWatch(here, tmp_path / "items.db")) as watch:
        yield watch


def is_told(watch: CommitWatch) -> bool:
    """Return whether the kernel has reported a change that was not read."""
    assert watch.descriptor is not None
    return bool(select.select([watch.descriptor], [], [], 0)[0])


def look_until_quiet(watch: CommitWatch) -> int:
    """Look at growing intervals, without the waits; returns how often that was."""
    for count in range(1, 20):
        assert not watch.look()
        if watch.seconds_to_look() > 0.9 * MAX_PAUSE_SECONDS:
            return count
    raise AssertionError("the intervals do not grow")


def test_foreign_commits_are_found_once(watch: CommitWatch, there: sqlite3.Connection) -> None:
    assert not watch.look()
    there.execute("insert into items values ('a')")
    there.execute("insert into items values ('b')")
    assert watch.look()
    assert not watch.look()


def test_own_commits_are_not_reported(watch: CommitWatch, here: sqlite3.Connection) -> None:
    here.execute("insert into items values ('a')")
    watch.skip_own_commit()
    assert not watch.look()


def test_a_quiet_file_is_looked_at_once_a_second(
    watch: CommitWatch, there: sqlite3.Connection
) -> None:
    look_until_quiet(watch)
    assert not is_told(watch)

    there.execute("insert into items values ('a')")

    assert is_told(watch)
    watch.read_changes()
    assert watch.seconds_to_look() <= 0
    assert watch.look()


def test_a_commit_is_found_that_ends_after_it_was_reported(
    watch: CommitWatch, there: sqlite3.Connection
) -> None:
    """Rows that do not fit in the cache are written long before the commit."""
    look_until_quiet(watch)
    there.execute("pragma cache_size = 2")
    there.execute("begin")
    for number in range(200):
        there.execute("insert into items values (?)", (f"{number:04000}",))
    assert is_told(watch)
    watch.read_changes()
    assert not watch.look()
    assert watch.seconds_to_look() < PAUSE_SECONDS / 10
    assert look_until_quiet(watch) > 5

    there.execute("commit")

    assert watch.look()


def test_busy_processes_are_reported_at_intervals(
    watch: CommitWatch, there: sqlite3.Connection
) -> None:
    there.execute("insert into items values ('a')")
    watch.read_changes()
    before = time.monotonic()
    assert watch.look()
    after = time.monotonic()
    there.execute("insert into items values ('b')")
    watch.read_changes()
    wait = watch.seconds_to_look()
    assert wait <= after + REPORT_SECONDS - before
    assert time.monotonic() + wait >= before + REPORT_SECONDS
    assert not is_told(watch)
    assert watch.look()


def test_the_own_commit_does_not_hide_a_foreign_one(
    watch: CommitWatch, here: sqlite3.Connection, there: sqlite3.Connection
) -> None:
    look_until_quiet(watch)
    here.execute("insert into items values ('a')")
    there.execute("insert into items values ('b')")

    watch.skip_own_commit()

    assert not is_told(watch)
    assert watch.seconds_to_look() <= PAUSE_SECONDS
    assert watch.look()


def test_without_reports_it_is_looked_each_interval(
    here: sqlite3.Connection, tmp_path: Path
) -> None:
    with closing(CommitWatch(here, tmp_path / "elsewhere.db")) as watch:
        assert watch.descriptor is None
        watch.skip_own_commit()
        for _ in range(5):
            assert not watch.look()
            assert watch.seconds_to_look() <= PAUSE_SECONDS
