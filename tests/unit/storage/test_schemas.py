"""Both kinds of database have the same tables, columns, keys and indexes."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from internal.storage.sqlite.schema import prepare_file
from tests.support.postgres_server import postgres_url, shared_server

_COLUMNS = """
select table_name, column_name, data_type, is_nullable = 'YES',
    coalesce(regexp_replace(column_default, '::[a-z ]+', ''), '')
from information_schema.columns where table_schema = 'public'
order by table_name, ordinal_position
"""
_INDEXES = """
select tablename, indexdef from pg_indexes where schemaname = 'public'
"""
_COLLATIONS = """
select relname, attname from pg_attribute join pg_class on pg_class.oid = attrelid
    join pg_collation on pg_collation.oid = attcollation
where relnamespace = 'public'::regnamespace and relkind = 'r' and attnum > 0 and collname <> 'C'
"""


class Column(NamedTuple):
    table: str
    name: str
    type: str
    is_nullable: bool
    default: str


class Index(NamedTuple):
    table: str
    columns: tuple[str, ...]
    is_unique: bool
    condition: str


@pytest.fixture
def connection(tmp_path: Path) -> sqlite3.Connection:
    prepare_file(tmp_path / "larkspur.db")
    return sqlite3.connect(tmp_path / "larkspur.db")


def sqlite_columns(connection: sqlite3.Connection) -> set[Column]:
    return {
        Column(table, name, _type(type_.lower()), not required and not key, default or "")
        for (table,) in _tables(connection)
        for _, name, type_, required, default, key in connection.execute(
            f"pragma table_info({table})"
        )
    }


def sqlite_indexes(connection: sqlite3.Connection) -> set[Index]:
    found = set()
    for (table,) in _tables(connection):
        listed = connection.execute(f"pragma index_list({table})").fetchall()
        for _, name, is_unique, _, _ in listed:
            columns = tuple(row[2] for row in connection.execute(f"pragma index_info({name})"))
            ((sql,),) = connection.execute("select sql from sqlite_master where name = ?", (name,))
            _, _, condition = (sql or "").replace("\n", " ").partition(" where ")
            found.add(Index(table, columns, bool(is_unique), _condition(condition)))
        if "pk" not in {row[3] for row in listed}:  # the key is the rowid
            info = connection.execute(f"pragma table_info({table})")
            keys = tuple(row[1] for row in info if row[5])
            found.add(Index(table, keys, is_unique=True, condition=""))
    return found


def _type(name: str) -> str:
    return "bigint" if name == "integer" else name  # a key that SQLite numbers


def _tables(connection: sqlite3.Connection) -> list[tuple[str]]:
    return connection.execute("select name from sqlite_master where type = 'table'").fetchall()


def _condition(text: str) -> str:
    """Return a condition in one form: PostgreSQL prints it with casts, parentheses and arrays."""
    text = re.sub(r"::[a-z]+(\[\])?", "", text)
    text = re.sub(r"= any \(+array\[(.*?)\]\)+", r"in \1", text.lower())
    return re.sub(r"[()\s]", "", text)


@pytest.mark.postgres
async def test_both_kinds_have_the_same_schema(connection: sqlite3.Connection) -> None:
    with closing(connection):
        columns, indexes = sqlite_columns(connection), sqlite_indexes(connection)
    async with postgres_url() as url:
        name = url.rpartition("/")[2]
        rows = shared_server().sql(_COLUMNS, name)
        definitions = shared_server().sql(_INDEXES, name)
        collations = shared_server().sql(_COLLATIONS, name)

    assert {Column(*row) for row in rows} == columns
    found = set()
    for table, definition in definitions:
        matched = re.fullmatch(r".* USING btree \((.*?)\)(?: WHERE (.*))?", definition)
        assert matched, definition
        names = tuple(matched[1].replace('"', "").split(", "))
        found.add(Index(table, names, "UNIQUE" in definition, _condition(matched[2] or "")))
    assert (indexes - found, found - indexes) == (set(), set())
    assert collations == [], "text is compared by its bytes"
