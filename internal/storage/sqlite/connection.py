"""Connections to a database file and their settings."""

import sqlite3
from pathlib import Path

LOCK_TIMEOUT_SECONDS = 15.0
"""Time to wait for another process that holds the file's lock."""

_READER_SETTINGS = ("query_only = on",)
_WRITER_SETTINGS = (
    "synchronous = full",
    "cache_size = -4096",  # KiB
    "wal_autocheckpoint = 4096",  # pages, 16 MiB: a copy of the folder rarely meets a checkpoint
    "journal_size_limit = 33554432",  # bytes to which a long log is truncated
)


def connect(path: Path, *, writes: bool) -> sqlite3.Connection:
    """Open an existing database file. Every commit is on disk before it returns.

    Raises:
        sqlite3.Error: see `errors.unavailable`.
    """
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",  # never creates the file
        uri=True,
        timeout=LOCK_TIMEOUT_SECONDS,
        isolation_level=None,
        cached_statements=256,
        check_same_thread=False,
    )
    try:
        for setting in _WRITER_SETTINGS if writes else _READER_SETTINGS:
            connection.execute(f"pragma {setting}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def connect_read_only(path: Path, *, has_wal: bool) -> sqlite3.Connection:
    """Open an existing database file without changing it or any file next to it.

    Without a write-ahead log the file is read as immutable: without locks.

    Raises:
        sqlite3.Error: see `errors.unavailable`.
    """
    mode = "mode=ro" if has_wal else "mode=ro&immutable=1"
    uri = f"{path.absolute().as_uri()}?{mode}"
    return sqlite3.connect(uri, uri=True, timeout=LOCK_TIMEOUT_SECONDS, isolation_level=None)
