"""Servers with HTTP+SSE, the transport of 2024: one of the SDK, and hostile ones."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from internal.agent.domain.errors import ToolError
from internal.mcp.limits import ServerFailure
from tests.support.mcp_connection import connect, ignore, opened, text_of
from tests.support.mcp_http import LegacyServer, serve, serve_made
from tests.support.mcp_sdk_server import server as sdk_server


@pytest.mark.parametrize("transport", ["sse", None])
async def test_an_old_server_is_called(tmp_path: Path, transport: str | None) -> None:
    reports: list[str] = []
    async with (
        serve_made(lambda _origin: sdk_server.sse_app()) as origin,
        opened(connect(tmp_path, f"{origin}/sse", transport=transport)) as server,
    ):
        assert "add" in {tool.name for tool in await server.list_tools()}
        result = await server.call("add", {"a": 2, "b": 3}, ignore)
        await server.call("count", {"upto": 2}, lambda *report: reports.append(report[2]))
    assert result["structuredContent"] == {"result": 5}
    assert reports == ["at 1", "at 2"]


async def test_a_server_that_is_said_to_be_newer_is_not_tried_with_the_old_transport(
    tmp_path: Path,
) -> None:
    async with (
        serve_made(lambda _origin: sdk_server.sse_app()) as origin,
        opened(connect(tmp_path, f"{origin}/sse", transport="http")) as server,
    ):
        with pytest.raises(ServerFailure):
            await server.list_tools()


async def test_the_reason_of_a_server_with_neither_transport_is_that_of_the_first(
    tmp_path: Path,
) -> None:
    app = Starlette()
    async with serve(app) as url, opened(connect(tmp_path, url)) as server:
        with pytest.raises(ServerFailure, match=r"404|[Nn]ot [Ff]ound|terminated"):
            await server.list_tools()


async def test_a_newer_server_with_the_old_type_is_named(tmp_path: Path) -> None:
    async with (
        serve(LegacyServer().app) as url,
        opened(connect(tmp_path, url, transport="sse")) as server,
    ):
        with pytest.raises(ServerFailure, match=r"begins no stream of HTTP\+SSE: HTTP 405"):
            await server.list_tools()


class HostileStream:
    """A server that names an address for messages and refuses messages sent there."""

    def __init__(self, endpoint: str) -> None:
        self.app = Starlette(
            routes=[
                Route("/mcp", self.stream, methods=["GET"]),
                Route("/messages", self.take, methods=["POST"]),
            ]
        )
        self._endpoint = endpoint

    async def stream(self, _request: Request) -> Response:
        """Send one event, and end."""

        async def events() -> AsyncGenerator[str]:
            yield f"event: endpoint\ndata: {self._endpoint}\n\n"
            await asyncio.Event().wait()

        return StreamingResponse(events(), media_type="text/event-stream")

    async def take(self, _request: Request) -> Response:
        """Refuse a message."""
        return Response("no room\x1b[1m", status_code=507)


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [
        ("http://localhost:1/messages", "wants messages at another origin: http://localhost:1"),
        ("/messages", r"HTTP 507: no room\\u001b"),
    ],
)
async def test_a_refused_message_fails_at_once(tmp_path: Path, endpoint: str, reason: str) -> None:
    async with (
        serve(HostileStream(endpoint).app) as url,
        opened(connect(tmp_path, url, transport="sse")) as server,
    ):
        with pytest.raises((ServerFailure, ToolError), match=reason):
            await text_of(server)
