"""The application, called in memory without a server."""

import asyncio
from typing import Any

from internal.channels.web.app import build_app
from internal.channels.web.services import WebServices
from tests.support.http_client import Frames
from tests.support.web_app import TOKEN
from tests.support.web_calls import Call


async def test_the_owner_can_call_the_api_in_memory(call: Call) -> None:
    created = await call("POST", "/api/sessions", {"title": "notes"})
    assert created.status == 201
    listed = await call("GET", "/api/sessions?limit=1")
    assert [row["title"] for row in listed.json()["sessions"]] == ["notes"]


async def test_the_checks_apply_in_memory(call: Call) -> None:
    assert (await call("GET", "/api/me", authorization=None)).status == 401
    assert (await call("GET", "/api/me", host="evil.example")).status == 421
    assert (await call("PUT", "/api/me")).headers["allow"] == "GET, HEAD"
    assert (await call("GET", "/nothing")).status == 404


async def test_a_stream_is_served_in_memory_until_the_client_disconnects(
    call: Call, services: WebServices
) -> None:
    task = (await call("POST", "/api/tasks", {"task": "write a report"})).json()
    frames, replayed = Frames(), asyncio.Event()
    names: list[str] = []

    async def receive() -> dict[str, Any]:
        await replayed.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        names.extend(frame.event for frame in frames.feed(message.get("body", b"")))
        if "replay.done" in names:
            replayed.set()

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/sse",
        "query_string": f"session_id={task['session_id']}".encode(),
        "headers": [(b"host", b"127.0.0.1:8420"), (b"authorization", f"Bearer {TOKEN}".encode())],
    }
    async with asyncio.timeout(10):
        await build_app(services)(scope, receive, send)
    assert names == [
        "connected",
        "workflow.input.received",
        "workflow.lifecycle.updated",
        "replay.done",
    ]
