"""The terminal's HTTP side against servers that are no gateways, or sick ones."""

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from internal.channels.cli.attached import Attached
from internal.channels.cli.exit_codes import CliExit
from internal.channels.cli.http_client import Door, Ended, Unreachable
from internal.channels.cli.output import Output
from internal.channels.cli.task_request import OneShotRequest

ORDER = OneShotRequest("do it", "text", {"workspace": "/"})
MADE = {"session_id": "session-1", "task_id": "task-1", "run_id": "run-1", "status": "queued"}


class Server(http.server.ThreadingHTTPServer):
    """Answers each path with a status and a body; notes what was asked."""

    answers: dict[str, tuple[int, bytes]]
    asked: list[tuple[str, str, str | None]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server: Any = self.server
        self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.partition("?")[0]
        server.asked.append((self.command, path, self.headers["last-event-id"]))
        status, body = server.answers[path]
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815 - the name is what http.server looks for

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as made:
        made.answers, made.asked = {}, []
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def attached(server: Server, patience_seconds: float = 0.4) -> Attached:
    return Attached(Door(server.url, "t"), lambda: None, Output(), patience_seconds)


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
        (200, b"<html>", 1, "not as a gateway"),
        (200, b"[]", 1, "not as a gateway"),
        (200, b"{}", 1, "not as a gateway"),
    ],
)
def test_a_refusal_is_its_sentence(
    server: Server, status: int, body: bytes, code: int, sentence: str
) -> None:
    server.answers["/api/tasks"] = (status, body)
    with pytest.raises(CliExit, match=sentence) as leaving:
        attached(server).run(ORDER)
    assert leaving.value.code == code


def test_a_full_house_is_waited_for(server: Server) -> None:
    server.answers["/api/tasks"] = (429, refusal("Too many."))
    with pytest.raises(CliExit, match="did not come back"):
        attached(server).run(ORDER)
    assert len(server.asked) > 1


def test_a_gateway_that_stays_away_is_given_up(
    server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    server.answers["/api/tasks"] = (201, json.dumps(MADE).encode())
    server.answers["/api/sse"] = (200, b"")
    with pytest.raises(CliExit, match="task-1 is stored") as leaving:
        attached(server).run(ORDER)
    assert leaving.value.code == 1
    assert capfd.readouterr().err.count("went away") == 1


def test_a_log_that_was_replaced_ends_the_shot(server: Server) -> None:
    server.answers["/api/tasks"] = (201, json.dumps(MADE).encode())
    server.answers["/api/sse"] = (200, b"event: stream.reset\ndata: {}\n\n")
    with pytest.raises(CliExit, match="does not know this run"):
        attached(server).run(ORDER)


def test_a_stream_goes_on_behind_its_last_row(server: Server) -> None:
    server.answers["/api/sse"] = (200, b"id: abc-7\nevent: x\ndata: {}\n\n")
    frames = list(Door(server.url, "t").stream("/api/sse", "abc-6"))
    assert [(frame.id, frame.data) for frame in frames] == [("abc-7", b"{}")]
    assert server.asked == [("GET", "/api/sse", "abc-6")]


def test_a_stop_that_comes_too_late_is_no_error_of_ours(server: Server) -> None:
    server.answers["/api/tasks/task-1/stop"] = (409, refusal("The task has ended."))
    with pytest.raises(Ended):
        Door(server.url, "t").stop("task-1")


def test_nobody_there_is_said_so() -> None:
    door = Door("http://127.0.0.1:1", "t")
    assert not door.answers()
    with pytest.raises(Unreachable):
        door.get("/api/tasks")
    with pytest.raises(Unreachable):
        door.stop("task-1")


@pytest.mark.parametrize(
    "url", ["", "localhost:1", "ftp://127.0.0.1", "http://[::1", "http://x:99999"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(CliExit) as leaving:
        Door(url, "t")
    assert leaving.value.code == 2
