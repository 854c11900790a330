"""A server or database that cannot be used is named in one sentence, and nothing is changed."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from functools import partial
from pathlib import Path

import pytest

from internal.agent.domain.errors import StoreCorrupt, StoreError, StoreUnavailable
from internal.agent.store.stores import Stores
from internal.storage.database_url import check_database, open_database
from tests.support.pgbouncer import pgbouncer
from tests.support.ports import free_port
from tests.support.postgres_server import (
    PASSWORD,
    USER,
    PostgresServer,
    postgres_url,
    shared_server,
)
from tests.support.store_records import a_session

pytestmark = pytest.mark.postgres


@pytest.fixture
def server() -> PostgresServer:
    return shared_server()


@pytest.fixture
def name(server: PostgresServer) -> Iterator[str]:
    """An empty database."""
    created = server.create_database(template="template1")
    yield created
    server.drop_database(created)


@pytest.fixture
async def url() -> AsyncGenerator[str]:
    """The URL of a database with the tables of Larkspur."""
    async with postgres_url() as created:
        yield created


async def refusal(url: str) -> str:
    """Return why a database cannot be opened. `larkspur doctor` says the same."""
    with pytest.raises(StoreError) as checked:
        await check_database(url)
    with pytest.raises(StoreError) as opened:
        async with open_database(url):
            pass
    assert str(opened.value) == str(checked.value)
    assert PASSWORD not in str(opened.value)
    assert str(opened.value).isprintable()
    return str(opened.value)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://", "The database URL names no host; use postgresql://USER"),
        ("postgresql://ana@[::1/name", "The database URL is malformed; use postgresql://USER"),
        ("postgresql://ana@host:many/name", "The database URL is malformed; use"),
        ("postgresql://ana@host/na me", "The database URL is malformed; use"),
        ("postgresql://host/name", "The database URL names no user; use"),
        (
            "postgresql://ana@host/name?sslmode=some",
            "The database URL has the parameter sslmode=some, which cannot be honoured",
        ),
        (
            "postgresql://ana@127.0.0.1/name?sslmode=verify-full&sslrootcert=/none.pem",
            "The database URL cannot be used: its sslrootcert names no file: /none.pem.",
        ),
    ],
)
async def test_a_malformed_url(url: str, words: str) -> None:
    with pytest.raises(StoreCorrupt) as caught:
        async with open_database(url):
            pass
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("pgbouncr=true", "pgbouncr"),
        ("lock_timeout=soon", "lock_timeout"),
        ("options=-c%20no_such=1", "options"),
        ("options=nonsense", "options"),
    ],
)
async def test_a_parameter_that_the_server_does_not_know_is_named(
    server: PostgresServer, name: str, query: str, parameter: str
) -> None:
    said = await refusal(f"{server.url(name)}?{query}")
    assert f"does not accept the parameter {parameter} of database.url (" in said


async def test_a_schema_that_is_missing_is_named(server: PostgresServer, name: str) -> None:
    assert 'Create it: CREATE SCHEMA "app".' in await refusal(f"{server.url(name)}?schema=app")


async def test_the_parameters_of_an_address_have_effect(server: PostgresServer, name: str) -> None:
    server.sql("create schema app authorization larkspur", name)
    url = server.url(name).replace("127.0.0.1", "127.0.0.1:1,127.0.0.1")
    async with open_database(
        f"{url}?schema=app&application_name=mine&connect_timeout=5&sslmode=prefer&keepalives=1"
        "&target_session_attrs=read-write&options=-c%20lock_timeout%3D7s&pgbouncer=true"
    ):
        tables = "select count(*) from pg_tables where schemaname = 'app' and tablename = 'runs'"
        assert server.sql(tables, name) == [(1,)]
        names = "select distinct application_name from pg_stat_activity where usename = 'larkspur'"
        assert server.sql(names, name) == [("mine",)]


async def test_an_unknown_host() -> None:
    assert await refusal("postgresql://ana@no-such-host.invalid/name") == (
        "The host no-such-host.invalid of the database is unknown. Check its name in database.url."
    )


async def test_a_port_on_which_nothing_listens() -> None:
    port = free_port()
    assert await refusal(f"postgresql://ana@127.0.0.1:{port}/name") == (
        f"The database name at 127.0.0.1:{port} cannot be reached: no PostgreSQL server listens "
        "there. Start it, or check host and port in database.url."
    )


async def test_a_wrong_password(server: PostgresServer, name: str) -> None:
    assert await refusal(server.url(name, password="wrong")) == (  # noqa: S106 - not one
        f"The server of the database {name} at 127.0.0.1:{server.port} does not accept the user "
        f"{USER} or its password. Check database.url."
    )


async def test_a_missing_database(server: PostgresServer) -> None:
    assert await refusal(server.url("missing")) == (
        f"The database missing at 127.0.0.1:{server.port} does not exist. "
        "Create it: CREATE DATABASE missing."
    )


async def test_a_user_who_may_not_create_tables(server: PostgresServer, name: str) -> None:
    server.sql(f"create role reader login password '{PASSWORD}'")
    try:
        sentence = await refusal(server.url(name, user="reader"))
    finally:
        server.sql("drop role reader")
    assert sentence == (
        f"The user reader may not create tables in the database {name} at 127.0.0.1:{server.port}. "
        "As its owner: GRANT CREATE, USAGE ON SCHEMA public TO reader."
    )


async def test_a_user_without_rights_on_the_tables(server: PostgresServer, url: str) -> None:
    name = url.rpartition("/")[2]
    server.sql(f"create role reader login password '{PASSWORD}'")
    try:
        sentence = await refusal(server.url(name, user="reader"))
    finally:
        server.sql("drop role reader")
    assert sentence == (
        f"The user reader lacks a right on the database {name} at 127.0.0.1:{server.port} "
        "(permission denied for table schema_migrations): nothing was written. "
        "Use the owner of its tables."
    )


async def test_an_encoding_other_than_utf8(server: PostgresServer) -> None:
    name = server.create_database(
        template="template0",
        options="encoding 'LATIN1' locale_provider libc lc_collate 'C' lc_ctype 'C'",
    )
    try:
        assert await refusal(server.url(name)) == (
            f"The database {name} at 127.0.0.1:{server.port} has the encoding LATIN1. "
            "Create one with ENCODING 'UTF8' TEMPLATE template0."
        )
    finally:
        server.drop_database(name)


async def test_a_read_only_server(server: PostgresServer, name: str) -> None:
    server.sql(f"alter database {name} set default_transaction_read_only = on")
    assert await refusal(server.url(name)) == (
        f"The database {name} at 127.0.0.1:{server.port} is read-only. "
        "Use the primary server, not a standby."
    )


@pytest.mark.parametrize(
    "statement",
    [
        "create table orders (id bigint)",
        "create table schema_migrations (version text)",  # as other programs name it, too
    ],
)
async def test_tables_of_another_program(server: PostgresServer, name: str, statement: str) -> None:
    server.sql(statement, name)
    assert await refusal(server.url(name)) == (
        f"The database {name} at 127.0.0.1:{server.port} contains tables of another program and "
        "was not changed. Create an empty database for Larkspur."
    )
    tables = server.sql("select count(*) from pg_tables where schemaname = 'public'", name)
    assert tables == [(1,)]


async def test_a_newer_schema(server: PostgresServer, url: str) -> None:
    name = url.rpartition("/")[2]
    server.sql("insert into schema_migrations values (9000, 'later', '2030')", name)
    sentence = await refusal(url)
    assert sentence.startswith(
        f"The database {name} at 127.0.0.1:{server.port} was written by a newer version of "
        "Larkspur (schema 9000, "
    )
    assert sentence.endswith("and was not changed. Upgrade Larkspur.")


async def test_a_pooler_in_transaction_mode(
    server: PostgresServer, url: str, tmp_path: Path
) -> None:
    name = url.rpartition("/")[2]
    async with pgbouncer(tmp_path, server, name, "transaction") as pooled:
        with pytest.raises(StoreUnavailable) as caught:
            async with open_database(pooled):
                pass
        with pytest.raises(StoreUnavailable):
            await check_database(pooled)
    at = f"{name} at {pooled.split('@')[1].split('/')[0]}"
    assert str(caught.value) == (
        f"The database {at} is behind a connection pooler in transaction mode (such as PgBouncer), "
        "which Larkspur cannot use: connect to PostgreSQL directly, or set pool_mode = session."
    )


async def test_a_pooler_in_session_mode(server: PostgresServer, url: str, tmp_path: Path) -> None:
    name = url.rpartition("/")[2]
    async with pgbouncer(tmp_path, server, name, "session") as pooled:
        for number in range(2):  # the second one gets the sessions of the first
            async with open_database(pooled) as database:
                session = a_session(f"session-{number}")
                await database.write(partial(Stores().sessions.add, session))
                assert await database.read(partial(Stores().sessions.get, session.id))


@pytest.mark.slow
async def test_processes_may_create_the_tables_at_once(server: PostgresServer, name: str) -> None:
    async def open_once() -> None:
        async with open_database(server.url(name)):
            pass

    async with asyncio.TaskGroup() as tasks:
        for _ in range(6):
            tasks.create_task(open_once())
    counted = server.sql("select count(*), count(distinct number) from schema_migrations", name)
    assert counted[0][0] == counted[0][1]


def test_the_missing_package_is_named() -> None:
    program = (
        "import asyncio, sys\n"
        "sys.modules['asyncpg'] = None\n"
        "from internal.storage.database_url import check_database\n"
        "asyncio.run(check_database('postgresql://ana@host/name'))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (
        "PostgreSQL needs the package asyncpg: install the extra larkspur-gateway[postgres]."
    ) in done.stderr.decode()
