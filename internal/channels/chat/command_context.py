"""A chat as the handlers of its commands see it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from internal.agent.app.gateway import Gateway
from internal.agent.app.runs.questions import Actor
from internal.agent.app.task_options import TaskDefaults
from internal.agent.capabilities.instructions.chat_instructions import ChatInstructions
from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.principals import Principal
from internal.agent.domain.tasks import Run, Task
from internal.agent.domain.text import escape_hidden, truncate_line
from internal.channels.chat.answers import (
    ChatRef,
    CommandResult,
    MessageContext,
    TextAnswers,
    escape_markdown,
)
from internal.channels.chat.chat_rules import ChatRules
from internal.channels.chat.policy import ChatUsers
from internal.channels.commands.command import Command
from internal.channels.commands.records import ListedMcpServer, ListedSkill
from internal.i18n.chat import ChatPhrases
from internal.i18n.commands import CommandTexts

MAX_LISTED_TASKS, MAX_TASK_LENGTH = 10, 100
_MAX_ROWS = 30
_MAX_CELL_LENGTH = 150


class PersonalReads:
    """The gateway as one person reads it."""

    def __init__(self, gateway: Gateway, principal: Principal) -> None:
        self._gateway, self._principal = gateway, principal

    async def skills(self) -> list[ListedSkill]:
        """Return all skills."""
        found = await self._gateway.skills.list_all(self._principal)
        return [ListedSkill(each.name, each.state, each.description) for each in found]

    async def mcp_servers(self) -> list[ListedMcpServer]:
        """Return all MCP servers that have a name."""
        found = await self._gateway.mcp.list_all(self._principal)
        return [
            ListedMcpServer(
                each.name, each.state, each.tools, each.target, each.problem, each.warnings
            )
            for each in found
            if each.name
        ]


@dataclass(frozen=True)
class ChatContext:
    """A message with a command, and the services that execute it.

    `replies` are the texts of the reply so far.
    """

    message: MessageContext
    gateway: Gateway
    people: ChatUsers
    answers: TextAnswers
    defaults: TaskDefaults
    instructions: ChatInstructions
    replies: list[str] = field(default_factory=list)

    @property
    def phrases(self) -> ChatPhrases:
        """The phrases in the language of the message."""
        return self.message.phrases

    @property
    def rules(self) -> ChatRules:
        """The rules of the chat when the message was handed on."""
        return self.message.rules

    @property
    def actor(self) -> Actor:
        """The sender."""
        return self.message.actor

    @property
    def chat(self) -> ChatRef:
        """The chat of the message."""
        return self.message.chat

    @property
    def row(self) -> InboundMessage:
        """The stored message."""
        return self.message.row

    def texts_of(self, name: str) -> CommandTexts:
        """Return the texts of a command in the language of the message."""
        return self.phrases.command_texts(name)

    async def open_gateway(self) -> PersonalReads:
        """Return the gateway as the sender reads it."""
        return PersonalReads(self.gateway, self.actor.principal)

    def say(self, text: str) -> None:
        """Add a paragraph to the reply."""
        self.replies.append(text)

    def say_rows(
        self, texts: CommandTexts, rows: Sequence[Mapping[str, str]], notes: Sequence[str] = ()
    ) -> None:
        """Add a list to the reply, with its title and notes below it."""
        shown = rows[:_MAX_ROWS] if "more" in texts else rows
        lines = [texts("line", **_cells(row)).rstrip() for row in shown]
        if more := len(rows) - len(shown):
            lines.append(texts("more", count=more))
        lines += [f"- {escape_markdown(note)}" for note in notes]
        self.say("\n\n".join([texts("title"), "\n".join(lines)]))

    async def list_newest(self) -> list[Task]:
        """Return the last tasks of the chat's current session, newest first."""
        scope = self.chat.scope
        return await self.gateway.chats.list_newest(self.actor.via, scope, MAX_LISTED_TASKS)

    async def list_unfinished(self) -> list[tuple[Run, Task]]:
        """Return the runs of the conversation that have not ended, without subtasks."""
        return await self.gateway.chats.list_unfinished(self.actor.via, self.chat.scope)


ChatReply = CommandResult | str | None
"""Result of a handler; None if it has already replied."""
ChatCommandSpec = Command[ChatContext, ChatReply]


def show_text(text: str, max_chars: int) -> str:
    """Return Markdown that shows the beginning of a foreign text on one line."""
    return escape_markdown(escape_hidden(truncate_line(text, max_chars)))


def principal_for(task: Task, principal: Principal) -> Principal:
    """Return the principal; an operator of the chat has the owner's rights to its tasks."""
    if not principal.may("operate") or task.origin.principal == principal.id:
        return principal
    return msgspec.structs.replace(principal, roles=principal.roles | {"owner"})


def _cells(row: Mapping[str, str]) -> dict[str, str]:
    """Return the columns as Markdown: the name, which stands in backquotes, and the others."""
    name, *others = row.items()
    cells = {key: show_text(text, _MAX_CELL_LENGTH) for key, text in others}
    return {name[0]: escape_hidden(name[1]), **cells}
