"""Sentences for errors of the driver and the server."""

import asyncpg
import pytest

from internal.agent.domain.errors import StoreCorrupt, StoreUnavailable
from internal.database_address.address import PostgresAddress, parse_address
from internal.storage.postgres.errors import cannot_connect

UNKNOWN = 'unrecognized configuration parameter "{}"'


def address(query: str) -> PostgresAddress:
    return parse_address(f"postgresql://ana@host/name?{query}")


@pytest.mark.parametrize(
    ("query", "error", "name"),
    [
        ("Foo=1", asyncpg.UndefinedObjectError(UNKNOWN.format("foo")), "foo"),
        ("options=-c%20foo=1", asyncpg.UndefinedObjectError(UNKNOWN.format("foo")), "options"),
        (
            "options=foo",
            asyncpg.PostgresSyntaxError('invalid command-line argument for server process: "foo"'),
            "options",
        ),
        (
            "jit=off",
            asyncpg.ProtocolViolationError("unsupported startup parameter: jit"),
            "jit",
        ),
    ],
)
def test_a_parameter_of_the_address_is_named(query: str, error: Exception, name: str) -> None:
    found = cannot_connect(error, address(query))
    assert isinstance(found, StoreCorrupt)
    assert f"does not accept the parameter {name} of database.url" in str(found)


def test_a_pooler_that_refuses_what_larkspur_sends_is_one() -> None:
    error = asyncpg.ProtocolViolationError("unsupported startup parameter: jit")
    found = cannot_connect(error, address("sslmode=prefer"))
    assert isinstance(found, StoreUnavailable)
    assert "behind a connection pooler" in str(found)


def test_a_missing_root_certificate_leads_to_those_of_the_system() -> None:
    error = asyncpg.ClientConfigurationError('root certificate file "/a" does not exist')
    assert "add sslrootcert=system to database.url" in str(cannot_connect(error, address("")))
