"""Statements without rows are sent with later ones, and have the effect of separate ones."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from internal.agent.domain.errors import Conflict
from internal.agent.store.database import Batch, Row, Statement, Write
from internal.storage.postgres.execution import execute, find_traits, join
from internal.storage.queries import load
from tests.support.postgres_server import postgres_url

QUERIES = {
    "add_one": "insert into one (id, word) values ($1, $2)",
    "add_two": "insert into two (id) values ($1)",
    "rename_one": "update one set word = $2 where id = $1 returning id",
    "copy_one": "insert into two (id) select id from one where word = $1",
    "words": "select word from one where id = $1",
    "count_two": "select count(*) from two where id >= $1",
    "listed": "with ids as (select id from two) select count(*) from ids",
}
WAITING = [name for name, sql in sorted(load().items()) if find_traits(sql).can_wait]


class CountingConnection(asyncpg.Connection):
    """Notes the named statements of each round trip."""

    sent: list[list[str]]

    async def fetch(self, query: str, *values: Any, **options: Any) -> list[Any]:
        self.note(query)
        rows: list[Any] = await super().fetch(query, *values, **options)
        return rows

    async def executemany(self, command: str, *values: Any, **options: Any) -> None:
        self.note(command)
        await super().executemany(command, *values, **options)

    def note(self, query: str) -> None:
        lead = [name for name, sql in QUERIES.items() if query.endswith(sql)]
        self.sent.append([*re.findall(r"(\w+) as \((?:insert|update)", query), *lead])


@asynccontextmanager
async def connected() -> AsyncGenerator[CountingConnection]:
    async with postgres_url() as url:
        connection = await asyncpg.connect(url, connection_class=CountingConnection)
        try:
            await connection.execute("create table one (id bigint primary key, word text)")
            await connection.execute("create table two (id bigint)")
            connection.sent = []
            yield connection
        finally:
            await connection.close()


def is_joined(*names: str, queries: Mapping[str, str] = QUERIES) -> bool:
    first, second = (find_traits(queries[name]) for name in names)
    return first.can_wait and second.can_lead and not first.affects(second)


def test_statements_are_joined_under_their_names_with_parameters_that_follow() -> None:
    names = ("add_one", "add_two", "words")
    assert join(names, tuple(QUERIES[name] for name in names)) == (
        "with add_one as (insert into one (id, word) values ($2, $3)), "
        "add_two as (insert into two (id) values ($4)) select word from one where id = $1"
    )


def test_a_statement_that_names_what_an_earlier_one_changes_is_not_joined_to_it() -> None:
    assert is_joined("add_two", "words")
    assert is_joined("copy_one", "add_one"), "it reads the rows from before"
    assert is_joined("add_one", "count_two")
    assert not is_joined("add_one", "words")
    assert not is_joined("add_one", "copy_one"), "it reads what the other one changes"
    assert not is_joined("rename_one", "count_two"), "it returns rows"
    assert not is_joined("add_one", "listed"), "it has a clause `with` of its own"


def test_no_named_statement_hides_what_it_changes() -> None:
    for name, sql in load().items():
        kind = sql.split()[0]
        assert kind in {"select", "with", "insert", "update", "delete"}, name
        assert bool(find_traits(sql).changes) == (kind not in {"select", "with"}), name
        assert len(re.findall(r"insert into|delete from|(?<!do )update ", sql)) <= 1, name


def test_no_statement_that_is_joined_has_the_name_of_a_table() -> None:
    assert not {*WAITING} & {find_traits(sql).changes for sql in load().values()}


@pytest.mark.postgres
async def test_every_statement_without_rows_can_be_joined() -> None:
    queries = load()
    leads = ("event_log_bounds", "permission_rules_of", "hosts")
    async with postgres_url() as url:
        connection = await asyncpg.connect(url)
        try:
            for name in WAITING:
                lead = next(lead for lead in leads if is_joined(name, lead, queries=queries))
                await connection.prepare(join((name, lead), (queries[name], queries[lead])))
        finally:
            await connection.close()


@pytest.mark.postgres
async def test_a_statement_without_rows_shares_the_round_trip_of_the_next_one() -> None:
    def work() -> Write[list[Row]]:
        yield Statement("add_one", (1, "it's \0"))
        yield Statement("add_two", (7,))
        found = yield Statement("words", (1,))
        yield Statement("add_one", (2, "b"))
        yield Batch("add_two", [(8,), (9,)])
        return found + (yield Statement("count_two", (8,)))

    async with connected() as connection:
        assert await execute(connection, QUERIES, work) == [("it's �",), (2,)]
        assert connection.sent == [
            ["add_one", "add_two"],
            ["words"],
            ["add_two"],
            ["add_one", "count_two"],
        ]


@pytest.mark.postgres
async def test_what_waits_at_the_end_is_executed() -> None:
    def work() -> Write[str]:
        yield Statement("add_one", (1, "a"))
        return "done"

    async with connected() as connection:
        assert await execute(connection, QUERIES, work) == "done"
        assert await connection.fetchval("select count(*) from one") == 1


@pytest.mark.postgres
async def test_statements_on_one_table_keep_their_order() -> None:
    def work() -> Write[list[Row]]:
        yield Statement("add_one", (1, "a"))
        yield Statement("copy_one", ("a",))
        yield Statement("rename_one", (1, "b"))
        yield Statement("copy_one", ("b",))
        counted = yield Statement("listed")
        return counted + (yield Statement("words", (1,)))

    async with connected() as connection:
        assert await execute(connection, QUERIES, work) == [(2,), ("b",)]


@pytest.mark.postgres
async def test_a_duplicate_in_a_joined_statement_is_a_conflict() -> None:
    def work() -> Write[list[Row]]:
        yield Statement("add_one", (1, "a"))
        return (yield Statement("count_two", (0,)))

    async with connected() as connection:
        await execute(connection, QUERIES, work)
        with pytest.raises(Conflict, match="exists already"):
            await execute(connection, QUERIES, work)


@pytest.mark.postgres
async def test_work_that_fails_executes_nothing_that_waits() -> None:
    def work() -> Write[None]:
        yield Statement("add_one", (1, "a"))
        raise ValueError("wrong")

    async with connected() as connection:
        with pytest.raises(ValueError, match="wrong"):
            await execute(connection, QUERIES, work)
        assert connection.sent == []
