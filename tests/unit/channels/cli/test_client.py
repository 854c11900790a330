"""Requests, errors and streams of the client, over blocking and threaded HTTP."""

import json
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Any

import pytest

from internal.channels.cli.client import GatewayClient, GatewayError, GatewayUnreachable
from internal.channels.cli.records import StreamBatch, StreamRow
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
