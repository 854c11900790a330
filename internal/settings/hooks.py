"""Settings of hooks and event webhooks."""

import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from internal.agent.domain.events.types import EVENTS
from internal.agent.domain.permissions.rules import RuleError, split_rule
from internal.agent.ports.hooks import HookEvent
from internal.settings.types import Seconds, Secret, Section, Text, web_address

_SYSTEM_FOLDERS = tuple(
    f"/{name}/"
    for name in ("bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "usr")
)
_DECIDING: frozenset[HookEvent] = frozenset({"message_received", "before_tool"})
_OF_CALLS: frozenset[HookEvent] = frozenset({"before_tool", "after_tool"})


def _is_system(path: str) -> bool:
    """Return True for a path of the system, wherever links lead."""
    spellings = (os.path.normpath(path), os.path.realpath(path))
    return all(each.startswith(_SYSTEM_FOLDERS) for each in spellings)


def _argument(text: str) -> str:
    if not text or "\0" in text:
        raise ValueError("must not be empty or contain a NUL character")
    return text


def _address(text: str) -> str:
    path, mark, query = text.partition("?")
    web_address(path)
    if not (query.isascii() and query.isprintable()) or "#" in query or " " in query:
        raise ValueError("must be a URL such as https://example.org/hook")
    return f"{path}{mark}{query}"


Argument = Annotated[str, AfterValidator(_argument)]
HookAddress = Annotated[str, AfterValidator(_address)]


class HookSettings(Section):
    """One hook: a command or a URL that is asked or told about an event; docs/hooks.md."""

    event: HookEvent
    name: Text | None = None
    match: Text | None = None
    command: tuple[Argument, ...] = ()
    url: HookAddress | None = None
    secret: Secret | None = None
    timeout_seconds: Annotated[Seconds, Field(le=600)] = 10.0
    on_failure: Literal["refuse", "continue"] | None = None

    @field_validator("match")
    @classmethod
    def _is_rule(cls, text: str | None) -> str | None:
        if text is not None:
            try:
                split_rule(text)
            except RuleError as error:
                raise ValueError(str(error)) from error
        return text

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("needs either a command or a url")
        if self.command and "/" in self.command[0] and not self.command[0].startswith("/"):
            raise ValueError("command must begin with a program or an absolute path")
        if self.command and self.secret is not None:
            raise ValueError("secret is for a url; a command gets none")
        if self.match is not None and self.event not in _OF_CALLS:
            raise ValueError("match is for before_tool and after_tool only")
        if self.on_failure == "refuse" and self.event not in _DECIDING:
            raise ValueError("on_failure: refuse is for before_tool and message_received only")
        return self

    @property
    def files(self) -> list[Path]:
        """The files of the operator that the command names: no tool may change them.

        The program is the first of them; paths in options such as `--rules=/srv/rules` are last.
        """
        options = [value for each in self.command[1:] for _, _, value in [each.partition("=")]]
        named = [each for each in (*self.command, *options) if each.startswith("/")]
        return list(dict.fromkeys(Path(each) for each in named if not _is_system(each)))

    @property
    def title(self) -> str:
        """The name of the hook for people."""
        if self.name is not None:
            return self.name
        if self.url is not None:
            return urlsplit(self.url).netloc
        return (self.files or [Path(self.command[0])])[0].name

    @property
    def refuses_on_failure(self) -> bool:
        """True if an action does not happen when the hook cannot be asked about it."""
        return self.event in _DECIDING and self.on_failure != "continue"


def _pattern(text: str) -> str:
    if not any(fnmatchcase(event.name, text) for event in EVENTS if event.durable):
        raise ValueError(
            f"{text} is no stored event; write a name such as workflow.result.final, or"
            " workflow.result.* for several"
        )
    return text


def _some(patterns: tuple[str, ...]) -> tuple[str, ...]:
    if not patterns:
        raise ValueError("must name an event, such as workflow.result.*")
    return patterns


EventPattern = Annotated[str, AfterValidator(_pattern)]


class WebhookSettings(Section):
    """A receiver of events: signed POST requests, at least once; docs/hooks.md."""

    url: HookAddress
    secret: Secret
    events: Annotated[tuple[EventPattern, ...], AfterValidator(_some)]
    timeout_seconds: Annotated[Seconds, Field(le=600)] = 10.0

    @property
    def title(self) -> str:
        """The host of the receiver, for people."""
        return urlsplit(self.url).netloc

    def wants(self, event: str) -> bool:
        """Return True if events of a name are sent."""
        return any(fnmatchcase(event, pattern) for pattern in self.events)
