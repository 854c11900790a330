"""The reviews of skills and MCP servers of a home folder."""

from pathlib import Path

from internal.agent.ports.reviews import Reviews
from internal.mcp.definition_files import DefinitionFiles
from internal.mcp.login.token_file import TokenFile
from internal.mcp.pins import McpPins
from internal.mcp.server_reviews import ServerReviews
from internal.mcp.servers import McpServers
from tests.support.skills import skill_reviews


def owner_reviews(home: Path) -> Reviews:
    """Return the reviews; no server can be started."""
    files = DefinitionFiles(home, {}, lambda value, _where: value)
    servers = McpServers(files, McpPins(home), version="0", logins=TokenFile(home))
    return Reviews(skill_reviews(home), ServerReviews(servers))
