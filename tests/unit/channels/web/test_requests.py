"""Reading and decoding requests."""

import asyncio
from typing import Any

import pytest

from internal.agent.domain.errors import InvalidRequest
from internal.channels.web.errors import HttpError
from internal.channels.web.requests import (
    ClientDisconnected,
    RequestContext,
    decode_body,
    decode_query,
    read_body,
    while_connected,
)
from internal.channels.web.schemas import CreateTaskRequest, TasksQuery

JSON = [(b"content-type", b"application/json")]


async def read(*messages: dict[str, Any], headers: list[tuple[bytes, bytes]]) -> bytes:
    """Read a body of at most ten bytes from these ASGI messages."""
    pending = list(messages)

    async def receive() -> dict[str, Any]:
        return pending.pop(0)

    context = RequestContext({"method": "POST", "headers": headers}, "r", is_public=False)
    return await read_body(context, receive, max_bytes=10, timeout_seconds=5)


def piece(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


async def test_a_body_is_joined_from_its_pieces() -> None:
    assert await read(piece(b"{", more=True), piece(b"}"), headers=JSON) == b"{}"


async def test_a_too_large_body_is_rejected_with_and_without_a_length() -> None:
    for headers in (JSON, [*JSON, (b"content-length", b"11")]):
        with pytest.raises(HttpError) as rejected:
            await read(piece(b"x" * 6, more=True), piece(b"x" * 5), headers=headers)
        assert rejected.value.status == 413


async def test_a_disconnect_within_the_body_is_not_an_error_response() -> None:
    with pytest.raises(ClientDisconnected):
        await read(piece(b"{", more=True), {"type": "http.disconnect"}, headers=JSON)


async def test_work_for_a_client_ends_when_it_leaves() -> None:
    left, is_cancelled = asyncio.Event(), asyncio.Event()

    async def receive() -> dict[str, Any]:
        await left.wait()
        return {"type": "http.disconnect"}

    async def work() -> None:
        try:
            left.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            is_cancelled.set()
            raise

    with pytest.raises(ClientDisconnected):
        await while_connected(receive, work())
    assert is_cancelled.is_set()

    async def answer() -> str:
        return "done"

    left.clear()
    assert await while_connected(receive, answer()) == "done"

    async def fail() -> str:
        raise HttpError(502, "broken", "It broke.")

    with pytest.raises(HttpError):
        await while_connected(receive, fail())


async def test_a_body_that_is_not_json_is_rejected() -> None:
    with pytest.raises(HttpError) as rejected:
        await read(piece(b"a=1"), headers=[(b"content-type", b"text/plain")])
    assert rejected.value.status == 415


def test_a_duplicate_field_is_rejected_at_any_depth() -> None:
    assert (
        decode_body(b'{"task":"x","options":{"model":"m"}}', CreateTaskRequest).options.model == "m"
    )
    for body in (b'{"task":"x","task":"x"}', b'{"task":"x","options":{"deny":[],"deny":[]}}'):
        with pytest.raises(InvalidRequest, match="twice"):
            decode_body(body, CreateTaskRequest)


def test_null_counts_as_absent_where_there_is_a_default() -> None:
    body = b'{"task": "t", "attachments": null, "options": null, "one_shot": null}'
    assert decode_body(body, CreateTaskRequest) == CreateTaskRequest("t")
    nested = b'{"task": "t", "options": {"skills": null, "model": null}, "profile": null}'
    assert decode_body(nested, CreateTaskRequest) == CreateTaskRequest("t")
    with pytest.raises(InvalidRequest, match=r"Expected `str`, got `null` - at `\$\.task`"):
        decode_body(b'{"task": null, "attachments": null}', CreateTaskRequest)


def test_query_parameters_are_decoded_strictly() -> None:
    asked = decode_query({"query_string": b"limit=7&status=queued"}, TasksQuery)
    assert (asked.limit, asked.status) == (7, "queued")
    for query in (b"limit=7&limit=8", b"limit=%FF", b"other=1", b"\xff=1", b"&" * 50 + b"a=1&b"):
        with pytest.raises(InvalidRequest):
            decode_query({"query_string": query}, TasksQuery)
