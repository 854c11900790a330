"""The parts of a slash command, and the channel as the handler of a shared one sees it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from internal.channels.commands.records import ListedMcpServer, ListedSkill
from internal.i18n.commands import CommandTexts

if TYPE_CHECKING:  # the terminal starts without it
    from internal.agent.domain.principals import Right

Context_contra = TypeVar("Context_contra", contravariant=True)
Result_co = TypeVar("Result_co", covariant=True)


class Value(NamedTuple):
    """A value that completion offers, with its description."""

    text: str
    meaning: str = ""


Values = Sequence[Value]


@dataclass(frozen=True)
class Arguments(Generic[Context_contra]):
    """The words after the name of a command.

    `usage` describes them. If there are `choices`, no other words are accepted. `values` returns
    the words that completion offers; the default is the choices.
    """

    usage: str = ""
    choices: tuple[str, ...] = ()
    values: Callable[[Context_contra], Values] | None = None

    def offered(self, context: Context_contra) -> Values:
        """Return the values that completion offers."""
        return [Value(one) for one in self.choices] if self.values is None else self.values(context)


@dataclass(frozen=True)
class Command(Generic[Context_contra, Result_co]):
    """A slash command of the channels whose contexts its handler takes.

    Its words and its line in the help are in the section of `internal/i18n/commands.json` with its
    name. `handler` takes the context and the argument, "" without one. `right` is required to send
    it with an argument in a chat; None allows everybody whom the bot answers. A command that
    `changes` something without an argument is not suggested for a similar word in a chat.
    """

    name: str
    handler: Callable[[Context_contra, str], Awaitable[Result_co]]
    arguments: Arguments[Context_contra] = field(default_factory=Arguments)
    right: "Right | None" = None
    changes: bool = False


class GatewayReads(Protocol):
    """Read operations of the gateway for commands, with the rights of the person."""

    async def skills(self) -> Sequence[ListedSkill]:
        """Return all skills."""
        ...

    async def mcp_servers(self) -> Sequence[ListedMcpServer]:
        """Return all MCP servers."""
        ...


class ChannelContext(Protocol):
    """The channel on which a command was sent."""

    def texts_of(self, name: str) -> CommandTexts:
        """Return the texts of a command in the language of the person."""
        ...

    async def open_gateway(self) -> GatewayReads:
        """Return the gateway, when it can be read."""
        ...

    def say(self, text: str) -> None:
        """Show a text to the person."""
        ...

    def say_rows(
        self, texts: CommandTexts, rows: Sequence[Mapping[str, str]], notes: Sequence[str] = ()
    ) -> None:
        """Show rows with the same columns, beginning with a name, and notes below them.

        A chat shows each row with the text `line`, whose placeholders are the columns. With a text
        `more` it shows the first rows and counts the others.
        """
        ...


SharedCommand = Command[ChannelContext, None]
