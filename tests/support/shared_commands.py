"""Commands of several channels, and what they read."""

from collections.abc import Mapping, Sequence

from internal.channels.commands.command import ChannelContext
from internal.channels.commands.records import ListedMcpServer, ListedSkill
from internal.i18n.commands import CommandTexts


class KeptChannel(ChannelContext):
    """A channel with a gateway that has these skills and servers."""

    def __init__(self) -> None:
        self.listed_skills: list[ListedSkill] = []
        self.servers: list[ListedMcpServer] = []
        self.said: list[str] = []
        self.rows: list[Mapping[str, str]] = []
        self.notes: list[str] = []

    def texts_of(self, name: str) -> CommandTexts:
        return CommandTexts(name, "terminal", "en")

    async def open_gateway(self) -> "KeptChannel":
        return self

    async def skills(self) -> list[ListedSkill]:
        return self.listed_skills

    async def mcp_servers(self) -> list[ListedMcpServer]:
        return self.servers

    def say(self, text: str) -> None:
        self.said.append(text)

    def say_rows(
        self, texts: CommandTexts, rows: Sequence[Mapping[str, str]], notes: Sequence[str] = ()
    ) -> None:
        assert "withheld" in texts
        self.rows += rows
        self.notes += notes
