"""Connections to MCP servers."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from internal.mcp.connection import ServerConnection
from internal.mcp.definitions import ServerDefinition
from tests.support.mcp_servers import ignore_tools
from tests.support.tools import native_sandbox


@asynccontextmanager
async def opened(server: ServerConnection) -> AsyncGenerator[ServerConnection]:
    try:
        yield server
    finally:
        await server.close()


def ignore(_done: float, _total: float | None, _message: str) -> None:
    """Ignore progress."""


async def text_of(server: ServerConnection, tool: str = "echo", **arguments: Any) -> str:
    result = await server.call(tool, arguments, ignore)
    return str(result["content"][0]["text"])


def connect(folder: Path, url: str, **options: Any) -> ServerConnection:
    private = {"allow_private_networks": True, **options}
    return ServerConnection(
        ServerDefinition("tested", url=url, **private),
        native_sandbox(folder),
        None,
        version="0",
        on_tools=ignore_tools,
    )
