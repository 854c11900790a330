"""Parse commands. A command is recognized before anything is queued."""

import re
from typing import NamedTuple

from internal.i18n.chat import help_words, stop_words
from internal.i18n.commands import command_words

_COMMAND = re.compile(r"[/\uff0f](?P<word>[^\s/\uff0f]+)(?P<rest>\s.*)?", re.DOTALL)


class ChatCommand(NamedTuple):
    """A known command and its argument, "" without one."""

    name: str
    argument: str = ""


class UnknownCommand(NamedTuple):
    """A word that looks like a command, with its slash."""

    word: str


def parse_command(text: str) -> ChatCommand | UnknownCommand | None:
    """Return the command in a text, or None if it contains no command (paths do not).

    The word must match exactly: `/taskfoo` is not `/tasks`. The commands of every language are
    recognized.
    """
    found = _COMMAND.fullmatch(text)
    if found is None:
        return None
    word = found["word"].lower()
    if name := command_words("chat").get(word):
        return ChatCommand(name, (found["rest"] or "").strip())
    return UnknownCommand(f"/{word}") if re.fullmatch(r"[\w-]{1,30}", word) else None


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
