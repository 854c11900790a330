"""Profiles: who the agent is in a run."""

import msgspec


class Profile(msgspec.Struct, frozen=True):
    """Who the agent is. `tools` None grants every tool, otherwise the named ones only."""

    name: str = "default"
    role: str = "a careful assistant that does real work with its tools"
    goal: str = ""
    tone: str = ""
    prompt: str = ""
    tools: tuple[str, ...] | None = None
    model: str | None = None

    def grants(self, tool: str) -> bool:
        """Say whether the profile offers this tool to the model."""
        return self.tools is None or tool in self.tools
