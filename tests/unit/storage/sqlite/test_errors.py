"""Translation of SQLite's exceptions."""

import sqlite3
from pathlib import Path

import pytest

from internal.agent.domain.errors import Conflict, StoreError
from internal.storage.sqlite import errors

PATH = Path("larkspur.db")


def reported(code: int, message: str = "as it says") -> sqlite3.Error:
    error = sqlite3.OperationalError(message)
    error.sqlite_errorcode = code
    error.sqlite_errorname = "SQLITE_NAME"
    return error


@pytest.mark.parametrize(
    ("code", "words", "permanent"),
    [
        (sqlite3.SQLITE_FULL, "is full: nothing was written", False),
        (sqlite3.SQLITE_READONLY, "is read-only", False),
        (sqlite3.SQLITE_READONLY_DIRECTORY, "is read-only", False),
        (sqlite3.SQLITE_BUSY, "is locked by another process", False),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, "is locked by another process", False),
        (sqlite3.SQLITE_PROTOCOL, "is locked by another process", False),
        (sqlite3.SQLITE_CORRUPT, "is damaged (as it says)", True),
        (sqlite3.SQLITE_NOTADB, "is damaged", True),
        (sqlite3.SQLITE_CANTOPEN, "cannot be opened", False),
        (sqlite3.SQLITE_IOERR_WRITE, "reports an error (as it says, SQLITE_NAME)", False),
        (sqlite3.SQLITE_IOERR_FSYNC, "reports an error", True),
        (sqlite3.SQLITE_IOERR_DIR_FSYNC, "reports an error", True),
        (sqlite3.SQLITE_IOERR_CORRUPTFS, "reports an error", True),
    ],
)
def test_failures_of_disk_file_and_lock(code: int, words: str, permanent: bool) -> None:
    error = reported(code)
    assert errors.is_environment(error)
    assert errors.is_permanent(error) is permanent
    assert words in str(errors.unavailable(error, PATH))
    assert "larkspur.db" in str(errors.unavailable(error, PATH))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_CONSTRAINT_UNIQUE, Conflict),
        (sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, Conflict),
        (sqlite3.SQLITE_CONSTRAINT_NOTNULL, StoreError),
        (sqlite3.SQLITE_ERROR, StoreError),
        (sqlite3.SQLITE_TOOBIG, StoreError),
    ],
)
def test_failures_of_a_statement(code: int, kind: type[Exception]) -> None:
    error = reported(code)
    assert not errors.is_environment(error)
    assert type(errors.statement_error(error, "insert_run")) is kind


def test_unknown_errors_have_a_message() -> None:
    error = sqlite3.InterfaceError("bad value")
    assert str(errors.unavailable(error, PATH)) == "The database larkspur.db failed: bad value."
    assert str(errors.statement_error(error, "run")) == "The statement run failed: bad value."
