"""Connections to a PostgreSQL server."""

import asyncio
import secrets
import ssl
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlencode

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
_SEARCH_PATH = "select set_config('search_path', $1, false)"
_ROOT, _SYSTEM = "sslrootcert", "system"  # the certificates of the system, as libpq calls them
_NAME = "select coalesce(current_setting('larkspur.connection', true), '')"


async def connect(address: PostgresAddress) -> Connection:
    """Open a connection. Every commit is on disk before it returns.

    Raises:
        StoreUnavailable: a connection pooler gives the sessions of others to this connection.
        Exception: one of `errors.DRIVER_ERRORS`.
    """
    parameters = address.parameters
    hosts, ports = zip(*address.hosts, strict=True)
    connection: Connection = await asyncpg.connect(
        _driver_url(address),
        host=list(hosts),
        port=list(ports),
        user=address.user,
        password=address.password or None,
        database=address.name,
        ssl=await asyncio.to_thread(_system_tls, address),
        timeout=parameters.connect_timeout or CONNECT_TIMEOUT_SECONDS,
        command_timeout=_REPLY_TIMEOUT_SECONDS,
        statement_cache_size=_STATEMENTS,
        max_cached_statement_lifetime=0,
        server_settings={"application_name": "larkspur", **parameters.server_settings},
    )
    name = secrets.token_hex(8)
    try:
        earlier_name = await connection.fetchval(_NAME)
        await connection.fetchrow(_SETTINGS, name)
        if parameters.schema:
            await _choose_schema(connection, address)
    except BaseException:
        connection.terminate()
        raise
    if earlier_name:
        connection.terminate()
        raise StoreUnavailable(errors.POOLER.format(at=address))
    return connection


def _driver_url(address: PostgresAddress) -> str:
    """Return a URL with nothing but the parameters that the driver takes in no other way.

    Raises:
        ClientConfigurationError: a file that one of them names does not exist.
    """
    given = dict(address.parameters.of_driver)
    if given.get(_ROOT) == _SYSTEM:
        given = {name: value for name, value in given.items() if not name.startswith("ssl")}
    for name in ("passfile", "sslcert", "sslcrl", "sslkey", _ROOT):
        if name in given and not Path(given[name]).is_file():
            raise asyncpg.ClientConfigurationError(f"its {name} names no file: {given[name]}")
    return f"postgresql://?{urlencode(given)}" if given else "postgresql://"


def _system_tls(address: PostgresAddress) -> ssl.SSLContext | None:
    """Return the context that verifies a server with the system's certificates, None if not wanted.

    Blocks.
    """
    given = address.parameters.of_driver
    if given.get(_ROOT) != _SYSTEM:
        return None
    context = ssl.create_default_context()
    if "sslcert" in given:
        password = given.get("sslpassword", "")
        context.load_cert_chain(given["sslcert"], given.get("sslkey"), lambda: password)
    return context


async def _choose_schema(connection: Connection, address: PostgresAddress) -> None:
    """Use the schema that the address names.

    Raises:
        StoreUnavailable: there is none.
        Exception: one of `errors.DRIVER_ERRORS`.
    """
    schema = address.parameters.schema
    await connection.fetchval(_SEARCH_PATH, schema)
    if await connection.fetchval("select current_schema()") is None:
        connection.terminate()
        raise StoreUnavailable(
            f"The database {address} has no schema {schema}. Create it: CREATE SCHEMA {schema}."
        )


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
