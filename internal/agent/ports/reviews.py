"""Items that people review before they are offered to the model."""

from typing import NamedTuple

from internal.agent.ports.mcp import McpReviews
from internal.agent.ports.skills import SkillReviews


class Reviews(NamedTuple):
    """The reviews of skills and of MCP servers."""

    skills: SkillReviews
    mcp: McpReviews
