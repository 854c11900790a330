"""The database file: looked at before it is touched, made, brought up to date and opened."""

import os
import sqlite3
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from internal.agent.domain.errors import StoreCorrupt, StoreUnavailable
from internal.storage.migrations import migrations
from internal.storage.sqlite import errors
from internal.storage.sqlite.file_systems import network_file_system

APPLICATION_ID = 0x4C61726B
"""`Lark` in ASCII, at byte 68 of every file that is ours."""

LOCK_SECONDS = 15.0
"""How long another process may hold the file before we say that it is locked."""

_MAGIC = b"SQLite format 3\0"
_HEADER = 100  # bytes; https://sqlite.org/fileformat2.html#the_database_header
_WRITE_VERSION, _WAL = 18, 2  # the byte that says whether the file has a write-ahead log
_PRIVATE = 0o600
_CHECKED = 32 * 2**20  # a file up to this size is read through at the start, 10 ms a MiB at most
_READING = ("query_only = on",)
_WRITING = (
    "synchronous = full",
    "cache_size = -4096",  # KiB
    "wal_autocheckpoint = 4096",  # pages, 16 MiB: a copy of the folder rarely meets a checkpoint
    "journal_size_limit = 33554432",  # bytes that a long log shrinks to
)


class _Look(NamedTuple):
    """What changes when another process works on the file."""

    size: int
    modified: int
    wal: bool


def prepare(path: Path) -> None:
    """Look at the file, make it when there is none, and bring its tables up to date.

    Raises:
        StoreRefused: it is damaged, not ours or newer than this program; nothing was touched.
        StoreUnavailable: it cannot be opened, made or changed where it is.
    """
    _check_folder(path)
    try:
        if not _is_current(path):
            _migrate(path)
        if stat.S_IMODE(path.stat().st_mode) != _PRIVATE:
            path.chmod(_PRIVATE)
    except sqlite3.Error as error:
        raise errors.unavailable(error, path) from error
    except OSError as error:
        raise _unusable(path, error) from error


def connect(path: Path, *, writes: bool) -> sqlite3.Connection:
    """Open the prepared file: every commit is on disk before it returns.

    Raises:
        sqlite3.Error: see `faults`.
    """
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",  # never made by accident
        uri=True,
        timeout=LOCK_SECONDS,
        isolation_level=None,
        cached_statements=256,
        check_same_thread=False,
    )
    try:
        for setting in _WRITING if writes else _READING:
            connection.execute(f"pragma {setting}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _check_folder(path: Path) -> None:
    folder = path.parent
    if not folder.is_dir():
        raise StoreUnavailable(f"The folder {folder} of the database does not exist.")
    if path.exists() and not path.is_file():
        raise StoreUnavailable(f"The database {path} cannot be opened: it is not a plain file.")
    if name := network_file_system(folder):
        raise StoreUnavailable(
            f"The folder {folder} is on a network file system ({name}), which does not keep the "
            "locks of a database. Choose a folder on a local disk."
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StoreUnavailable(f"The folder {folder} of the database cannot be written.")


def _is_current(path: Path) -> bool:
    """Say whether the file is there and has the newest schema. Leaves every byte as it is."""
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER)
    except FileNotFoundError:
        return False
    if not header:
        return False  # somebody, or a process that died, only made the file
    if not os.access(path, os.R_OK | os.W_OK):
        raise StoreUnavailable(f"The database {path} cannot be written. Check its permissions.")
    _check_header(path, header)
    if _beside(path, "-journal").exists():
        return False  # it is being made, or whoever made it died: that takes the lock to see
    return _check_tables(path) == len(migrations("sqlite")) and header[_WRITE_VERSION] == _WAL


def _check_header(path: Path, header: bytes) -> None:
    if len(header) < _HEADER or not header.startswith(_MAGIC):
        raise StoreCorrupt(
            f"{path} is damaged or not a database of Larkspur; it was left as it is. "
            "Restore it from a copy, or move it away to start with a new one."
        )
    version, application = struct.unpack_from(">I4xI", header, 60)
    if application != APPLICATION_ID:
        raise StoreCorrupt(f"{path} is the database of another program; it was left as it is.")
    _check_version(path, version)


def _check_version(path: Path, version: int) -> None:
    newest = len(migrations("sqlite"))
    if version > newest:
        raise StoreCorrupt(
            f"{path} was written by a newer Larkspur (schema {version}, this one knows {newest}); "
            "it was left as it is. Upgrade Larkspur."
        )


def _check_tables(path: Path) -> int:
    while True:
        before = _seen(path)
        try:
            with _reading(path, before) as connection:
                version = _version(connection)
                _check_version(path, version)
                if before.size <= _CHECKED:
                    _check_pages(path, connection)
                return version
        except sqlite3.DatabaseError as error:
            # without locks a look beside a working process may see two halves: look again
            if not before.wal and _seen(path) != before:
                continue
            if errors.is_damage(error) or errors.code_of(error) == sqlite3.SQLITE_ERROR:
                raise _damaged(path, str(error)) from error
            raise


def _check_pages(path: Path, connection: sqlite3.Connection) -> None:
    ((found,),) = connection.execute("pragma quick_check(1)").fetchall()
    if found != "ok":
        raise _damaged(path, found)


def _damaged(path: Path, finding: str) -> StoreCorrupt:
    finding = " ".join(finding.split()).strip("* ")
    return StoreCorrupt(
        f"The database {path} is damaged ({finding}); it was left as it is. "
        "Restore it from a copy, or move it away to start with a new one."
    )


def _seen(path: Path) -> _Look:
    found = path.stat()
    return _Look(found.st_size, found.st_mtime_ns, _beside(path, "-wal").exists())


@contextmanager
def _reading(path: Path, look: _Look) -> Iterator[sqlite3.Connection]:
    """Open the file to look at it. At rest (no -wal) neither locks nor files are made for it."""
    mode = "mode=ro" if look.wal else "mode=ro&immutable=1"
    uri = f"{path.absolute().as_uri()}?{mode}"
    with closing(
        sqlite3.connect(uri, uri=True, timeout=LOCK_SECONDS, isolation_level=None)
    ) as connection:
        yield connection


def _version(connection: sqlite3.Connection) -> int:
    ((version,),) = connection.execute("select max(number) from schema_migrations").fetchall()
    return int(version)


def _migrate(path: Path) -> None:
    """Run what is missing, each migration in a transaction that no other process can enter."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE))
    with closing(connect(path, writes=True)) as connection:
        while _step(path, connection):
            pass
        _use_wal(connection)


def _step(path: Path, connection: sqlite3.Connection) -> bool:
    """Run the next migration; False when there is none left."""
    connection.execute("begin exclusive")
    try:
        ((tables,),) = connection.execute("select count(*) from sqlite_master").fetchall()
        version = _version(connection) if tables else 0
        _check_version(path, version)
        pending = migrations("sqlite")[version:]
        if pending:
            number, name, statements = pending[0]
            for statement in statements:
                connection.execute(statement)
            connection.execute(
                "insert into schema_migrations (number, name, applied) values (?, ?, ?)",
                (number, name, datetime.now(UTC).isoformat(timespec="seconds")),
            )
            connection.execute(f"pragma application_id = {APPLICATION_ID}")
            connection.execute(f"pragma user_version = {number}")
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise
    return bool(pending)


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to a write-ahead log. SQLite does not wait for others here, so we do."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            connection.execute("pragma journal_mode = wal")
        except sqlite3.OperationalError as error:
            if time.monotonic() > deadline or errors.is_damage(error):
                raise
            time.sleep(0.01)
        else:
            return


def _unusable(path: Path, error: OSError) -> StoreUnavailable:
    reason = (error.strerror or type(error).__name__).lower()
    return StoreUnavailable(f"The database {path} cannot be opened: {reason}.")


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
