"""One-shot tasks on a gateway that fails, or on another server."""

import json

import pytest

from internal.channels.cli.client import GatewayClient
from internal.channels.cli.exit_codes import CliExit
from internal.channels.cli.headless.runner import HeadlessRunner, OneShot
from internal.channels.cli.output import Output
from internal.channels.cli.records import TaskRequest
from internal.channels.cli.transports.http import HttpEndpoint, HttpTransport
from internal.channels.cli.transports.interface import drive
from tests.support.http_answers import AnsweringServer

SHOT = OneShot(TaskRequest("do it", {"workspace": "/"}))
MADE = {"session_id": "session-1", "task_id": "task-1", "run_id": "run-1", "status": "queued"}


def run(server: AnsweringServer) -> int:
    transport = HttpTransport(HttpEndpoint(server.url, lambda: "t"), lambda: None)
    client = GatewayClient(transport, retry_seconds=0.4)
    return drive(HeadlessRunner(client, Output(), reconnect_seconds=0.4).run(SHOT))


def refusal(message: str) -> bytes:
    return json.dumps({"error": {"code": "c", "message": message, "request_id": "r"}}).encode()


@pytest.mark.parametrize(
    ("status", "body", "code", "sentence"),
    [
        (400, refusal("Field x."), 2, "Field x."),
        (404, refusal("There is no session."), 2, "There is no session."),
        (401, refusal("Who?"), 3, "Who?"),
        (403, refusal("Not you."), 3, "Not you."),
        (503, refusal("The disk is full."), 1, "The disk is full."),
        (502, b"<html>", 1, "status 502"),
        (200, b"<html>", 1, "not as a Larkspur gateway"),
        (200, b"[]", 1, "not as a Larkspur gateway"),
        (200, b"{}", 1, "not as a Larkspur gateway"),
    ],
)
def test_error_response_sets_message_and_exit_code(
    server: AnsweringServer, status: int, body: bytes, code: int, sentence: str
) -> None:
    server.answers["/api/tasks"] = (status, body)
    with pytest.raises(CliExit, match=sentence) as exit_:
        run(server)
    assert exit_.value.code == code


def test_rate_limited_request_is_repeated(server: AnsweringServer) -> None:
    server.answers["/api/tasks"] = (429, refusal("Too many."))
    server.answers["/health"] = (200, b"{}")
    with pytest.raises(CliExit, match="does not answer: Too many") as exit_:
        run(server)
    assert exit_.value.code == 1
    assert len(server.asked) > 1


def test_unreachable_gateway_ends_the_task_with_1(
    server: AnsweringServer, capfd: pytest.CaptureFixture[str]
) -> None:
    server.answers["/api/tasks"] = (201, json.dumps(MADE).encode())
    server.answers["/api/sse"] = (200, b"")
    server.answers["/health"] = (200, b"")
    with pytest.raises(CliExit, match="task-1 is stored") as exit_:
        run(server)
    assert exit_.value.code == 1
    assert capfd.readouterr().err.count("waiting for it") == 1


def test_replaced_event_log_ends_the_task(server: AnsweringServer) -> None:
    server.answers["/api/tasks"] = (201, json.dumps(MADE).encode())
    server.answers["/api/sse"] = (200, b"event: stream.reset\ndata: {}\n\n")
    with pytest.raises(CliExit, match="event log was replaced"):
        run(server)
