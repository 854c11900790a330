"""Vacuum, backup and sizes of a SQLite file. Calls block."""

import os
import secrets
import shutil
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO

from internal.agent.domain.errors import Conflict, StoreCorrupt, StoreUnavailable
from internal.agent.domain.text import format_size
from internal.storage.maintenance.interface import DatabaseSizes
from internal.storage.sqlite import errors
from internal.storage.sqlite.connection import connect, connect_read_only
from internal.storage.sqlite.file_check import check_file

_PRIVATE_FILE = 0o600


def check_exists(path: Path) -> None:
    """Check that there is a usable database file.

    Raises:
        StoreCorrupt: it is damaged, not a database of Larkspur, or has a newer schema.
        StoreUnavailable: there is none, or it cannot be used.
    """
    if check_file(path).version == 0:
        raise StoreUnavailable(f"There is no database {path} yet; the first start creates it.")


def read_sizes(path: Path) -> DatabaseSizes:
    """Return the sizes of a file without changing it."""
    wal_size = _wal_size(path)
    try:
        with closing(connect_read_only(path, has_wal=bool(wal_size))) as connection:
            ((page,),) = connection.execute("pragma page_size").fetchall()
            ((free,),) = connection.execute("pragma freelist_count").fetchall()
            tables = _table_sizes(connection)
    except sqlite3.Error as error:
        raise errors.unavailable(error, path) from error
    return DatabaseSizes(path.stat().st_size, free * page, wal_size, tables)


def _table_sizes(connection: sqlite3.Connection) -> dict[str, int]:
    try:
        rows = connection.execute(
            "select master.tbl_name, sum(pages.pgsize) from dbstat as pages"
            " join sqlite_master as master on master.name = pages.name"
            " where pages.aggregate = true group by master.tbl_name"
        ).fetchall()
    except sqlite3.OperationalError:  # this SQLite was built without dbstat
        return {}
    return dict(rows)


def vacuum(path: Path) -> int:
    """Give the unused space of a file back and return the number of bytes.

    Other writers wait until it is done.

    Raises:
        StoreUnavailable: the disk has too little space, or another process writes.
    """
    check_exists(path)
    before = path.stat().st_size + _wal_size(path)
    free = shutil.disk_usage(path.parent).free
    if free < (needed := 2 * before):
        raise StoreUnavailable(
            f"Vacuum needs up to {format_size(needed)} of free space beside {path}, and there are"
            f" {format_size(free)}. Nothing was changed. Free some space, or remove old data first."
        )
    with _opened(path) as connection:
        connection.execute("vacuum")
        connection.execute("pragma wal_checkpoint(truncate)")
    return max(before - path.stat().st_size - _wal_size(path), 0)


def checkpoint(path: Path) -> None:
    """Move the commits of the log into the file, as far as no reader needs the log.

    Raises:
        StoreUnavailable: the file cannot be written.
    """
    with _opened(path) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")


def back_up(path: Path, target: Path) -> int:
    """Copy a database while it is used, and return the bytes of the copy.

    The copy has mode 600, is checked, and is on disk under its name when it is complete.

    Raises:
        Conflict: the target exists.
        StoreCorrupt: the copy is damaged, because the database is.
        StoreUnavailable: the database cannot be read or the copy not written.
    """
    with new_file(target) as (_, draft):
        with _opened(path) as source, closing(_plain(draft)) as copy:
            copy.execute("pragma synchronous = off")  # synced as a whole below
            try:
                source.backup(copy)
            except sqlite3.Error as error:
                failed = path if errors.is_damage(error) else target
                raise errors.unavailable(error, failed) from error
        with closing(_plain(draft)) as copy:
            ((finding,),) = copy.execute("pragma integrity_check(1)").fetchall()
        if finding != "ok":
            raise StoreCorrupt(
                f"The database {path} is damaged ({' '.join(str(finding).split())}): no backup was"
                " made. Restore it from an earlier backup."
            )
    return target.stat().st_size


@contextmanager
def new_file(target: Path) -> Generator[tuple[IO[bytes], Path]]:
    """Create a file with mode 600 that gets its name, on disk, when the block ends without error.

    Yields the file and its temporary path.

    Raises:
        Conflict: the target exists.
        StoreUnavailable: it cannot be written.
    """
    target = target.absolute()
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    if os.path.lexists(target):
        raise Conflict(f"{target} exists and was not changed. Choose another name.")
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(draft, flags, _PRIVATE_FILE), "r+b") as file:
                yield file, draft
                file.flush()
                os.fsync(file.fileno())
            draft.rename(target)
        finally:
            for suffix in ("", "-wal", "-shm", "-journal"):
                Path(f"{draft}{suffix}").unlink(missing_ok=True)
        _sync_folder(target.parent)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise StoreUnavailable(f"{target} cannot be written: {reason}.") from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _wal_size(path: Path) -> int:
    with suppress(FileNotFoundError):
        return path.with_name(f"{path.name}-wal").stat().st_size
    return 0


def _plain(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


@contextmanager
def _opened(path: Path) -> Generator[sqlite3.Connection]:
    check_exists(path)
    try:
        with closing(connect(path, writes=True)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise errors.unavailable(error, path) from error
