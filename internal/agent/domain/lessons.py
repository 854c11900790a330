"""Lessons: what a model server refused once, kept so that it is not sent again."""

from typing import Any, NamedTuple

import msgspec

MAX_WORDS = 500
"""Characters of the words of a server that are kept."""


class LessonKey(NamedTuple):
    """What a lesson is about. A newer lesson with the same key replaces an older one.

    `model` is "" where the lesson holds for all models of the address. `name` is that of a tool or
    field, "" if there is none.
    """

    provider: str
    address: str
    model: str
    kind: str
    name: str


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """A refusal of a model server, and what its requests have been like since.

    Attributes:
        provider: the provider of the settings.
        address: the base URL of the server.
        model: the model; "" for all models of the address.
        kind: what was refused, a `RefusalKind`.
        name: that of a tool or field, "" if there is none.
        change: what requests have instead, in the terms of the dialect of the server.
        words: what the server said, shortened.
        version: the version that the server stated, "" if it states none.
        learned: when it was learned, RFC 3339.
    """

    provider: str
    address: str
    model: str
    kind: str
    name: str = ""
    change: dict[str, Any] = {}
    words: str = ""
    version: str = ""
    learned: str = ""

    @property
    def key(self) -> LessonKey:
        """What the lesson is about."""
        return LessonKey(self.provider, self.address, self.model, self.kind, self.name)
