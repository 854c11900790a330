"""The named statements: all are used, use an index, and run on both kinds of database."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from internal.agent.store.retention.expired_rows import PRUNE_QUERIES, PRUNE_SESSION
from internal.agent.store.sessions import _DELETE_CONTENTS
from internal.storage import queries
from internal.storage.sqlite.connection import connect
from internal.storage.sqlite.schema import prepare_file
from tests import ROOT

STORES = ROOT / "internal/agent/store"
SMALL = {
    "SCAN event_log",  # a table of one row
    "SCAN event_readers",  # a row for each receiver of the settings
    "SCAN processes",  # a row for each gateway and worker
    "SCAN leaderships",  # a row for each account of a chat service, and one for webhooks
    "SCAN hosts USING INDEX sqlite_autoindex_hosts_1",  # a row for each host
    "SCAN hosts USING COVERING INDEX sqlite_autoindex_hosts_1",
    "SCAN CONSTANT ROW",  # a select without a table
    "SCAN run_displays USING INDEX run_displays_open",  # an index of the open displays alone
    "SCAN usage USING INDEX usage_not_summed",  # an index of the usage of unfinished runs alone
    "SCAN people",  # a row for each person whose runs are queued
    "SCAN active_chats",  # the chats of an account that have sessions
    "SCAN own",  # a single row
    "SCAN all_sessions",  # a page
    "SCAN sessions_of_owner",  # a page
    "SCAN listed",  # two pages, and the sessions of unfinished runs
    "SCAN below",  # a run and the subtasks below it
    "SCAN parts",  # the two selects inside
}


def used() -> set[str]:
    """Every name that a store hands to a Statement, Batch or Lookup."""
    names = {*_DELETE_CONTENTS, *PRUNE_QUERIES, *PRUNE_SESSION}
    for file in STORES.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        names |= set(re.findall(r'(?:Statement|Batch|Lookup)\(\s*"(\w+)"', text))
    return names


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    prepare_file(tmp_path / "larkspur.db")
    with closing(connect(tmp_path / "larkspur.db", writes=True)) as opened:
        yield opened


def test_every_statement_exists_and_every_query_is_used() -> None:
    assert used() == queries.load().keys()


def test_no_query_scans_a_table(connection: sqlite3.Connection) -> None:
    values = dict.fromkeys(map(str, range(1, 33)))
    scans = []
    for name, sql in queries.load().items():
        plan = [row[3] for row in connection.execute(f"explain query plan {sql}", values)]
        scans += [
            (name, step)
            for step in plan
            if step.startswith("SCAN") and not step.startswith("SCAN (") and step not in SMALL
        ]  # in parentheses: what a select inside returns
    assert scans == []


def test_parameters_are_numbered_without_gaps() -> None:
    numbers = {
        name: sorted({int(number) for number in re.findall(r"\$(\d+)", sql)})
        for name, sql in queries.load().items()
    }
    gaps = {name: found for name, found in numbers.items() if found != [*range(1, len(found) + 1)]}
    assert gaps == {}


def test_queries_avoid_what_postgresql_does_not_support() -> None:
    words = ("rowid", "json", "offset", "for update", "insert or", "replace into", "ifnull",
             "glob", "pragma", "strftime", '"', "`", "?")  # fmt: skip
    statements = {name: sql.lower() for name, sql in queries.load().items()}
    unsupported = [
        (name, word) for name in statements for word in words if word in statements[name]
    ]
    assert unsupported == []
    without_cast = [
        name for name, sql in statements.items() if re.search(r"\$\d+ is (not )?null", sql)
    ]
    assert without_cast == [], "PostgreSQL wants a cast there"


def test_duplicate_names_are_rejected() -> None:
    twice = "-- name: a\nselect 1;\n\n-- name: a\nselect 2;\n"
    with pytest.raises(ValueError, match="unique name"):
        queries.parse(twice)


def test_a_statement_without_a_name_is_rejected() -> None:
    with pytest.raises(ValueError, match="unique name"):
        queries.parse("-- name: a\nselect 1;\n\nselect 2;\n")


def test_a_statement_may_span_lines() -> None:
    assert queries.parse("-- about\n\n-- name: a\nselect 1,\n  2;\n") == {"a": "select 1,\n  2"}
