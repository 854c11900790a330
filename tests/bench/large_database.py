"""A database as after years of use: rows as runs leave them, inserted in bulk."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import asyncpg

from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.tasks import Origin, RunSpec
from internal.agent.domain.usage import Usage
from internal.agent.store.encoding import to_json
from internal.storage.migrations import migrations
from internal.storage.sqlite.schema import prepare_file

PEOPLE = 50
"""People besides the owner of the gateway, who has every second session."""

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_SPEC = to_json(RunSpec(workspace="/home/heron/larkspur/workspaces/reports"))
_USAGE = to_json(Usage(1_200, 340, 5_000, 0))
_ANSWER = "The report has three parts: sales per region, sales per month, and what changed. " * 4
_EVENTS = (
    "workflow.input.received",
    "workflow.lifecycle.updated",
    "workflow.node.started",
    "workflow.node.output.summary",
    "workflow.tool.started",
    "workflow.tool.completed",
    "workflow.node.completed",
    "workflow.plan.updated",
    "workflow.lifecycle.updated",
    "workflow.result.final",
)


class Size(NamedTuple):
    """Amount of stored data. Each task has ten events, two messages and a usage of one model."""

    sessions: int = 20_000
    tasks: int = 100_000
    rare: int = 20
    """Number of the oldest tasks that failed, were cancelled, and wait for an answer, each."""


def create_sqlite(path: Path, size: Size) -> None:
    """Create a database file with many rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    prepare_file(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("pragma synchronous = off")
        for table, columns, rows in large_tables(size):
            connection.execute("begin")
            marks = ", ".join("?" * (columns.count(",") + 1))
            connection.executemany(f"insert into {table} ({columns}) values ({marks})", rows)  # noqa: S608 - below
            connection.execute("commit")
        for statement in derived_rows("sqlite"):
            connection.execute(statement)
        connection.execute("pragma wal_checkpoint(truncate)")


async def fill_postgres(url: str, size: Size) -> None:
    """Insert many rows into an empty database with the tables of Larkspur."""
    connection = await asyncpg.connect(url)
    try:
        for table, columns, rows in large_tables(size):
            await connection.copy_records_to_table(table, records=rows, columns=columns.split(", "))
        for statement in derived_rows("postgres"):
            await connection.execute(statement)
        await connection.execute("vacuum analyze")
    finally:
        await connection.close()


def derived_rows(kind: str) -> list[str]:
    """Return the statements that compute the columns the product keeps up to date with each row."""
    steps = [each for each in migrations(kind) if each.name == "lists_and_sums"]
    found = [statement for step in steps for statement in step.statements]
    return [
        *(each for each in found if each.startswith(("update", "insert"))),
        (
            "update event_log set head = (select max(position) from events),"
            " arrivals = (select count(*) from runs)"
        ),
    ]


def large_tables(size: Size) -> Iterator[tuple[str, str, Iterator[Sequence[object]]]]:
    """Yield table, columns and rows, for both kinds of database."""
    yield (
        "sessions",
        "id, channel, owner, created, updated, scope, title, ended, seen, named",
        (
            (session(n), _channel(n), owner(n), *(2 * (_time(n * 5),)), "", f"Report {n}",
             _time(n * 5), _time(n * 5), 1)
            for n in range(size.sessions)
        ),
    )  # fmt: skip
    numbers = range(size.tasks)
    yield (
        "tasks",
        ("id, session_id, kind, lane, team_id, principal, status, stop_reason, created, updated,"
        " origin, spec, attachments, instruction"),
        (
            (task(n), _session_of(n, size), "chat", _session_of(n, size), "default",
             _owner_of(n, size), status(n, size), _stop_reason(n, size), _time(n), _time(n),
             to_json(Origin(_channel(_place(n, size)), _owner_of(n, size))), _SPEC, "[]",
             f"Write report {n}, with the sales per region and per month of the last quarter.")
            for n in numbers
        ),
    )  # fmt: skip
    yield (
        "runs",
        ("id, task_id, session_id, lane, status, priority, arrival, fence, last_seq, attempt,"
        " crashes, not_before, owner, lease_until, terminal, created, started, ended, stop_reason,"
        " used_seconds, cost, usage, error, answer"),
        (
            (run(n), task(n), _session_of(n, size), _session_of(n, size), status(n, size), 1, n,
             1, 10, 1, 0, "", "", "", 0, _time(n), _time(n), _time(n), _stop_reason(n, size), 0.0,
             0.01, _USAGE, "", _ANSWER)
            for n in numbers
        ),
    )  # fmt: skip
    yield (
        "usage",
        ("session_id, run_id, model, input_tokens, output_tokens, cache_read_tokens,"
        " cache_write_tokens, cost, recorded, principal"),
        (
            (_session_of(n, size), run(n), f"claude-{n % 7}", 1_200, 340, 5_000, 0,
             None if n % 7 == 0 else 0.01, _time(n), _owner_of(n, size))
            for n in numbers
        ),
    )  # fmt: skip
    yield (
        "messages",
        "session_id, number, run_id, created, kind, message",
        (
            (_session_of(n, size), 2 * (n // size.sessions) + half, run(n), _time(n),
             ("task", "answer")[half - 1],
             json.dumps({"role": ("user", "assistant")[half - 1],
                         "parts": [{"type": "text", "text": _ANSWER}]}))
            for n in numbers for half in (1, 2)
        ),
    )  # fmt: skip
    yield (
        "inbox",
        ("channel, app, message_id, chat_id, principal, received, status, session_id, run_id, text,"
        " raw"),
        (
            (_channel(_place(n, size)), "", f"om_{n:028}", "", _owner_of(n, size), _time(n),
             "handled", _session_of(n, size), run(n), f"Write report {n}", "{}")
            for n in numbers
        ),
    )  # fmt: skip
    yield (
        "outbox",
        ("key, channel, app, chat_id, reply_to, run_id, question_id, status, attempts,"
        " next_attempt, created, settled, remote_id, failure, error, body"),
        (
            (f"reply:{run(n)}", "lark", "cli_1", f"oc_{n % 500}", f"om_{n:028}", run(n), "", "sent",
             1, "", _time(n), _time(n), f"om_r{n:027}", "", "", _ANSWER)
            for n in numbers
        ),
    )  # fmt: skip
    yield "questions", _QUESTION_COLUMNS, _questions(size)
    yield (
        "audit_entries",
        "at, principal, via, action, target, detail",
        ((_time(n), owner(n), "web", "task.stop", task(n), "") for n in numbers),
    )
    yield (
        "artifacts",
        ("id, session_id, task_id, run_id, shared_run_id, call_id, team_id, principal, maker, type,"
        " version, newest, media_type, sha256, size, uri, created, favourite, source, name,"
        " caption, search"),
        (
            (f"artifact-{n:020}", _session_of(n, size), task(n), run(n), run(n), "call-1",
             "default", _owner_of(n, size), "shell", ("document", "table", "text")[n % 3], 1, 1,
             "application/pdf", f"{n:064}", 2_048, f"attachment:{n:064}", _time(n),
             int(n % 999 == 0), "", f"report {n}.pdf", "", f"report {n}.pdf\n")
            for n in numbers
        ),
    )  # fmt: skip
    yield (
        "event_runs",
        "number, session, session_id, task_id, run_id, ids",
        (
            (n + 1, _place(n, size) + 1, _session_of(n, size), task(n), run(n), "")
            for n in numbers
        ),
    )  # fmt: skip
    yield (
        "events",
        "position, session, run, seq, event, ts, node_id, node_kind, payload",
        (
            (10 * n + seq, _place(n, size) + 1, n + 1, seq, _EVENTS[seq - 1], _time(n), None, None,
             f'{{"status":"running","phase":"execute","text":"{_ANSWER}"}}')
            for n in numbers for seq in range(1, 11)
        ),
    )  # fmt: skip


_QUESTION_COLUMNS = (
    "id, run_id, task_id, session_id, principal, chat, audience, status, asked, expires, question"
)


def _questions(size: Size) -> Iterator[Sequence[object]]:
    """Yield an answered question for every fifth task, and open questions of the waiting tasks."""
    for n in range(0, size.tasks, 5):
        yield _question(n, size, "answered")
    for n in range(2 * size.rare, 3 * size.rare):
        yield _question(n, size, "open")


def _question(n: int, size: Size, state: str) -> Sequence[object]:
    name = f"question-{state}-{n:020}"
    question = {"id": name, "kind": "clarify", "title": "Which region?", "body": "Name one."}
    return (
        name, run(n), task(n), _session_of(n, size), _owner_of(n, size), "", "principal", state,
        _time(n), "2099-01-01T00:00:00.000Z", json.dumps(question),
    )  # fmt: skip


def session(n: int) -> str:
    """Return the id of a session."""
    return f"session-{n:020}"


def task(n: int) -> str:
    """Return the id of a task."""
    return f"task-{n:023}"


def run(n: int) -> str:
    """Return the id of the run of a task."""
    return f"run-{n:024}"


def owner(n: int) -> str:
    """Return the owner of a session."""
    return f"lark:ou_{n % PEOPLE:028}" if n % 2 else "local"


def status(n: int, size: Size) -> str:
    """Return the status of a task: the oldest ones are the rare ones."""
    names = ("failed", "cancelled", "waiting")
    return names[n // size.rare] if n < 3 * size.rare else "completed"


def _stop_reason(n: int, size: Size) -> str:
    names = ("interrupted", "user_stop", "await_user_input")
    return names[n // size.rare] if n < 3 * size.rare else "final_answer"


def _place(n: int, size: Size) -> int:
    """Return which session a task is in: in turn, so that a page of tasks has many sessions."""
    return n % size.sessions


def _session_of(n: int, size: Size) -> str:
    return session(_place(n, size))


def _owner_of(n: int, size: Size) -> str:
    return owner(_place(n, size))


def _channel(n: int) -> str:
    return "lark" if n % 2 else "web"


def _time(n: int) -> str:
    """Return when a task was submitted: every four minutes."""
    return rfc3339(_BEGIN + timedelta(minutes=4 * n))
