"""The bridge between standard input and output and the gateway, with fixed answers."""

import io
import json
import os
from typing import Any

import pytest

from internal.channels.cli.mcp_stdio import MAX_MESSAGE_BYTES, McpBridge
from internal.channels.cli.transports.http import HttpEndpoint
from tests.support.http_answers import AnsweringServer

PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}


def converse(url: str, *lines: bytes) -> list[Any]:
    """Write lines as a client and return the messages that it reads."""
    endpoint = HttpEndpoint(url, lambda: "t")
    sink = io.BytesIO()
    McpBridge(lambda: endpoint, io.BytesIO(b"\n".join(lines)), sink).run()
    return [json.loads(line) for line in sink.getvalue().splitlines()]


def error_of(server: AnsweringServer, status: int, body: bytes) -> tuple[Any, int, str]:
    """Return id, code and message of the response to a ping."""
    server.answers["/mcp"] = (status, body)
    (response,) = converse(server.url, json.dumps(PING).encode())
    return response["id"], response["error"]["code"], response["error"]["message"]


def test_a_response_is_one_line_whatever_its_form(server: AnsweringServer) -> None:
    server.answers["/mcp"] = (200, b'{\n "jsonrpc": "2.0",\n "id": 7, "result": {"a": "\xc3\xa9"}}')
    assert converse(server.url, json.dumps(PING).encode()) == [
        {"jsonrpc": "2.0", "id": 7, "result": {"a": "é"}}
    ]
    assert json.loads(server.bodies[0]) == PING


def test_an_error_of_the_protocol_is_passed_on(server: AnsweringServer) -> None:
    failure = {"jsonrpc": "2.0", "id": 7, "error": {"code": -32601, "message": "no"}}
    assert error_of(server, 404, json.dumps(failure).encode()) == (7, -32601, "no")


def test_an_error_of_the_gateway_becomes_one_of_the_protocol(server: AnsweringServer) -> None:
    body = json.dumps({"error": {"code": "unauthorized", "message": "Wrong token."}}).encode()
    assert error_of(server, 401, body) == (7, -32603, "Wrong token.")


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b"7", b'{"error": "no"}', b"\xff", b""])
def test_another_server_is_named_as_such(server: AnsweringServer, body: bytes) -> None:
    assert error_of(server, 200, body) == (
        *(7, -32603),
        "The gateway does not answer: it is not a Larkspur gateway with MCP.",
    )


def test_a_gateway_that_is_gone_is_reported() -> None:
    (response,) = converse("http://127.0.0.1:1", json.dumps(PING).encode())
    assert "Connection refused" in response["error"]["message"]


@pytest.mark.parametrize(
    "stream", [b"", b": ping\r\n\r\n", b'data: {"jsonrpc": "2.0", "method": "m"}\n\n']
)
def test_a_stream_that_ends_without_a_response_is_reported(
    server: AnsweringServer, stream: bytes
) -> None:
    server.answers["/mcp"] = (200, stream)
    server.media_type = "text/event-stream"
    *_, response = converse(server.url, json.dumps(PING).encode())
    assert response["error"]["message"] == "The gateway does not answer: the connection ended."


def test_a_message_that_is_too_long_ends_the_connection(server: AnsweringServer) -> None:
    long = json.dumps({**PING, "params": {"text": "a" * MAX_MESSAGE_BYTES}}).encode()
    (response,) = converse(server.url, long, json.dumps(PING).encode())
    assert (response["id"], response["error"]["message"]) == (None, "The message is too long.")
    assert server.bodies == []


def test_what_needs_no_response_is_not_sent(server: AnsweringServer) -> None:
    notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    answer = {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert converse(server.url, *(json.dumps(one).encode() for one in (notification, answer))) == []
    assert server.bodies == []


def test_a_client_that_has_gone_is_no_error(server: AnsweringServer) -> None:
    server.answers["/mcp"] = (200, json.dumps({**PING, "result": {}}).encode())
    endpoint = HttpEndpoint(server.url, lambda: "t")
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb", buffering=0) as sink:  # noqa: PTH123 - a descriptor
        McpBridge(lambda: endpoint, io.BytesIO(json.dumps(PING).encode()), sink).run()
    assert len(server.bodies) == 1
