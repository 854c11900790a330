"""Requests, errors and streams of the client, over blocking and threaded HTTP."""

import json
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from internal.channels.cli.client import GatewayClient, GatewayError, GatewayUnreachable
from internal.channels.cli.input_files import InputFile, check_file
from internal.channels.cli.records import StreamBatch, StreamRow, TaskRequest
from internal.channels.cli.transports.http import HttpEndpoint, HttpTransport
from internal.channels.cli.transports.interface import Transport, drive
from internal.channels.cli.transports.threaded import ThreadedHttpTransport
from tests.support.http_answers import AnsweringServer

ENDED = json.dumps({"error": {"code": "conflict", "message": "The task has ended."}}).encode()


def client(server: AnsweringServer) -> GatewayClient:
    return GatewayClient(blocking(server.url), retry_seconds=0.3)


def blocking(url: str) -> Transport:
    return HttpTransport(HttpEndpoint(url, lambda: "t"), lambda: None)


def test_stop_of_an_ended_task_is_not_an_error(server: AnsweringServer) -> None:
    server.answers["/api/tasks/task-1/stop"] = (409, ENDED)
    drive(client(server).stop("task-1"))
    assert [path for _, path, _ in server.asked] == ["/api/tasks/task-1/stop"]


def test_refused_stop_is_an_error(server: AnsweringServer) -> None:
    server.answers["/api/tasks/task-1/stop"] = (404, ENDED)
    with pytest.raises(GatewayError) as error:
        drive(client(server).stop("task-1"))
    assert (error.value.code, error.value.status) == (2, 404)


def test_id_is_quoted_in_a_path(server: AnsweringServer) -> None:
    server.answers["/api/people/lark%2Fa%20b"] = (204, b"")
    drive(client(server).unpair("lark/a b"))
    assert server.asked == [("DELETE", "/api/people/lark%2Fa%20b", None)]


def test_request_that_is_not_idempotent_is_sent_once() -> None:
    unreachable = GatewayClient(blocking("http://127.0.0.1:1"), retry_seconds=60)
    with pytest.raises(GatewayUnreachable):
        drive(unreachable.resume("task-1"))


@pytest.mark.parametrize(
    ("path", "send"),
    [
        ("/api/tasks/1/steer", lambda busy: busy.steer("1", "more")),
        ("/api/tasks/1/stop", lambda busy: busy.stop("1")),
        ("/api/questions/1/answer", lambda busy: busy.answer("1", {"decision": "approve"})),
    ],
)
def test_a_repeated_request_has_the_same_idempotency_key(
    server: AnsweringServer,
    path: str,
    send: Callable[[GatewayClient], Coroutine[Any, Any, object]],
) -> None:
    server.answers |= {path: (429, b"{}"), "/health": (200, b"{}")}
    with pytest.raises(GatewayUnreachable):
        drive(send(GatewayClient(blocking(server.url), 0.6)))
    keys = [json.loads(body)["idempotency_key"] for body in server.bodies if body]
    assert len(keys) > 1
    assert len(set(keys)) == 1


def test_retries_are_reported_once(server: AnsweringServer) -> None:
    reported: list[str] = []
    busy = GatewayClient(blocking(server.url), 0.6, lambda reason: reported.append(str(reason)))
    server.answers["/api/rules"] = (429, b"{}")
    server.answers["/health"] = (200, b"{}")
    with pytest.raises(GatewayUnreachable):
        drive(busy.rules())
    assert len(reported) == 1
    assert [path for _, path, _ in server.asked].count("/api/rules") > 2


def test_response_with_missing_fields_is_an_error(server: AnsweringServer) -> None:
    server.answers["/api/rules"] = (200, b'{"rules": [{"number": 1}]}')
    with pytest.raises(GatewayError, match="not as a Larkspur gateway"):
        drive(client(server).rules())


async def test_stream_continues_after_its_last_event(server: AnsweringServer) -> None:
    server.answers["/api/sse"] = (200, b"id: a-1\nevent: x\ndata: {}\n\nevent: hb\ndata: {}\n\n")
    server.answers["/health"] = (200, b"{}")
    threaded = GatewayClient(
        ThreadedHttpTransport(HttpEndpoint(server.url, lambda: "t"), lambda: None)
    )
    seen: list[StreamBatch] = []
    async with aclosing(threaded.watch("session-1")) as batches:
        async for batch in batches:
            seen.append(batch)
            if len(seen) == 2:
                break
    assert [batch.rows for batch in seen] == [[StreamRow("a-1", b"{}")]] * 2
    asked = [last for _, path, last in server.asked if path == "/api/sse"]
    assert asked == [None, "a-1"]


async def test_lost_connection_is_reported_once(server: AnsweringServer) -> None:
    server.answers["/api/sse"] = (200, b"")
    server.answers["/health"] = (200, b"")
    threaded = GatewayClient(
        ThreadedHttpTransport(HttpEndpoint(server.url, lambda: "t"), lambda: None)
    )
    batches = threaded.watch("session-1", give_up_seconds=0.6)
    assert not (await anext(batches)).is_connected
    with pytest.raises(GatewayUnreachable):
        await anext(batches)


STORED = b'{"name": "n", "media_type": "m", "uri": "attachment:ab", "sha256": "ab", "size": 3}'


def picture(content: bytes) -> InputFile:
    return InputFile("a b.png", "image/png", len(content), content=content)


def test_an_upload_is_the_file_itself(server: AnsweringServer) -> None:
    server.answers["/api/attachments"] = (201, STORED)
    stored = drive(client(server).upload(picture(b"abc")))
    assert stored == {"name": "n", "media_type": "m", "uri": "attachment:ab"}
    assert (server.asked, server.bodies) == ([("PUT", "/api/attachments", None)], [b"abc"])


def test_an_upload_that_is_refused_early_has_the_reason_of_the_gateway() -> None:
    with refusing_server(b'{"error": {"message": "The disk is full."}}') as url:
        refused = GatewayClient(blocking(url), retry_seconds=0.0)
        with pytest.raises(
            GatewayError, match=r"The file a b\.png cannot be sent: The disk is full"
        ) as error:
            drive(refused.upload(picture(bytes(50_000_000))))
    assert error.value.status == 413


@contextmanager
def refusing_server(body: bytes) -> Iterator[str]:
    """Serve one request: answer before its body is read, and close the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            accepted, _ = listener.accept()
            with accepted:
                accepted.recv(65_536)
                head = f"HTTP/1.1 413 Too Large\r\nContent-Length: {len(body)}\r\n\r\n"
                accepted.sendall(head.encode() + body)
                accepted.shutdown(socket.SHUT_WR)
                while accepted.recv(1_000_000):
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def test_an_upload_is_ended_by_its_check(server: AnsweringServer, tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(bytes(3_000_000))
    pieces: list[int] = []

    def check() -> None:
        pieces.append(1)
        if len(pieces) == 2:
            raise GatewayError(130, "stopped")

    with pytest.raises(GatewayError, match="stopped"):
        drive(client(server).upload(check_file(str(path)), check))
    assert len(pieces) == 2


def test_a_file_that_is_gone_is_named(server: AnsweringServer, tmp_path: Path) -> None:
    path = tmp_path / "gone.txt"
    path.write_text("x")
    file = check_file(str(path))
    path.unlink()
    with pytest.raises(GatewayError, match=r"gone\.txt does not exist"):
        drive(client(server).upload(file))


def test_a_task_refers_to_its_uploaded_files(server: AnsweringServer) -> None:
    server.answers |= {
        "/api/attachments": (201, STORED),
        "/api/tasks": (201, b'{"session_id": "s", "task_id": "t", "run_id": "r"}'),
    }
    drive(client(server).submit(TaskRequest("look", {}, files=[picture(b"abc")])))
    assert json.loads(server.bodies[-1])["attachments"] == [
        {"name": "n", "media_type": "m", "uri": "attachment:ab"}
    ]


ARTIFACT = {
    "artifact_id": "artifact-1",
    "session_id": "session-1",
    "name": "a.md",
    "version": 1,
    "type": "text",
    "media_type": "text/markdown",
    "size": 3,
    "sha256": "ab",
    "caption": "",
    "created": "2026-01-02T03:04:05Z",
}


def test_artifacts_are_read_page_by_page(server: AnsweringServer) -> None:
    page = {"artifacts": [ARTIFACT, ARTIFACT], "next_cursor": "artifact-1"}
    server.answers["/api/artifacts"] = (200, json.dumps(page).encode())
    assert len(drive(client(server).artifacts({"q": "a"}, limit=6))) == 6
    assert len(server.asked) == 3


async def test_content_arrives_in_pieces_and_a_refusal_is_an_error(
    server: AnsweringServer,
) -> None:
    server.answers["/api/artifacts/a/content"] = (200, b"x" * 200_000)
    server.answers["/api/artifacts/b/content"] = (404, ENDED)
    pieces = [piece async for piece in client(server).artifact_content("a")]
    assert b"".join(pieces) == b"x" * 200_000
    with pytest.raises(GatewayError, match="The task has ended"):
        await anext(client(server).artifact_content("b"))


def listed(task_id: str, parent: str | None = None, **more: object) -> dict[str, object]:
    fields = dict.fromkeys(("started_at", "completed_at", "stop_reason"))
    texts = dict.fromkeys(("session_id", "task", "channel", "model", "created", "path"), "")
    known = {"task_id": task_id, "parent_task_id": parent, "status": "completed", "cost": 0.5}
    known["calls_not_run"] = 0
    return {**fields, **texts, **known, **more}


def test_trees_have_their_subtasks_by_number(server: AnsweringServer) -> None:
    tasks = [
        listed("c", "b", path="task 3 · x"),
        listed("d", "a", path="task 10"),
        listed("b", "a", path="task 2"),
        listed("other", cost=None),
        listed("a"),
    ]
    server.answers["/api/tasks"] = (200, json.dumps({"tasks": tasks, "next": None}).encode())
    newest, tree = drive(client(server).task_trees())
    assert (newest.item.task_id, newest.cost, newest.subtasks) == ("other", 0.0, [])
    assert [one.task_id for one in tree.subtasks] == ["b", "c", "d"]
    assert (tree.item.task_id, tree.cost) == ("a", 0.5), "what its subtasks cost is in it"


def test_trees_are_read_until_there_are_enough_tasks(server: AnsweringServer) -> None:
    tasks = [listed("b", "a", path="task 1"), listed("a"), listed("other")]
    server.answers["/api/tasks"] = (200, json.dumps({"tasks": tasks, "next": "other"}).encode())
    assert len(drive(client(server).task_trees(limit=3))) == 3
    assert len(server.asked) == 2, "the subtask does not count"
