"""An agent application with reviewed MCP servers."""

import sys
from pathlib import Path
from typing import Any

from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.ports.mcp import McpReviewReport
from internal.mcp.definition_files import DefinitionFiles
from tests import ROOT
from tests.support.agent_app import Core

NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}


INTERPRETER = [each for each in (sys.prefix, sys.base_prefix, str(ROOT)) if each != "/usr"]
"""Paths read by a server in Python; the programs of the system are visible in any case."""


def define(home: Path, name: str, entry: dict[str, Any]) -> None:
    DefinitionFiles(home, {}, lambda value, _where: value).add(name, entry)


def sdk_entry() -> dict[str, Any]:
    return {
        "command": sys.executable,
        "args": ["-m", "tests.support.mcp_sdk_server", "stdio"],
        "env": {"PYTHONPATH": str(ROOT)},
        "read_only": INTERPRETER,
    }


async def review(here: Core, name: str) -> McpReviewReport:
    """Test a server, accept it, and return the report of the review."""
    reviews = here.services.gateway.mcp
    report = await reviews.review(name, LOCAL_OWNER, start=True)
    await reviews.decide(name, report.server.sha256, LOCAL_OWNER, "web", accept=True)
    return report


async def go(here: Core, workspace: Path, mode: Mode = Mode.ALL) -> list[dict[str, Any]]:
    made = await here.submit("go", workspace=str(workspace), permission_mode=mode)
    await here.end_of(made)
    return await here.durable(made)


def payloads(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [each["payload"] for each in events if each["event"] == f"workflow.{name}"]
