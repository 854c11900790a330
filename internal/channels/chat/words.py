"""What people read: the phrases of both languages, from the catalogues in `phrases/`."""

from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from internal.channels.chat.text import has_chinese

Language = Literal["en", "zh"]
Choice = Literal["auto", "en", "zh"]
_FOLDER = Path(__file__).parent / "phrases"


class Catalogue(msgspec.Struct, frozen=True):
    """One language: phrases with {fields}, the words of commands, what tools do, states.

    `yes` and `no` are the exact words, in lower case, that answer a question about calls;
    `switches` are words behind commands, by what they mean.
    """

    phrases: dict[str, str]
    commands: dict[str, list[str]]
    tools: dict[str, str]
    statuses: dict[str, str]
    yes: list[str]
    no: list[str]
    switches: dict[str, list[str]]


@cache
def catalogue(language: Language) -> Catalogue:
    """Return a language's catalogue."""
    text = (_FOLDER / f"{language}.json").read_bytes()
    return msgspec.json.decode(text, type=Catalogue)


@cache
def yes_and_no() -> tuple[frozenset[str], frozenset[str]]:
    """Return the exact words for yes and for no, of all languages."""
    both = (catalogue("en"), catalogue("zh"))
    yes = frozenset(word for each in both for word in each.yes)
    return yes, frozenset(word for each in both for word in each.no)


def switch(text: str) -> str:
    """Return what a word behind a command means, such as `on`, in any language; "" for nothing."""
    both = (*catalogue("en").switches.items(), *catalogue("zh").switches.items())
    return next((name for name, words in both if text.strip().lower() in words), "")


class Words:
    """Phrases in one language."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self._known = catalogue(language)

    def __call__(self, phrase: str, **fields: object) -> str:
        """Return a phrase with its fields filled in."""
        return self._known.phrases[phrase].format(**fields)

    def tool(self, name: str) -> str:
        """Return what a tool does, in words."""
        return self._known.tools.get(name) or self("tool_unnamed", tool=name[:60])

    def status(self, name: str) -> str:
        """Return the word for a status."""
        return self._known.statuses.get(name, name)

    def failure(self, code: str, run: str) -> str:
        """Return the sentence for a failure by its name, "" for one without."""
        phrase = f"failed_{code}" if f"failed_{code}" in self._known.phrases else "failed_error"
        return self(phrase, run=run)

    def command(self, name: str) -> str:
        """Return how a command is written in this language."""
        return self._known.commands[name][0]


def words_for(choice: Choice, text: str) -> Words:
    """Return the phrases in the chosen language; `auto` follows what the person wrote."""
    if choice == "auto":
        return Words("zh" if has_chinese(text) else "en")
    return Words(choice)
