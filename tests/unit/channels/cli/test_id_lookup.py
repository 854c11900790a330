"""Complete and abbreviated ids."""

import json

import pytest

from internal.channels.cli.client import GatewayClient, GatewayError
from internal.channels.cli.command_output import short_ids
from internal.channels.cli.id_lookup import find_id, find_session, find_task
from internal.channels.cli.records import TaskItem
from internal.channels.cli.transports.http import HttpEndpoint, HttpTransport
from internal.channels.cli.transports.interface import drive
from tests.support.http_answers import AnsweringServer

IDS = ["session-2abc", "session-2abd", "session-3xyz"]


@pytest.mark.parametrize("written", ["session-3xyz", "session-3", "3x", "xyz"])
def test_part_that_matches_one_id_is_enough(written: str) -> None:
    assert find_id(written, IDS) == "session-3xyz"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("2ab", "2ab is ambiguous: 2 ids match."),
        ("9", "No id begins or ends with 9."),
        ("", "is ambiguous"),
    ],
)
def test_ambiguous_and_unknown_ids_are_usage_errors(written: str, message: str) -> None:
    with pytest.raises(GatewayError, match=message) as error:
        find_id(written, IDS)
    assert error.value.code == 2


def test_short_ids_are_unique_endings_that_are_found() -> None:
    known = ["session-2abcdefgh", "session-2zzzdefgh", "session-2abcdxxxx", "question-2abcdyyyy-1"]
    short = short_ids(known)
    assert [*short.values()] == ["cdefgh", "zdefgh", "xxxx", "yyyy-1"]
    assert [find_id(one, known) for one in short.values()] == known


def client_of(server: AnsweringServer, *statuses: str) -> GatewayClient:
    """Return a client of a gateway with a task of each status, newest first."""
    tasks = [
        TaskItem(f"task-{n}", "session-1", "do", "cli", "m", status, None, "", 0)._asdict()
        for n, status in enumerate(statuses)
    ]
    server.answers["/api/tasks"] = (200, json.dumps({"tasks": tasks}).encode())
    session = {
        "session_id": "session-1",
        "title": "t",
        "channel": "cli",
        "updated": "",
        "status": None,
        "tasks": 1,
        "stop_reason": None,
        "calls_not_run": 0,
    }
    server.answers["/api/sessions"] = (200, json.dumps({"sessions": [session]}).encode())
    return GatewayClient(HttpTransport(HttpEndpoint(server.url, lambda: "t"), lambda: None))


def test_task_of_a_session_is_the_oldest_active_one(server: AnsweringServer) -> None:
    client = client_of(server, "completed", "running", "waiting", "completed")
    assert drive(find_task(client, "session-1")).task_id == "task-2"


def test_task_of_an_idle_session_is_the_newest(server: AnsweringServer) -> None:
    client = client_of(server, "failed", "completed")
    assert drive(find_task(client, "session-1")).task_id == "task-0"


def test_session_is_found_by_a_task(server: AnsweringServer) -> None:
    assert drive(find_session(client_of(server, "completed"), "task-0")) == "session-1"
