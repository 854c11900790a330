"""Parse commands. A command is recognized before anything is queued."""

import re
from difflib import get_close_matches
from functools import cache
from typing import Literal, NamedTuple, get_args

from internal.i18n.chat import ChatPhrases, chat_vocabulary, help_words, stop_words
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
    "profile",
    "network",
    "instructions",
    "skills",
    "mcp",
    "usage",
    "ps",
    "pair",
]
_SUGGESTED: frozenset[CommandName] = frozenset(
    {
        *("help", "status", "tasks", "questions", "plan", "model", "profile", "network"),
        *("instructions", "skills", "mcp", "usage", "ps", "pair"),
    }
)
"""Commands that change nothing when they are sent without an argument."""
_MIN_SIMILARITY = 0.75
_COMMAND = re.compile(r"[/\uff0f](?P<word>[^\s/\uff0f]+)(?P<rest>\s.*)?", re.DOTALL)


class ChatCommand(NamedTuple):
    """A known command and its argument, "" for none."""

    name: CommandName
    argument: str = ""


class UnknownCommand(NamedTuple):
    """A word that looks like a command; `nearest` is a similar command to suggest, "" for none.

    Only commands that change nothing are suggested: a word may mean the opposite of a similar one.
    """

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
    return UnknownCommand(word, _find_similar(word))


def is_stop_word(text: str) -> bool:
    """Return True for a text that is exactly a word that stops a run, in any language."""
    return text.strip().lower().rstrip(".!\u3002\uff01") in stop_words()


def is_help_word(text: str) -> bool:
    """Return True for a text that is exactly a word that asks for help, in any language."""
    return text.strip().lower().rstrip(".!?\u3002\uff01\uff1f") in help_words()


def read_menu_key(key: str) -> str:
    """Return the text of the command that an entry of the bot's menu names, such as `/help`.

    The name may be written without a slash; another key is a request for help.
    """
    text = key.strip()
    text = text if text.startswith(("/", "\uff0f")) else f"/{text}"
    return text if isinstance(parse_command(text), ChatCommand) else "/help"


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


def _find_similar(word: str) -> str:
    """Return the most similar command that can be suggested; its first letter is the same."""
    candidates = {
        command[1:]
        for command, name in _commands().items()
        if name in _SUGGESTED and command[1] == word[1]
    }
    found = get_close_matches(word[1:], sorted(candidates), n=1, cutoff=_MIN_SIMILARITY)
    return f"/{found[0]}" if found else ""


@cache
def _commands() -> dict[str, CommandName]:
    names: tuple[CommandName, ...] = get_args(CommandName)
    return {
        word: name
        for language in LANGUAGES
        for name in names
        for word in chat_vocabulary(language).commands[name]
    }
