"""Parse commands. A command is recognized before anything is queued."""

import re
from difflib import get_close_matches
from functools import cache
from typing import Literal, NamedTuple, get_args

from internal.i18n.chat import ChatPhrases, chat_vocabulary
from internal.i18n.language import LANGUAGES

CommandName = Literal[
    "help",
    "new",
    "status",
    "tasks",
    "stop",
    "resume",
    "questions",
    "approve",
    "reject",
    "plan",
    "model",
    "usage",
    "pair",
]
_COMMAND = re.compile(r"[/\uff0f](?P<word>[^\s/\uff0f]+)(?P<rest>\s.*)?", re.DOTALL)


class ChatCommand(NamedTuple):
    """A known command and its argument, "" for none."""

    name: CommandName
    argument: str = ""


class UnknownCommand(NamedTuple):
    """A word that looks like a command; `nearest` is the most similar command, "" for none."""

    word: str
    nearest: str = ""


def parse_command(text: str) -> ChatCommand | UnknownCommand | None:
    """Return the command in a text; None for other texts, including paths.

    The word must match exactly: `/taskfoo` is not `/tasks`. The commands of every language are
    recognized.
    """
    found = _COMMAND.fullmatch(text)
    if found is None:
        return None
    word, known = f"/{found['word'].lower()}", _commands()
    if name := known.get(word):
        return ChatCommand(name, (found["rest"] or "").strip())
    if not re.fullmatch(r"/[\w-]{1,30}", word):
        return None
    return UnknownCommand(word, next(iter(get_close_matches(word, known, n=1)), ""))


def is_pairing(text: str) -> bool:
    """Return True for the only command that needs no right."""
    match parse_command(text):
        case ChatCommand("pair"):
            return True
        case _:
            return False


def format_help(phrases: ChatPhrases, *, busy_mode: str) -> str:
    """Return the list of commands and how a message during a run is handled."""
    names: tuple[CommandName, ...] = get_args(CommandName)
    lines = (phrases(f"help_{name}", command=f"`{phrases.command(name)}`") for name in names)
    return phrases(f"help_when_{busy_mode}", commands="\n".join(f"- {line}" for line in lines))


@cache
def _commands() -> dict[str, CommandName]:
    names: tuple[CommandName, ...] = get_args(CommandName)
    return {
        word: name
        for language in LANGUAGES
        for name in names
        for word in chat_vocabulary(language).commands[name]
    }
