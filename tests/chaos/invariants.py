"""Invariants of a data folder that hold after any number of crashes."""

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.http_client import SseFrame

Envelope = Mapping[str, Any]

TERMINAL = {"workflow.result.final", "workflow.result.cancelled"}
ANSWERED = "workflow.question.answered"
UNKNOWN = "interrupted, outcome unknown"
REPEATABLE = {"list_dir", "read_file", "search_files", "create_task", "subagent"}
ACCEPTED = 2
"""The number of events that are stored with a task, before its run starts."""
WAITING = {"queued", "running", "waiting"}


def have_ended(tasks: Iterable[Mapping[str, Any]]) -> bool:
    return all(task["status"] not in WAITING for task in tasks)


def check_order(ids: Sequence[str]) -> None:
    """Event ids have one epoch and increasing positions."""
    epochs = {wire_id.partition("-")[0] for wire_id in ids}
    positions = [int(wire_id.partition("-")[2]) for wire_id in ids]
    assert len(epochs) == 1
    assert positions == sorted(set(positions))


def group_by_run(events: Iterable[Envelope]) -> dict[str, list[Envelope]]:
    """Return the events of each run, with the runs in the order of their first event."""
    runs: dict[str, list[Envelope]] = defaultdict(list)
    for event in events:
        runs[event["run_id"]].append(event)
    return dict(runs)


def check_run(events: Sequence[Envelope]) -> None:
    """Sequence numbers have no gap, one terminal event is last, nodes and calls are closed."""
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert len({event["event_id"] for event in events}) == len(events)
    assert [event["event"] in TERMINAL for event in events].index(True) == len(events) - 1
    _check_nodes(events)
    _check_calls(events)


def _check_nodes(events: Sequence[Envelope]) -> None:
    opened: set[str] = set()
    for event in events:
        match event["event"]:
            case "workflow.node.started" if not event["node_id"].startswith("step:"):
                opened.add(event["node_id"])
            case "workflow.node.completed" | "workflow.node.failed":
                opened.discard(event["node_id"])
            case _:
                pass
    assert not opened


def _check_calls(events: Sequence[Envelope]) -> None:
    """Every started call has one later result. Only idempotent calls were started again."""
    started: Counter[str] = Counter()
    completed: Counter[str] = Counter()
    for event in events:
        call_id = event.get("payload", {}).get("call_id", "")
        if event["event"] == "workflow.tool.started":
            assert not completed[call_id], f"{call_id} was started again after its result"
            started[call_id] += 1
            if event["payload"]["tool_name"] not in REPEATABLE:
                assert started[call_id] == 1, f"{call_id} was started again"
        elif event["event"] == "workflow.tool.completed":
            is_refused = "not_run" in event["payload"].get("metadata", {})
            assert bool(started[call_id]) is not is_refused, event
            completed[call_id] += 1
    assert set(started) <= set(completed)
    assert set(completed.values()) <= {1}


def check_ledger(events: Sequence[Envelope], ledger: Path) -> None:
    """A side effect happened once, or its call is reported as unknown."""
    lines = Counter(ledger.read_text().split() if ledger.exists() else ())
    notes: dict[str, list[str]] = defaultdict(list)
    for event in events:
        if event["event"] == "workflow.tool.started" and "command" in event["payload"]["arguments"]:
            words = event["payload"]["arguments"]["command"].split()
            notes[words[1]].append(event["payload"]["call_id"])
    results = {
        event["payload"]["call_id"]: event["payload"].get("error")
        for event in events
        if event["event"] == "workflow.tool.completed"
    }
    assert set(lines) <= set(notes), "a line without a started call"
    for line, calls in notes.items():
        (call_id,) = calls
        match results[call_id]:
            case None:
                assert lines[line] == 1, f"{line} was written {lines[line]} times"
            case error:
                assert UNKNOWN in error, error
                assert lines[line] <= 1, f"{line} was written {lines[line]} times"


def check_lane(runs: Mapping[str, Sequence[Envelope]], events: Sequence[Envelope]) -> None:
    """Check that the runs of a lane do not overlap and are in the order of submission.

    A run that waits for an answer does not hold the lane. After the answer it continues before a
    later run that a crash interrupts.
    """
    running = ""
    started: list[str] = []
    answered: set[str] = set()
    for event in events:
        run_id, name = event["run_id"], event["event"]
        status = event["payload"]["status"] if name == "workflow.lifecycle.updated" else ""
        if name == ANSWERED:
            answered.add(run_id)
        if event["seq"] <= ACCEPTED or name == ANSWERED or status == "queued":
            continue
        if running != run_id:
            is_overtaken = run_id in answered and run_id in started
            assert not running or is_overtaken, f"{run_id} started before {running} had ended"
            started.append(run_id)
        running = "" if name in TERMINAL or status == "waiting" else run_id
    assert list(dict.fromkeys(started)) == list(runs)


def check_messages(messages: Sequence[Mapping[str, Any]], instructions: Mapping[str, str]) -> None:
    """Check that messages of each run are contiguous, and each call has one result right after it.

    `instructions` holds the instruction of each run, in the order in which the runs ended.
    """
    assert _deduplicate(message["run_id"] for message in messages) == list(instructions)
    open_calls: list[str] = []
    for message in messages:
        parts = message["parts"]
        results = [part["call_id"] for part in parts if part["type"] == "tool_result"]
        assert results == open_calls
        open_calls = [part["call_id"] for part in parts if part["type"] == "tool_call"]
        assert not open_calls or message["role"] == "assistant"
    assert not open_calls
    for run_id, text in instructions.items():
        first = next(message for message in messages if message["run_id"] == run_id)
        assert first["role"] == "user"
        assert text in json.dumps(first["parts"], ensure_ascii=False)


def _deduplicate(names: Iterable[str]) -> list[str]:
    result: list[str] = []
    for name in names:
        if result[-1:] != [name]:
            result.append(name)
    return result


def check_frames(live: Sequence[SseFrame], replay: Sequence[SseFrame]) -> None:
    """A reader that reconnected after each crash received the same bytes as a replay."""
    assert [frame.raw for frame in live if frame.id] == [frame.raw for frame in replay if frame.id]


_INCONSISTENCIES = (
    "select t.id from tasks t join runs on task_id = t.id where t.status <> runs.status",
    "select t.id from tasks t join runs r on task_id = t.id where t.stop_reason <> r.stop_reason",
    (
        "select id from runs join event_runs on run_id = id"
        " where last_seq <> (select max(seq) from events where run = number)"
    ),
    "select id from runs where status in ('queued', 'running', 'waiting')",
    "select number from inbox where status not in ('handled', 'withdrawn', 'returned')",
    "select run_id from checkpoints join runs on runs.id = run_id where status <> 'failed'",
    "select run_id from turn_log join runs on runs.id = run_id where status <> 'failed'",
    "select position from events, event_log where position > head",
)


def check_tables(ask: Callable[[str], list[tuple[Any, ...]]]) -> None:
    """The tables are consistent, and every run has ended."""
    for query in _INCONSISTENCIES:
        assert ask(query) == [], query


def check_file(database: Path) -> None:
    """The tables are consistent and the file is intact. No process may have it open."""
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        check_tables(lambda query: connection.execute(query).fetchall())
