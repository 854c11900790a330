"""Translation of asyncpg's exceptions into errors of Larkspur."""

import re
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import asyncpg

from internal.agent.domain.errors import (
    Conflict,
    InvalidRequest,
    RequestError,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
)
from internal.database_address.address import PostgresAddress

DRIVER_ERRORS: Final = (
    asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError,
    TimeoutError,
)  # fmt: skip
"""Exceptions that a call of asyncpg may raise."""


class ServerFailed(Exception):
    """A call of the driver failed: the server or the connection, not the unit of work."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@contextmanager
def driver_calls() -> Generator[None]:
    """Raise `ServerFailed` for an error of a call of the driver."""
    try:
        yield
    except DRIVER_ERRORS as error:
        raise ServerFailed(error) from error


_SERVER_ENDS = {"57P01", "57P02", "57P03", "57P05", "25P03", "25P04"}
_TRY_AGAIN = {"40001", "40P01", "55P03", "57014", "53300"}
_READ_ONLY = "25006"
_POOLER_NAMES = {"26000", "42P05"}  # a prepared statement is unknown, or exists already
_POOLER_PARAMETER = "unsupported startup parameter"

_FULL = "The disk of the database {at} is full: nothing was written. Free some space."
_MEMORY = "The server of the database {at} is out of memory ({error}): nothing was written."
_DISK = "The disk of the database {at} reports an error ({error}): nothing was written."
_DAMAGED = "The database {at} is damaged ({error}). Restore it from a backup."
_NO_RIGHT = (
    "The user {user} lacks a right on the database {at} ({error}): nothing was written. "
    "Use the owner of its tables."
)
_SENTENCES = {
    "53100": _FULL,
    "53200": _MEMORY,
    "53400": _MEMORY,
    _READ_ONLY: "The database {at} is read-only: nothing was written. Use the primary server.",
    "42501": _NO_RIGHT,
    "58000": _DISK,
    "58030": _DISK,
    "58P01": _DISK,
    "58P02": _DISK,
    "XX001": _DAMAGED,
    "XX002": _DAMAGED,
    "3D000": "The database {at} does not exist any more.",
}

_CONNECT_SENTENCES = {
    "28": "The server of the database {at} does not accept the user {user} or its password. "
    "Check database.url.",
    "3D000": "The database {at} does not exist. Create it: CREATE DATABASE {name}.",
    "53300": "The server of the database {at} has no free connection. Raise max_connections.",
}

_PARAMETER = (
    "The server of the database {at} does not accept the parameter {name} of database.url "
    "({error}): remove it."
)
# undefined_object, invalid_parameter_value, cant_change_runtime_param, insufficient_privilege
_PARAMETER_CODES = {"42704", "22023", "55P02", "42501", "42601"}
_NAMED = re.compile(r'parameter "([^"]+)"|startup parameter: (\S+)')
_BAD_OPTION = "command-line argument"
_ROOT_HINT = " For the certificates of the system, add sslrootcert=system to database.url."

POOLER = (
    "The database {at} is behind a connection pooler in transaction mode (such as PgBouncer), "
    "which Larkspur cannot use: connect to PostgreSQL directly, or set pool_mode = session."
)


def code_of(error: BaseException) -> str:
    """Return the SQLSTATE of an error, "" when the server did not send one."""
    return getattr(error, "sqlstate", None) or ""


def is_lost(error: BaseException, *, is_closed: bool) -> bool:
    """Return whether the connection is gone, so that another one may succeed."""
    code = code_of(error)
    return (
        is_closed
        or code.startswith("08")
        or code in _SERVER_ENDS
        or isinstance(error, (OSError, TimeoutError))
    )


def is_transient(error: BaseException, *, is_closed: bool) -> bool:
    """Return whether the same transaction may succeed later."""
    return (
        is_lost(error, is_closed=is_closed)
        or code_of(error) in _TRY_AGAIN
        or isinstance(error, asyncpg.InvalidCachedStatementError | asyncpg.OutdatedSchemaCacheError)
    )


def is_environment(error: BaseException) -> bool:
    """Return whether disk, memory or rights of the server failed, not the statement."""
    return code_of(error) in _SENTENCES or _is_pooler(error)


def unavailable(error: BaseException, address: PostgresAddress) -> StoreUnavailable:
    """Return the error for a failure of the server or of the connection."""
    sentence = _SENTENCES.get(code_of(error))
    if _is_pooler(error):
        sentence = POOLER
    if sentence is None:
        sentence = "The database {at} failed: {error}."
    return StoreUnavailable(_fill(sentence, error, address))


def unreachable(error: BaseException, address: PostgresAddress) -> StoreUnavailable:
    """Return the error for a server that does not answer, or not any more."""
    return StoreUnavailable(f"The database {address} cannot be reached: {_reason(error)}.")


def statement_error(error: BaseException, query: str) -> StoreError | RequestError:
    """Return the error for a failed statement: `Conflict` for a duplicate key.

    PostgreSQL limits the values in an index to about 2,700 bytes: `InvalidRequest`.
    """
    if isinstance(error, asyncpg.UniqueViolationError):
        return Conflict(f"It exists already ({_words(error)}).", reason_code="exists_already")
    if isinstance(error, asyncpg.ProgramLimitExceededError):
        return InvalidRequest(
            "A key or a rule is too long for the database: shorten it.", reason_code="key_too_long"
        )
    return StoreError(f"The statement {query} failed: {_words(error)}.")


def cannot_connect(
    error: BaseException, address: PostgresAddress
) -> StoreUnavailable | StoreCorrupt:
    """Return the error for a connection that could not be opened."""
    if isinstance(error, asyncpg.ClientConfigurationError):
        hint = _ROOT_HINT if "root certificate" in str(error) else ""
        return StoreCorrupt(f"The database URL cannot be used: {_words(error)}.{hint}")
    if (name := _refused_parameter(error, address)) is not None:
        return StoreCorrupt(_PARAMETER.format(at=address, name=name, error=_words(error)))
    if isinstance(error, socket.gaierror):
        host = address.host.rpartition(":")[0]
        return StoreUnavailable(
            f"The host {host} of the database is unknown. Check its name in database.url."
        )
    if isinstance(error, ConnectionRefusedError | FileNotFoundError):
        return StoreUnavailable(
            f"The database {address} cannot be reached: no PostgreSQL server listens there. "
            "Start it, or check host and port in database.url."
        )
    for code, sentence in _CONNECT_SENTENCES.items():
        if code_of(error).startswith(code):
            return StoreUnavailable(_fill(sentence, error, address))
    return unavailable(error, address) if is_environment(error) else unreachable(error, address)


def _refused_parameter(error: BaseException, address: PostgresAddress) -> str | None:
    """Return the parameter of the address that the server does not accept; None if it is not it."""
    text = str(error)
    if code_of(error) not in _PARAMETER_CODES and _POOLER_PARAMETER not in text:
        return None
    settings = address.parameters.server_settings
    named = _NAMED.search(text)
    word = (named[1] or named[2]).casefold() if named else ""
    if word in {name.casefold() for name in settings}:
        return word
    # the server names the setting, not the options in which it is
    options = settings.get("options", "").casefold()
    is_option = word in options if word else _BAD_OPTION in text
    return "options" if options and is_option else None


def _is_pooler(error: BaseException) -> bool:
    return code_of(error) in _POOLER_NAMES or _POOLER_PARAMETER in str(error)


def _fill(sentence: str, error: BaseException, address: PostgresAddress) -> str:
    return sentence.format(at=address, error=_words(error), user=address.user, name=address.name)


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return "it does not answer"
    return _words(error)


def _words(error: BaseException) -> str:
    """Return the first line of an error without a full stop."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    lines = str(error).splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
