"""Commands: exact words, seen before anything is queued. Pure."""

import re
from difflib import get_close_matches
from functools import cache
from typing import Literal, NamedTuple, get_args

from internal.i18n.chat import ChatPhrases, chat_vocabulary

Name = Literal[
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
_WORD = re.compile(r"[/\uff0f](?P<word>[^\s/\uff0f]+)(?P<rest>\s.*)?", re.DOTALL)


class Command(NamedTuple):
    """A known command; `argument` is what stands behind it."""

    name: Name
    argument: str = ""


class Unknown(NamedTuple):
    """A word like a command that is none; `nearest` is the known one that is most like it."""

    word: str
    nearest: str = ""


def read_command(text: str) -> Command | Unknown | None:
    """Return the command that a text is; None for anything else, a path among it.

    `/taskfoo` is not `/tasks`: the word counts whole. All languages' words are known in each.
    """
    found = _WORD.fullmatch(text)
    if found is None:
        return None
    word, known = f"/{found['word'].lower()}", _known()
    if name := known.get(word):
        return Command(name, (found["rest"] or "").strip())
    if not re.fullmatch(r"/[\w-]{1,30}", word):
        return None
    return Unknown(word, next(iter(get_close_matches(word, known, n=1)), ""))


def gives_code(text: str) -> bool:
    """Say whether a text is the one command that takes no right."""
    match read_command(text):
        case Command("pair"):
            return True
        case _:
            return False


def help_text(words: ChatPhrases, *, busy_mode: str) -> str:
    """Return what can be said to the bot."""
    names: tuple[Name, ...] = get_args(Name)
    lines = (words(f"help_{name}", command=f"`{words.command(name)}`") for name in names)
    return words(f"help_when_{busy_mode}", commands="\n".join(f"- {line}" for line in lines))


@cache
def _known() -> dict[str, Name]:
    names: tuple[Name, ...] = get_args(Name)
    return {
        word: name
        for language in ("en", "zh")
        for name in names
        for word in chat_vocabulary(language).commands[name]
    }
