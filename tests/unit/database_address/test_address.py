"""Addresses of databases as hosting providers print them."""

import pytest

from internal.database_address.address import is_postgres, parse_address, shown_url


@pytest.mark.parametrize(
    ("url", "user", "hosts", "name", "password"),
    [
        ("postgres://ana:p%40ss%2Fw%23@h:6543/db", "ana", (("h", 6543),), "db", "p@ss/w#"),
        ("postgresql://ana:p@ss@h/db", "ana", (("h", 5432),), "db", "p@ss"),
        ("postgresql+asyncpg://ana@h/db", "ana", (("h", 5432),), "db", ""),
        ("postgresql://ana@[::1]:6543/db", "ana", (("::1", 6543),), "db", ""),
        ("postgresql://ana@a,b:6543/db", "ana", (("a", 5432), ("b", 6543)), "db", ""),
        ("postgresql://ana@%2Frun%2Fpostgresql/db", "ana", (("/run/postgresql", 5432),), "db", ""),
        (
            "postgres:///db?host=/run/postgresql&port=6543&user=ana&password=a+b",
            "ana",
            (("/run/postgresql", 6543),),
            "db",
            "a+b",
        ),
        (
            "postgresql://?host=a,b&port=1,2&user=a%20b&dbname=d%20b",
            "a b",
            (("a", 1), ("b", 2)),
            "d b",
            "",
        ),
        ("postgresql://p.x:pw@aws.pooler.example.com:5432/d", "p.x", None, "d", "pw"),
    ],
)
def test_the_parts_of_an_address(
    url: str, user: str, hosts: tuple[tuple[str, int], ...] | None, name: str, password: str
) -> None:
    found = parse_address(url)
    assert is_postgres(url)
    assert (found.user, found.name, found.password) == (user, name, password)
    assert hosts is None or found.hosts == hosts


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("postgresql://ana@h:0/db", "is malformed"),
        ("postgresql://ana@h:70000/db", "is malformed"),
        ("postgresql://ana:pa/ss@h/db", "is malformed"),
        ("postgresql://ana:p#@h/db", "is malformed"),
        ("postgresql://ana@h/db?sslmode", "has the parameter sslmode without a value"),
    ],
)
def test_a_malformed_address_is_refused(url: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_address(url)


def test_an_address_is_shown_with_all_of_its_hosts() -> None:
    address = "postgresql://ana:secret-of-ana@a,b:6543/db?sslmode=require"
    assert str(parse_address(address)) == "db at a:5432, b:6543"
    assert shown_url(address) == "postgresql://a:5432, b:6543/db"
