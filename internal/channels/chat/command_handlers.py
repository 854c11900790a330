"""Chat commands: the shared and the chat-specific ones, and their execution.

A chat-specific command is a handler function, one entry of `CHAT_COMMANDS`, and the section with
its texts in the table `chat` of `internal/i18n/commands.json`.
"""

from difflib import get_close_matches

from internal.agent.app.gateway import Gateway
from internal.agent.app.task_options import TaskDefaults
from internal.agent.capabilities.instructions.chat_instructions import ChatInstructions
from internal.channels.chat.answers import CommandResult, MessageContext, TextAnswers
from internal.channels.chat.background_commands import list_commands
from internal.channels.chat.chat_settings import (
    pair,
    review_plans,
    set_instructions,
    set_model,
    set_network,
    set_profile,
    show_usage,
)
from internal.channels.chat.command_context import ChatCommandSpec, ChatContext, ChatReply
from internal.channels.chat.command_parser import (
    ChatCommand,
    UnknownCommand,
    is_help_word,
    is_stop_word,
)
from internal.channels.chat.policy import ChatUsers
from internal.channels.chat.task_commands import (
    list_tasks,
    resume,
    show_status,
    start_conversation,
    stop,
)
from internal.channels.commands.command import Arguments
from internal.channels.commands.registry import COMMANDS
from internal.i18n.chat import ChatPhrases, find_switch
from internal.i18n.commands import command_words

_MIN_SIMILARITY = 0.75


class CommandHandlers:
    """Carries out the commands of messages."""

    def __init__(
        self,
        gateway: Gateway,
        people: ChatUsers,
        answers: TextAnswers,
        *,
        defaults: TaskDefaults,
        instructions: ChatInstructions,
    ) -> None:
        self._gateway, self._people, self._answers = gateway, people, answers
        self._defaults, self._instructions = defaults, instructions

    async def handle(
        self, command: ChatCommand | UnknownCommand, message: MessageContext
    ) -> CommandResult:
        """Carry out a command and return its result."""
        context = self._context(message)
        match command:
            case UnknownCommand(word):
                sentence = _describe_unknown(word, message.phrases)
                return CommandResult(f"{sentence}\n\n{_help(context)}")
            case ChatCommand(name, argument):
                return await _carry_out(_BY_NAME[name], context, argument)

    async def stop_by_word(self, text: str, message: MessageContext) -> CommandResult | None:
        """Stop the active run of the conversation if the text is only a word such as `stop`.

        Returns None if it is another text, nothing is active, or an open question offers the word.
        """
        context = self._context(message)
        if not is_stop_word(text) or not await context.list_unfinished():
            return None
        questions = await self._gateway.queries.open_questions(message.actor.chat)
        if any(is_stop_word(option) for each in questions for option in each.question.options):
            return None
        return await stop(context, "")

    def help_by_word(self, text: str, message: MessageContext) -> CommandResult | None:
        """Return the help if the text is only a word such as `help`.

        Returns None if it is another text, or an open question offers the word.
        """
        questions = message.facts.questions
        options = (option for each in questions for option in each.question.options)
        if not is_help_word(text) or any(map(is_help_word, options)):
            return None
        return CommandResult(_help(self._context(message)))

    def _context(self, message: MessageContext) -> ChatContext:
        return ChatContext(
            message,
            self._gateway,
            self._people,
            self._answers,
            defaults=self._defaults,
            instructions=self._instructions,
        )


async def _carry_out(
    command: ChatCommandSpec, context: ChatContext, argument: str
) -> CommandResult:
    phrases, choices = context.phrases, command.arguments.choices
    if argument and choices and find_switch(argument) not in choices:
        texts = phrases.command_texts(command.name)
        return CommandResult(texts("how", command=f"/{texts.word}"))
    if argument and command.right and not context.actor.principal.may(command.right):
        return CommandResult(phrases("setting_not_allowed"))
    result = await command.handler(context, argument)
    if isinstance(result, CommandResult):
        return result
    return CommandResult(result or "\n\n".join(context.replies))


def format_help(phrases: ChatPhrases, *, busy_mode: str) -> str:
    """Return the list of commands and how a message during a run is handled."""
    lines = (f"- {phrases.command_help(command.name)}" for command in CHAT_COMMANDS)
    return phrases(f"help_when_{busy_mode}", commands="\n".join(lines))


def find_similar(word: str) -> str:
    """Return the most similar command that can be suggested, "" if there is none.

    Its first letter is the same. Only read-only commands are suggested: a word may mean the
    opposite of a similar one.
    """
    candidates = [
        known
        for known, name in command_words("chat").items()
        if not _BY_NAME[name].changes and known[0] == word[1]
    ]
    found = get_close_matches(word[1:], sorted(candidates), n=1, cutoff=_MIN_SIMILARITY)
    return f"/{found[0]}" if found else ""


def _describe_unknown(word: str, phrases: ChatPhrases) -> str:
    if nearest := find_similar(word):
        return phrases("unknown_command", command=word, nearest=nearest)
    return phrases("no_such_command", command=word)


def _help(context: ChatContext) -> str:
    busy_mode = context.rules.busy_mode
    return format_help(context.phrases, busy_mode=busy_mode)


async def _show_help(context: ChatContext, _argument: str) -> ChatReply:
    return _help(context)


async def _list_questions(context: ChatContext, _argument: str) -> ChatReply:
    return await context.answers.list_open(context.message)


async def _approve(context: ChatContext, argument: str) -> ChatReply:
    return await context.answers.approve(argument, context.message)


async def _reject(context: ChatContext, argument: str) -> ChatReply:
    return await context.answers.reject(argument, context.message)


CHAT_COMMANDS: tuple[ChatCommandSpec, ...] = (
    ChatCommandSpec("help", _show_help),
    ChatCommandSpec("new", start_conversation, changes=True),
    ChatCommandSpec("status", show_status),
    ChatCommandSpec("tasks", list_tasks),
    ChatCommandSpec("stop", stop, changes=True),
    ChatCommandSpec("resume", resume, changes=True),
    ChatCommandSpec("questions", _list_questions),
    ChatCommandSpec("approve", _approve, changes=True),
    ChatCommandSpec("reject", _reject, changes=True),
    ChatCommandSpec("plan", review_plans, Arguments(choices=("on", "off")), right="operate"),
    ChatCommandSpec("model", set_model, right="operate"),
    ChatCommandSpec("profile", set_profile, right="operate"),
    ChatCommandSpec("network", set_network, right="operate"),
    ChatCommandSpec("instructions", set_instructions, right="operate"),
    *COMMANDS,
    ChatCommandSpec("usage", show_usage),
    ChatCommandSpec("ps", list_commands),
    ChatCommandSpec("pair", pair),
)
"""Every command, in the order in which the help lists them."""
_BY_NAME = {command.name: command for command in CHAT_COMMANDS}
