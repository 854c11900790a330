"""Profiles: the role, tone and tools of the agent in a run."""

import msgspec


class Profile(msgspec.Struct, frozen=True):
    """The role of the agent. `tools` None grants every tool, otherwise only the named ones."""

    name: str = "default"
    role: str = "a careful assistant that does real work with its tools"
    goal: str = ""
    tone: str = ""
    prompt: str = ""
    tools: tuple[str, ...] | None = None
    model: str | None = None

    def grants(self, tool: str) -> bool:
        """Return True if the profile offers this tool to the model."""
        return self.tools is None or tool in self.tools
