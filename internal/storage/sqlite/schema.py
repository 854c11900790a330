"""Creation and migration of the database file."""

import os
import sqlite3
import stat
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from internal.storage.migrations import Migration, migrations, newest_version
from internal.storage.sqlite import errors
from internal.storage.sqlite.connection import LOCK_TIMEOUT_SECONDS, connect
from internal.storage.sqlite.file_check import (
    APPLICATION_ID,
    FileState,
    check_file,
    check_version,
    read_version,
)
from internal.storage.sqlite.image_references import add_migration_functions

_FILE_MODE = 0o600


def prepare_file(path: Path, on_applied: Callable[[Migration], None] | None = None) -> None:
    """Check the file, create it when it is missing, and migrate its schema.

    `on_applied` receives each migration after it was applied.

    Raises:
        StoreCorrupt: it is damaged, not a database of Larkspur, or has an unknown schema; nothing
            was changed.
        StoreUnavailable: it cannot be opened, created or changed.
    """
    state = check_file(path)
    try:
        if state != FileState(newest_version("sqlite"), is_wal=True):
            _migrate(path, on_applied)
        if stat.S_IMODE(path.stat().st_mode) != _FILE_MODE:
            path.chmod(_FILE_MODE)
    except sqlite3.Error as error:
        raise errors.unavailable(error, path) from error
    except OSError as error:
        raise errors.cannot_open(error, path) from error


def list_pending(path: Path) -> list[Migration]:
    """Return the migrations that are not applied to a file yet. Changes nothing.

    Raises:
        StoreCorrupt, StoreUnavailable: as `prepare_file`.
    """
    version = check_file(path).version
    return [step for step in migrations("sqlite") if step.number > version]


def _migrate(path: Path, on_applied: Callable[[Migration], None] | None) -> None:
    """Apply the pending migrations in one exclusive transaction: all of them or none."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE))
    with closing(connect(path, writes=True)) as connection:
        add_migration_functions(connection)
        for applied in _apply_pending(path, connection):
            if on_applied is not None:
                on_applied(applied)
        enable_wal(connection)


def _apply_pending(path: Path, connection: sqlite3.Connection) -> list[Migration]:
    """Apply the pending migrations and return them."""
    connection.execute("begin exclusive")
    try:
        ((tables,),) = connection.execute("select count(*) from sqlite_master").fetchall()
        version = read_version(connection) if tables else 0
        check_version(path, version)
        pending = [step for step in migrations("sqlite") if step.number > version]
        for number, name, statements in pending:
            for statement in statements:
                connection.execute(statement)
            connection.execute(
                "insert into schema_migrations (number, name, applied) values (?, ?, ?)",
                (number, name, datetime.now(UTC).isoformat(timespec="seconds")),
            )
        if pending:
            connection.execute(f"pragma application_id = {APPLICATION_ID}")
            connection.execute(f"pragma user_version = {pending[-1].number}")
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise
    return pending


def enable_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to WAL mode. SQLite itself does not wait for other processes here."""
    deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
    while True:
        try:
            connection.execute("pragma journal_mode = wal")
        except sqlite3.OperationalError as error:
            if time.monotonic() > deadline or errors.is_damage(error):
                raise
            time.sleep(0.01)
        else:
            return
