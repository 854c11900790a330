"""Definitions of MCP servers whose tools are loaded on demand."""

from pathlib import Path

from internal.agent.domain.principals import LOCAL_OWNER
from internal.mcp.definition_files import DefinitionFiles
from tests.support.agent_app import Core
from tests.support.mcp_servers import hostile_entry


def define(
    home: Path, name: str = "many", mode: str = "catalogue", state: Path | None = None
) -> None:
    DefinitionFiles(home, {}, lambda value, _where: value).add(name, hostile_entry(mode, state))


async def accept(here: Core, name: str = "many") -> None:
    reviews = here.services.gateway.mcp
    report = await reviews.review(name, LOCAL_OWNER, start=True)
    await reviews.decide(name, report.server.sha256, LOCAL_OWNER, "web", accept=True)
