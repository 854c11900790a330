"""Answers are corrected by the requests to which they belong."""

from typing import Any

import pytest
from mcp.shared.message import SessionMessage
from mcp_types import (
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from internal.mcp.lenient_transport import OpenRequests, UnreadableMessage
from internal.mcp.message_parser import DamagedMessage


@pytest.fixture
def requests() -> OpenRequests:
    """A list of tools and a call that have no answer yet."""
    found = OpenRequests()
    for number, method in ((1, "tools/list"), (2, "tools/call")):
        found.note(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=number, method=method)))
    return found


def corrected(requests: OpenRequests, message: Any) -> list[Any]:
    """Return the messages that the SDK reads in place of a message."""
    received = message if isinstance(message, Exception) else SessionMessage(message)
    items = requests.correct(received)
    return [each.message if isinstance(each, SessionMessage) else each for each in items]


def damaged(number: int | None) -> UnreadableMessage:
    return UnreadableMessage(DamagedMessage(number, "{…\u202e"))


def test_an_answer_has_the_form_of_its_request(requests: OpenRequests) -> None:
    listed = JSONRPCResponse(jsonrpc="2.0", id=1, result={"tools": None})
    called = JSONRPCResponse(jsonrpc="2.0", id="2", result={"isError": None})
    other = JSONRPCResponse(jsonrpc="2.0", id=3, result={"tools": None})
    assert [each.result for each in corrected(requests, listed)] == [{"tools": []}]
    assert [each.result for each in corrected(requests, called)] == [
        {"content": [], "isError": False}
    ]
    assert [each.result for each in corrected(requests, other)] == [{}]


def test_a_damaged_message_fails_its_request_or_all(requests: OpenRequests) -> None:
    (failed,) = corrected(requests, damaged(2))
    assert (failed.id, failed.error.message) == (
        2,
        "a message that cannot be read: {…\\u202e",
    )
    assert [each.id for each in corrected(requests, damaged(None))] == [1]
    assert corrected(requests, damaged(None)) == []


def test_an_error_for_no_request_is_for_all(requests: OpenRequests) -> None:
    error = JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=-32700, message="what?"))
    assert [each.id for each in corrected(requests, error)] == [1, 2]


def test_a_cancelled_request_waits_for_nothing(requests: OpenRequests) -> None:
    params = {"requestId": 1}
    requests.note(
        SessionMessage(
            JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params)
        )
    )
    assert [each.id for each in corrected(requests, damaged(None))] == [2]


def test_requests_of_the_server_and_other_items_pass(requests: OpenRequests) -> None:
    asked = JSONRPCRequest(
        jsonrpc="2.0", id="ask", method="elicitation/create", params={"title": None, "message": "m"}
    )
    (found,) = corrected(requests, asked)
    assert found.params == {"message": "m"}
    error = ValueError("of the SDK")
    assert corrected(requests, error) == [error]
