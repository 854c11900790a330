"""Parameters of addresses: honoured, passed over, or refused by name."""

import pytest

from internal.database_address.parameters import (
    ConnectionParameters,
    read_parameters,
    split_parameters,
)


def read(query: str) -> ConnectionParameters:
    return read_parameters(split_parameters(query))


def test_what_providers_print_is_honoured() -> None:
    found = read(
        "sslmode=require&channel_binding=prefer&connect_timeout=15&application_name=mine"
        "&target_session_attrs=read-write&options=endpoint%3Dep-1&keepalives=1&pgbouncer=true"
        "&connection_limit=1&schema=my%22app&host=h&passfile=/p"
    )
    assert found == ConnectionParameters(
        {"sslmode": "require", "target_session_attrs": "read-write", "passfile": "/p"},
        {"application_name": "mine", "options": "endpoint=ep-1"},
        15.0,
        '"my""app"',
        ("channel_binding", "keepalives", "pgbouncer", "connection_limit"),
    )


@pytest.mark.parametrize(
    ("query", "mode"),
    [
        ("ssl=true", "require"),
        ("ssl=0", "disable"),
        ("ssl=verify-full", "verify-full"),
        ("sslmode=no-verify", "require"),
        ("sslmode=verify-ca&ssl=true", "verify-ca"),
    ],
)
def test_tls_is_asked_for_in_several_ways(query: str, mode: str) -> None:
    assert read(query).of_driver == {"sslmode": mode}


@pytest.mark.parametrize(("query", "seconds"), [("0", None), ("-1", None), ("1", 2), ("9999", 600)])
def test_the_timeout_is_in_seconds(query: str, seconds: float | None) -> None:
    assert read(f"connect_timeout={query}").connect_timeout == seconds


@pytest.mark.parametrize(
    "parameter",
    [
        "channel_binding=require",
        "gssencmode=require",
        "target_session_attrs=standby",
        "connect_timeout=soon",
        "client_encoding=latin1",
        "replication=database",
        "sslaccept=strict",
        "sslmode=some",
        "service=mine",
        "schema=",
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(parameter: str) -> None:
    with pytest.raises(ValueError, match=f"has the parameter {parameter}, which cannot"):
        read(parameter)
