"""Lessons: refusals of model servers, kept so that the same request is not sent again."""

from typing import Any, NamedTuple

import msgspec

MAX_WORDS = 500
"""Characters of the words of a server that are kept."""


class LessonKey(NamedTuple):
    """Subject of a lesson. A newer lesson with the same key replaces an older one.

    `model` is "" if the lesson applies to all models of the address. `name` is the name of a tool
    or field, "" if there is none.
    """

    provider: str
    address: str
    model: str
    kind: str
    name: str


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """A refusal of a model server, and the change to its requests since.

    Attributes:
        provider: the provider of the settings.
        address: the base URL of the server.
        model: the model; "" for all models of the address.
        kind: the refused part, a `RefusalKind`.
        name: the name of a tool or field, "" if there is none.
        change: the changed parts of requests, in the terms of the dialect of the server.
        words: the message of the server, shortened.
        version: the version that the server stated, "" if it states none.
        learned: the time of the refusal, RFC 3339.
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
        """The subject of the lesson."""
        return LessonKey(self.provider, self.address, self.model, self.kind, self.name)
