"""Commands: exact words, seen before anything is queued. Pure."""

import re
from difflib import get_close_matches
from functools import cache
from typing import Literal, NamedTuple, get_args

from internal.channels.lark.words import Words, catalogue

Name = Literal["help", "new", "status", "stop"]
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

    `/taskfoo` is not `/task`: the word counts whole. All languages' words are known in each.
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


def help_text(words: Words, *, steers: bool) -> str:
    """Return what can be said to the bot."""
    names: tuple[Name, ...] = get_args(Name)
    lines = (words(f"help_{name}", command=f"`{words.command(name)}`") for name in names)
    return words("help" if steers else "help_queue", commands="\n".join(f"- {x}" for x in lines))


@cache
def _known() -> dict[str, Name]:
    names: tuple[Name, ...] = get_args(Name)
    return {
        word: name
        for language in ("en", "zh")
        for name in names
        for word in catalogue(language).commands[name]
    }
