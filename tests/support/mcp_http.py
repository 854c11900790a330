"""MCP servers over streamable HTTP: one of the SDK, and one that misbehaves."""

import asyncio
import gzip
import json
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.support.mcp_sdk_server import server

TOOL = {"name": "echo", "description": "Says it.", "inputSchema": {"type": "object"}}


@asynccontextmanager
async def serve_made(make: Callable[[str], Any]) -> AsyncGenerator[str]:
    """Serve an ASGI application, made for its origin, on a free port of 127.0.0.1."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
        config = uvicorn.Config(
            make(origin), log_config=None, lifespan="on", timeout_graceful_shutdown=1, ws="none"
        )
        running = uvicorn.Server(config)
        serving = asyncio.create_task(running.serve([listener]))
        while not running.started:  # noqa: ASYNC110 - uvicorn has no event
            await asyncio.sleep(0)
        try:
            yield origin
        finally:
            running.should_exit = True
            await serving


@asynccontextmanager
async def serve(app: Any) -> AsyncGenerator[str]:
    """Serve an ASGI application on a free port of 127.0.0.1 and yield its address for MCP."""
    async with serve_made(lambda _origin: app) as origin:
        yield f"{origin}/mcp"


@asynccontextmanager
async def serve_sdk() -> AsyncGenerator[str]:
    """Serve the server of the SDK."""
    async with serve(server.streamable_http_app()) as url:
        yield url


class LegacyServer:
    """Speaks protocol 2025-11-25 with a session, and handles calls as `mode` says.

    `seen` holds the headers of each request, by lower-case name.
    """

    def __init__(self, mode: str = "") -> None:
        self.mode = mode
        self.seen: list[dict[str, str]] = []
        self.sessions = 0
        methods = ["POST", "GET", "DELETE"]
        self.app = Starlette(routes=[Route("/mcp", self.handle, methods=methods)])

    async def handle(self, request: Request) -> Response:
        """Answer a message."""
        self.seen.append(dict(request.headers))
        if request.method != "POST":
            return Response(status_code=405)
        message = json.loads(await request.body())
        if "id" not in message:
            return Response(status_code=202)
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        match message["method"]:
            case "initialize":
                self.sessions += 1
                result = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "legacy", "version": "1"},
                }
                headers = {"mcp-session-id": f"session-{self.sessions}"}
                return JSONResponse({**answer, "result": result}, headers=headers)
            case "tools/list":
                return JSONResponse({**answer, "result": {"tools": [TOOL]}})
            case "tools/call":
                return self.call(answer, request)
            case _:
                error = {"code": -32601, "message": "Method not found"}
                return JSONResponse({**answer, "error": error})

    def call(self, answer: dict[str, Any], request: Request) -> Response:
        """Answer a call."""
        text = "hi"
        match self.mode:
            case "redirect":
                return Response(status_code=307, headers={"location": "http://localhost:1/mcp"})
            case "forget" if request.headers["mcp-session-id"] == "session-1":
                return Response(status_code=404)
            case "large":
                text = "x" * 11_000_000
            case "large-event":
                line = json.dumps({**answer, "result": {"content": [], "x": "x" * 11_000_000}})
                return Response(f"data: {line}\n\n", media_type="text/event-stream")
            case "untidy":
                line = json.dumps({**answer, "result": {"content": "caf_"}, "error": None})
                damaged = line.encode().replace(b"_", b"\xe9")
                return Response(b"\xef\xbb\xbf" + damaged, media_type="text/plain")
            case _:
                pass
        body = {**answer, "result": {"content": [{"type": "text", "text": text}]}}
        if self.mode == "gzip":
            packed = gzip.compress(json.dumps(body).encode())
            headers = {"content-encoding": "gzip", "content-type": "application/json"}
            return Response(packed, headers=headers)
        return JSONResponse(body)
