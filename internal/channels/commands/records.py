"""The records that commands of every channel show. Standard library only."""

from collections.abc import Sequence
from typing import NamedTuple


class ListedSkill(NamedTuple):
    """A skill. `state` is `offered`, or why it is withheld from the model."""

    name: str
    state: str
    description: str


class ListedMcpServer(NamedTuple):
    """An MCP server. `tools` counts the tools that the model gets."""

    name: str
    state: str
    tools: int
    target: str
    problem: str
    warnings: Sequence[str]
