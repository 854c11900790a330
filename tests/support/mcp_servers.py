"""Connections to servers of tests, which a sandbox without isolation runs."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from internal.agent.domain.ids import SessionId
from internal.agent.ports.sandbox import SandboxCommand
from internal.mcp.connection import ServerConnection
from internal.mcp.definitions import ServerDefinition
from internal.mcp.manifest import ListedTool
from tests import ROOT
from tests.support.tools import native_sandbox

HOSTILE = str(ROOT / "tests" / "support" / "mcp_server.py")


def ignore_tools(_listed: list[ListedTool]) -> None:
    """Do nothing with the tools."""


def hostile_entry(mode: str, state: Path | None = None) -> dict[str, Any]:
    """Return the entry of `mcpServers` for the hostile server."""
    return {
        "command": sys.executable,
        "args": ["-I", HOSTILE, mode, *([str(state)] if state else [])],
    }


async def until(condition: Callable[[], bool]) -> None:
    """Poll until another process reaches a state."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0)


def connection(
    folder: Path,
    *argv: str,
    on_tools: Callable[[list[ListedTool]], None] = ignore_tools,
    **options: Any,
) -> ServerConnection:
    """Return a connection to a command."""
    definition = ServerDefinition("tested", command=argv[0], args=argv[1:], **options)
    command = SandboxCommand(argv, str(folder), 600.0, SessionId("mcp-tested"))
    return ServerConnection(
        definition, native_sandbox(folder), command, version="0", on_tools=on_tools
    )


def hostile(
    folder: Path,
    mode: str,
    state: Path | None = None,
    *,
    on_tools: Callable[[list[ListedTool]], None] = ignore_tools,
    **options: Any,
) -> ServerConnection:
    """Return a connection to the hostile server."""
    entry = hostile_entry(mode, state)
    return connection(folder, entry["command"], *entry["args"], on_tools=on_tools, **options)
