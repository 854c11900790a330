"""What the commands about people say, in English and Chinese. Standard library only."""

import json
import os
from functools import cache
from typing import Literal

Language = Literal["en", "zh"]


class Phrases:
    """The sentences of one language, from its catalogue `people.*.json`."""

    def __init__(self, language: Language = "en") -> None:
        self._known = catalogue(language)

    def __call__(self, phrase: str, /, **fields: object) -> str:
        """Return a sentence with its fields filled in."""
        return self._known[phrase].format(**fields)


@cache
def catalogue(language: Language) -> dict[str, str]:
    """Return the sentences of a language by their names."""
    path = os.path.join(os.path.dirname(__file__), f"people.{language}.json")  # noqa: PTH118, PTH120 - pathlib would be one more import of a command that must start fast
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - as above
        known: dict[str, str] = json.load(file)
    return known
