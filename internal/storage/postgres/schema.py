"""Checks of a server, and creation and migration of the tables in its database."""

from datetime import UTC, datetime

from internal.agent.domain.errors import StoreCorrupt, StoreError, StoreUnavailable
from internal.database_address.address import PostgresAddress
from internal.storage.migrations import migrations, newest_version
from internal.storage.moves import check_move
from internal.storage.postgres.connection import Connection

LOCK = 0x4C61726B73707572
"""The key of the advisory lock that every write and every migration holds: `Larkspur` in ASCII."""

_TAKE_LOCK = f"select pg_advisory_xact_lock({LOCK})"
_BEGIN_MIGRATION = (  # another process may migrate for minutes
    f"begin isolation level read committed; set local statement_timeout = 0; {_TAKE_LOCK}"
)
BEGIN = f"begin isolation level read committed; {_TAKE_LOCK}"
"""Begins a transaction after those of all other processes, whose commits its statements see."""

_MIN_VERSION = 13
_MIGRATION_SECONDS = 3600.0

_ENVIRONMENT = """
select current_setting('server_encoding'), current_schema()::text,
    pg_is_in_recovery() or current_setting('transaction_read_only') = 'on'
"""
_TABLES = """
select relname::text from pg_class
where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p')
    and not exists (
        select 1 from pg_depend
        where classid = 'pg_class'::regclass and objid = pg_class.oid and deptype = 'e'
    )
"""
_MAY_CREATE = "select has_schema_privilege(current_schema(), 'CREATE')"
_OWN_TABLES = {"schema_migrations", "event_log", "sessions", "runs"}


async def prepare(connection: Connection, address: PostgresAddress) -> None:
    """Check the server and the database, and create or migrate the tables.

    Raises:
        StoreCorrupt: the database is not Larkspur's, or has an unknown schema; nothing was changed.
        StoreUnavailable: the server or the user cannot be used.
        Exception: one of `errors.DRIVER_ERRORS`.
    """
    await check_server(connection, address)
    await connection.execute(_BEGIN_MIGRATION, timeout=_MIGRATION_SECONDS)
    try:
        version = await read_version(connection, address)
        for number, name, statements in migrations("postgres"):
            if number <= version:
                continue
            for statement in statements:
                await connection.execute(statement, timeout=_MIGRATION_SECONDS)
            await connection.execute(
                "insert into schema_migrations (number, name, applied) values ($1, $2, $3)",
                number,
                name,
                datetime.now(UTC).isoformat(timespec="seconds"),
            )
        await connection.execute("commit")
    except StoreError:
        await connection.execute("rollback")
        raise


async def check_moves(connection: Connection, address: PostgresAddress) -> None:
    """Check that the database was not moved away, and that no move into it is unfinished.

    Raises:
        StoreCorrupt: it was, or one is.
    """
    for row in await connection.fetch("select direction, place, finished from database_moves"):
        check_move(str(address), *row)


async def check_server(connection: Connection, address: PostgresAddress) -> None:
    """Check that the server can be used: its version, encoding and rights.

    Raises:
        StoreUnavailable: it cannot.
    """
    major = connection.get_server_version().major
    if major < _MIN_VERSION:
        raise StoreUnavailable(
            f"The server of the database {address} is PostgreSQL {major}. "
            f"Larkspur needs {_MIN_VERSION} or newer."
        )
    encoding, schema, is_read_only = await connection.fetchrow(_ENVIRONMENT) or ("", None, False)
    if encoding != "UTF8":
        raise StoreUnavailable(
            f"The database {address} has the encoding {encoding}. Create one with "
            f"ENCODING 'UTF8' TEMPLATE template0."
        )
    if is_read_only:
        raise StoreUnavailable(
            f"The database {address} is read-only. Use the primary server, not a standby."
        )
    if schema is None:
        raise _may_not_create(address)


async def read_version(connection: Connection, address: PostgresAddress) -> int:
    """Return the version of the schema, 0 when there is none.

    Raises:
        StoreCorrupt: the tables are not Larkspur's, or written by a newer version.
        StoreUnavailable: there are none, and the user may not create them.
    """
    tables = {table for (table,) in await connection.fetch(_TABLES)}
    if not tables:
        if not await connection.fetchval(_MAY_CREATE):
            raise _may_not_create(address)
        return 0
    if not tables >= _OWN_TABLES:
        raise StoreCorrupt(
            f"The database {address} contains tables of another program and was not changed. "
            "Create an empty database for Larkspur."
        )
    version = int(await connection.fetchval("select max(number) from schema_migrations"))
    if version > (newest := newest_version("postgres")):
        raise StoreCorrupt(
            f"The database {address} was written by a newer version of Larkspur (schema {version}, "
            f"this version supports {newest}) and was not changed. Upgrade Larkspur."
        )
    return version


def _may_not_create(address: PostgresAddress) -> StoreUnavailable:
    return StoreUnavailable(
        f"The user {address.user} may not create tables in the database {address}. As its owner: "
        f"GRANT CREATE, USAGE ON SCHEMA public TO {address.user}."
    )
