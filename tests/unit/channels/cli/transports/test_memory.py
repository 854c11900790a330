"""Requests to an ASGI application of this process."""

import asyncio
from collections.abc import MutableMapping
from contextlib import aclosing
from typing import Any

import pytest

from internal.channels.cli.transports.interface import RefusedStream
from internal.channels.cli.transports.memory import MemoryTransport, Receive, Send


class EchoApp:
    """Answers with the request; `/stream` sends chunks until the request is cancelled."""

    def __init__(self) -> None:
        self.scopes: list[MutableMapping[str, Any]] = []
        self.cancelled = asyncio.Event()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        status = 404 if scope["path"] == "/missing" else 200
        await send({"type": "http.response.start", "status": status, "headers": []})
        if scope["path"] == "/stream":
            await send({"type": "http.response.body", "body": b"first", "more_body": True})
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.set()
        body = (await receive())["body"]
        await send({"type": "http.response.body", "body": body or b"none", "more_body": False})


async def adopt(run_id: str) -> bool:
    return run_id == "run-1"


def transport_to(app: EchoApp) -> MemoryTransport:
    return MemoryTransport(app, host="127.0.0.1:1", token="t" * 8, adopt=adopt)


async def test_request_has_the_path_query_token_and_body() -> None:
    app = EchoApp()

    response = await transport_to(app).request("POST", "/a%20b?c=d", b"{}")

    assert response == (200, b"{}")
    (scope,) = app.scopes
    assert (scope["method"], scope["path"], scope["query_string"]) == ("POST", "/a b", b"c=d")
    assert (b"authorization", b"Bearer tttttttt") in scope["headers"]


async def test_closed_stream_cancels_its_request() -> None:
    app = EchoApp()
    async with aclosing(transport_to(app).stream("/stream", "abc-6")) as chunks:
        assert await anext(chunks) == b"first"
    assert app.cancelled.is_set()
    assert (b"last-event-id", b"abc-6") in app.scopes[0]["headers"]


async def test_error_response_refuses_the_stream() -> None:
    with pytest.raises(RefusedStream) as refused:
        await anext(transport_to(EchoApp()).stream("/missing", ""))
    assert refused.value.response == (404, b"none")


async def test_runs_are_adopted_by_this_process() -> None:
    transport = transport_to(EchoApp())
    assert await transport.adopt("run-1")
    assert not await transport.adopt("run-2")
    assert await transport.reconnect()
