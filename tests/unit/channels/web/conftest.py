"""A web channel without a server, called in memory."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from internal.channels.web.app import build_app
from internal.channels.web.services import WebServices
from tests.support.web_app import TOKEN, open_backend
from tests.support.web_calls import Call, InMemoryReply


@pytest.fixture
async def services(tmp_path: Path) -> AsyncGenerator[WebServices]:
    async with open_backend(tmp_path, port=8420) as backend:
        yield backend.services


@pytest.fixture
def call(services: WebServices) -> Call:
    """Request a path of the application in memory, as the owner unless headers say otherwise."""
    app = build_app(services)

    async def called(
        method: str, path: str, body: object = None, **headers: str | None
    ) -> InMemoryReply:
        given = {"host": "127.0.0.1:8420", "authorization": f"Bearer {TOKEN}"}
        if body is not None:
            given["content-type"] = "application/json"
        given |= {name.replace("_", "-"): value for name, value in headers.items()}  # type: ignore[misc] # None removes one
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(k.encode(), v.encode()) for k, v in given.items() if v is not None],
        }
        content = b"" if body is None else json.dumps(body).encode()
        sent: list[dict[str, Any]] = []
        requests = iter([content])

        async def receive() -> dict[str, Any]:
            if next(requests, None) is None:
                await asyncio.get_running_loop().create_future()  # the client stays connected
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await app(scope, receive, send)
        start, *rest = sent
        return InMemoryReply(
            start["status"],
            {name.decode(): value.decode() for name, value in start["headers"]},
            b"".join(message["body"] for message in rest),
        )

    return called
