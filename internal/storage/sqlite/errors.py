"""What SQLite reports, in words: the one place where its exceptions become ours."""

import sqlite3
from pathlib import Path

from internal.agent.domain.errors import Conflict, StoreError, StoreUnavailable

_PRIMARY = 0xFF  # the low byte of an extended code (https://sqlite.org/rescode.html)
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_TAKEN = {sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY}
# Once a sync failed the kernel may have dropped what it could not write, and say yes next time.
_UNSYNCED = {
    sqlite3.SQLITE_IOERR_FSYNC,
    sqlite3.SQLITE_IOERR_DIR_FSYNC,
    sqlite3.SQLITE_IOERR_CORRUPTFS,
}

_READ_ONLY = "The database {path} is read-only: nothing was written. Check its permissions."
_LOCKED = "The database {path} is locked by another process: nothing was written. Try again."
_DAMAGE = "The database {path} is damaged ({error}). Restore it from a copy."
_DISK = "The disk of the database {path} reports an error ({error}, {name}): nothing was written."
_SENTENCES = {
    sqlite3.SQLITE_FULL: "The disk of the database {path} is full: nothing was written.",
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_CORRUPT: _DAMAGE,
    sqlite3.SQLITE_NOTADB: _DAMAGE,
    sqlite3.SQLITE_CANTOPEN: "The database {path} or its -wal file cannot be opened.",
    sqlite3.SQLITE_IOERR: _DISK,
    sqlite3.SQLITE_NOMEM: _DISK,
}


def code_of(error: sqlite3.Error) -> int:
    """Return the extended result code, 0 when the module itself raised the error."""
    return getattr(error, "sqlite_errorcode", 0)


def is_damage(error: sqlite3.Error) -> bool:
    """Say whether the file is not, or no longer, a sound database."""
    return code_of(error) & _PRIMARY in _DAMAGED


def is_lock(error: sqlite3.Error) -> bool:
    """Say whether another process holds the file: worth another try."""
    return _SENTENCES.get(code_of(error) & _PRIMARY) == _LOCKED


def is_lasting(error: sqlite3.Error) -> bool:
    """Say whether nothing may be written any more until the database is opened anew."""
    return is_damage(error) or code_of(error) in _UNSYNCED


def is_environment(error: sqlite3.Error) -> bool:
    """Say whether disk, file or lock failed: then the whole transaction failed with it."""
    return _sentence(error, Path()) is not None


def unavailable(error: sqlite3.Error, path: Path) -> StoreUnavailable:
    """Return the error of disk, file or lock as a sentence about the database at `path`."""
    return StoreUnavailable(_sentence(error, path) or f"The database {path} failed: {error}.")


def refusal(error: sqlite3.Error, query: str) -> StoreError | Conflict:
    """Return what a statement itself did wrong: a key that is taken, or a mistake of ours."""
    if code_of(error) in _TAKEN:
        return Conflict(f"It exists already ({error}).")
    return StoreError(f"The statement {query} failed: {error}.")


def _sentence(error: sqlite3.Error, path: Path) -> str | None:
    sentence = _SENTENCES.get(code_of(error) & _PRIMARY)
    name = getattr(error, "sqlite_errorname", "")
    return None if sentence is None else sentence.format(path=path, error=error, name=name)
