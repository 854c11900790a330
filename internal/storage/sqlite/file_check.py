"""Checks of a database file before it is opened for writing. They change nothing."""

import os
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from internal.agent.domain.errors import StoreCorrupt, StoreUnavailable
from internal.agent.store.database import Row, SqlValue
from internal.storage import queries
from internal.storage.migrations import newest_version
from internal.storage.sqlite import errors
from internal.storage.sqlite.connection import connect_read_only
from internal.storage.sqlite.mounts import find_network_file_system

APPLICATION_ID = 0x4C6B7370
"""`Lksp` in ASCII, at byte 68 of every database file of Larkspur."""

_UNRELEASED_APPLICATION_ID = 0x4C61726B  # schemas before the first release, which are not migrated
_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100  # https://sqlite.org/fileformat2.html#the_database_header
_WRITE_VERSION_OFFSET, _WAL_VERSION = 18, 2
_MAX_CHECKED_BYTES = 32 * 2**20  # files up to this size are checked in full, 10 ms per MiB at most


class FileState(NamedTuple):
    """The schema version of a file, 0 when it has none yet, and whether it is in WAL mode."""

    version: int
    is_wal: bool


class _Fingerprint(NamedTuple):
    """Values that change when another process writes to the file."""

    size: int
    modified_ns: int
    has_wal: bool


def check_file(path: Path) -> FileState:
    """Check that a database file can be used by this program.

    A missing or empty file, and one that is being created, has version 0.

    Raises:
        StoreCorrupt: it is damaged, not a database of Larkspur, or has an unknown schema.
        StoreUnavailable: the file or its folder cannot be read or written.
    """
    _check_folder(path)
    try:
        return _check_existing(path)
    except FileNotFoundError:
        return FileState(0, is_wal=False)
    except sqlite3.Error as error:
        raise errors.unavailable(error, path) from error
    except OSError as error:
        raise errors.cannot_open(error, path) from error


def read_file(path: Path, query: str, *values: SqlValue) -> list[Row]:
    """Return the rows of a named statement without changing the file.

    Raises:
        StoreUnavailable: the file cannot be read, or has another schema.
    """
    has_wal = path.with_name(f"{path.name}-wal").exists()
    named = {str(number): value for number, value in enumerate(values, 1)}
    try:
        with closing(connect_read_only(path, has_wal=has_wal)) as connection:
            return connection.execute(queries.load()[query], named).fetchall()
    except sqlite3.Error as error:
        raise errors.unavailable(error, path) from error


def check_version(path: Path, version: int) -> None:
    """Check that a schema version is known.

    Raises:
        StoreCorrupt: it was written by a newer program.
    """
    newest = newest_version("sqlite")
    if version > newest:
        raise StoreCorrupt(
            f"The database {path} was written by a newer version of Larkspur (schema {version}, "
            f"this version supports {newest}) and was not changed. Upgrade Larkspur."
        )


def read_version(connection: sqlite3.Connection) -> int:
    """Return the schema version that the migrations table records."""
    ((version,),) = connection.execute("select max(number) from schema_migrations").fetchall()
    return int(version)


def _check_folder(path: Path) -> None:
    folder = path.parent
    if not folder.is_dir():
        raise StoreUnavailable(f"The folder {folder} of the database does not exist.")
    if path.exists() and not path.is_file():
        raise StoreUnavailable(f"The database {path} cannot be opened: it is not a regular file.")
    if name := find_network_file_system(folder):
        raise StoreUnavailable(
            f"The folder {folder} is on a network file system ({name}), which does not support "
            "the locks of a database. Choose a folder on a local disk."
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StoreUnavailable(f"The folder {folder} of the database is not writable.")


def _check_existing(path: Path) -> FileState:
    with path.open("rb") as file:
        links = os.fstat(file.fileno()).st_nlink
        header = file.read(_HEADER_BYTES)
    if links > 1:  # https://sqlite.org/howtocorrupt.html#_multiple_links_to_the_same_file
        raise StoreUnavailable(
            f"The database {path} has {links} names (hard links). Processes that use different"
            " names do not see each other's writes and damage it: keep one name only."
        )
    if not header:
        return FileState(0, is_wal=False)
    if not os.access(path, os.R_OK | os.W_OK):
        raise StoreUnavailable(f"The database {path} is not writable. Check its permissions.")
    _check_header(path, header)
    if path.with_name(f"{path.name}-journal").exists():
        return FileState(
            0, is_wal=False
        )  # its creation may have failed: that takes the lock to see
    return FileState(_check_tables(path), header[_WRITE_VERSION_OFFSET] == _WAL_VERSION)


def _check_header(path: Path, header: bytes) -> None:
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise StoreCorrupt(
            f"The file {path} is damaged or not a database of Larkspur and was not changed. "
            "Restore it from a backup, or move it away to start with a new one."
        )
    version, application_id = struct.unpack_from(">I4xI", header, 60)
    if application_id == _UNRELEASED_APPLICATION_ID:
        raise StoreCorrupt(
            f"The database {path} was written by an earlier, unreleased version of Larkspur and "
            "cannot be used: move it away to start with a new one."
        )
    if application_id != APPLICATION_ID:
        raise StoreCorrupt(f"The database {path} belongs to another program and was not changed.")
    check_version(path, version)


def _check_tables(path: Path) -> int:
    while True:
        before = _fingerprint(path)
        try:
            with closing(connect_read_only(path, has_wal=before.has_wal)) as connection:
                version = read_version(connection)
                check_version(path, version)
                if before.size <= _MAX_CHECKED_BYTES:
                    _check_pages(path, connection)
                return version
        except sqlite3.DatabaseError as error:
            # read without locks while another process wrote: the result means nothing
            if not before.has_wal and _fingerprint(path) != before:
                continue
            if errors.is_damage(error) or errors.code_of(error) == sqlite3.SQLITE_ERROR:
                raise _damaged(path, str(error)) from error
            raise


def _check_pages(path: Path, connection: sqlite3.Connection) -> None:
    ((result,),) = connection.execute("pragma quick_check(1)").fetchall()
    if result != "ok":
        raise _damaged(path, result)


def _damaged(path: Path, finding: str) -> StoreCorrupt:
    finding = " ".join(finding.split()).strip("* ")
    return StoreCorrupt(
        f"The database {path} is damaged ({finding}) and was not changed. "
        "Restore it from a backup, or move it away to start with a new one."
    )


def _fingerprint(path: Path) -> _Fingerprint:
    status = path.stat()
    has_wal = path.with_name(f"{path.name}-wal").exists()
    return _Fingerprint(status.st_size, status.st_mtime_ns, has_wal)
