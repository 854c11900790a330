"""Connections to a PostgreSQL server."""

import asyncio
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

import asyncpg

from internal.agent.domain.errors import StoreUnavailable
from internal.database_address.address import PostgresAddress
from internal.storage.postgres import errors

if TYPE_CHECKING:  # generic for the type checker only
    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record]
else:
    Connection = asyncpg.Connection

CONNECT_TIMEOUT_SECONDS = 10.0
_REPLY_TIMEOUT_SECONDS = 30.0  # more than the server's own limit for a statement
_CLOSE_TIMEOUT_SECONDS = 2.0
_STATEMENTS = 1024  # all named statements stay prepared

# A transaction whose process is suspended must not block the others, whose writes wait for it.
# The name of the connection is for the next one: only a pooler gives both the same session.
_SETTINGS = """
select
    set_config('idle_in_transaction_session_timeout', '5s', false),
    set_config('statement_timeout', '20s', false),
    set_config('jit', 'off', false),
    set_config('larkspur.connection', $1, false),
    case when current_setting('synchronous_commit') = 'off'
        then set_config('synchronous_commit', 'on', false) end
"""
_NAME = "select coalesce(current_setting('larkspur.connection', true), '')"


async def connect(address: PostgresAddress) -> Connection:
    """Open a connection. Every commit is on disk before it returns.

    Raises:
        StoreUnavailable: a connection pooler gives the sessions of others to this connection.
        Exception: one of `errors.DRIVER_ERRORS`.
    """
    connection = await asyncpg.connect(
        address.url,
        timeout=CONNECT_TIMEOUT_SECONDS,
        command_timeout=_REPLY_TIMEOUT_SECONDS,
        statement_cache_size=_STATEMENTS,
        max_cached_statement_lifetime=0,
        server_settings={"application_name": "larkspur"},
    )
    name = secrets.token_hex(8)
    try:
        earlier_name = await connection.fetchval(_NAME)
        await connection.fetchrow(_SETTINGS, name)
    except BaseException:
        connection.terminate()
        raise
    if earlier_name:
        connection.terminate()
        raise StoreUnavailable(errors.POOLER.format(at=address))
    return connection


async def check_session(connection: Connection, address: PostgresAddress) -> None:
    """Check that a connection keeps its session: that no pooler lends it to other connections.

    Raises:
        StoreUnavailable: a pooler gives it to another one.
        Exception: one of `errors.DRIVER_ERRORS`.
    """
    before = await connection.fetchval(_NAME)
    await disconnect(await connect(address))  # it finds the name that the other one has set
    if before != await connection.fetchval(_NAME):
        raise StoreUnavailable(errors.POOLER.format(at=address))


async def disconnect(connection: Connection | None) -> None:
    """Close a connection, which may be lost already. Raises nothing."""
    if connection is None:
        return
    if connection.is_closed():
        return
    with suppress(*errors.DRIVER_ERRORS, asyncio.CancelledError):
        await connection.close(timeout=_CLOSE_TIMEOUT_SECONDS)
        return
    connection.terminate()
