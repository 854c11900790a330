"""Words and texts of the slash commands: one section of `commands.json` for each command.

The table `every` has the commands of every channel, in the order in which they are listed. `chat`
and `terminal` have those of one channel. A section has the texts of each language; texts of a
single channel are below its name.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from internal.i18n.catalog import load_texts
from internal.i18n.language import LANGUAGES, Language

CommandChannel = Literal["chat", "terminal"]
COMMAND_CHANNELS: tuple[CommandChannel, ...] = ("chat", "terminal")


class CommandTexts:
    """The texts of one command on one channel in one language."""

    def __init__(self, name: str, channel: CommandChannel, language: Language) -> None:
        self._texts = _merge(name, channel, language)
        self._english = _merge(name, channel, "en")

    def __contains__(self, key: str) -> bool:
        """Return True if there is a text with this key."""
        return key in self._texts

    def __call__(self, key: str, /, **values: object) -> str:
        """Return a text with its placeholders filled in. `help` describes the command.

        Raises:
            KeyError: there is no such text, or a placeholder has no value.
        """
        text: str = self._texts[key]
        return text.format(**values)

    @property
    def word(self) -> str:
        """The preferred spelling, without a slash."""
        words: list[str] = self._texts["words"] or self._english["words"]
        return words[0]


def shared_names() -> tuple[str, ...]:
    """Return the names of the commands of every channel, in the order of their texts."""
    return tuple(load_texts("commands.json")["every"])


@cache
def command_words(channel: CommandChannel) -> Mapping[str, str]:
    """Return the name of the command for each word of any language, without a slash."""
    content = load_texts("commands.json")
    return {
        word: name
        for language in LANGUAGES
        for name in (*content["every"], *content[channel])
        for word in _merge(name, channel, language)["words"]
    }


@cache
def _merge(name: str, channel: CommandChannel, language: Language) -> Mapping[str, Any]:
    """Return the texts of a section for one channel."""
    content = load_texts("commands.json")
    own = (content["every"].get(name) or content[channel][name])[language]
    texts = {key: text for key, text in own.items() if key not in COMMAND_CHANNELS}
    return {**texts, **own.get(channel, {})}
