"""Translation of SQLite's exceptions into errors of Larkspur."""

import sqlite3
from pathlib import Path

from internal.agent.domain.errors import Conflict, StoreError, StoreUnavailable

_PRIMARY = 0xFF  # the low byte of an extended code (https://sqlite.org/rescode.html)
_DAMAGE_CODES = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_DUPLICATE_CODES = {sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY}
# After a failed sync the kernel may drop the pages and report success the next time.
_SYNC_CODES = {
    sqlite3.SQLITE_IOERR_FSYNC,
    sqlite3.SQLITE_IOERR_DIR_FSYNC,
    sqlite3.SQLITE_IOERR_CORRUPTFS,
}

# The file of the shared memory cannot grow.
_FULL_CODES = {sqlite3.SQLITE_IOERR_SHMSIZE}

_READ_ONLY = "The database {path} is read-only: nothing was written. Check its permissions."
_LOCKED = "The database {path} is locked by another process: nothing was written. Try again."
_DAMAGED = "The database {path} is damaged ({error}). Restore it from a backup."
_DISK = "The disk of the database {path} reports an error ({error}, {name}): nothing was written."
_FULL = "The disk of the database {path} is full: nothing was written. Free some space."
_SENTENCES = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_CANTOPEN: "The database {path} or its -wal file cannot be opened.",
    sqlite3.SQLITE_IOERR: _DISK,
    sqlite3.SQLITE_NOMEM: _DISK,
}


def code_of(error: sqlite3.Error) -> int:
    """Return the extended result code, 0 when Python's sqlite3 module raised the error itself."""
    return getattr(error, "sqlite_errorcode", 0)


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether the file is not a valid database, or no longer."""
    return code_of(error) & _PRIMARY in _DAMAGE_CODES


def is_lock(error: sqlite3.Error) -> bool:
    """Return whether another process holds the lock: the call may be retried."""
    return _SENTENCES.get(code_of(error) & _PRIMARY) == _LOCKED


def is_permanent(error: sqlite3.Error) -> bool:
    """Return whether nothing may be written until the database is opened again."""
    return is_damage(error) or code_of(error) in _SYNC_CODES


def is_environment(error: sqlite3.Error) -> bool:
    """Return whether disk, file or lock failed, and the whole transaction with it."""
    return _sentence(error, Path()) is not None


def unavailable(error: sqlite3.Error, path: Path) -> StoreUnavailable:
    """Return the error for a failure of disk, file or lock."""
    return StoreUnavailable(_sentence(error, path) or f"The database {path} failed: {error}.")


def cannot_open(error: OSError, path: Path) -> StoreUnavailable:
    """Return the error for a file that the operating system does not open."""
    reason = (error.strerror or type(error).__name__).lower()
    return StoreUnavailable(f"The database {path} cannot be opened: {reason}.")


def statement_error(error: sqlite3.Error, query: str) -> StoreError | Conflict:
    """Return the error for a failed statement: `Conflict` for a duplicate key."""
    if code_of(error) in _DUPLICATE_CODES:
        return Conflict(f"It exists already ({error}).", reason_code="exists_already")
    return StoreError(f"The statement {query} failed: {error}.")


def _sentence(error: sqlite3.Error, path: Path) -> str | None:
    code = code_of(error)
    sentence = _FULL if code in _FULL_CODES else _SENTENCES.get(code & _PRIMARY)
    name = getattr(error, "sqlite_errorname", "")
    return None if sentence is None else sentence.format(path=path, error=error, name=name)
