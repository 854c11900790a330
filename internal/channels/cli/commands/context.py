"""The context of a command. Standard library only."""

from argparse import ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from internal.config.terminal_env import terminal_facts
from internal.i18n.catalog import MessageCatalog
from internal.i18n.language import Language, resolve_language

if TYPE_CHECKING:
    from internal.channels.cli.application import Application

Subparsers: TypeAlias = "_SubParsersAction[ArgumentParser]"


class CommandContext(NamedTuple):
    """The process that a command runs in.

    `application` imports and returns the composition root; only commands that work in this process
    call it.
    """

    application: "Callable[[], Application]"
    version: str

    @property
    def language(self) -> Language:
        """The language of the environment: `LARKSPUR_UI__LANGUAGE`, else the locale's."""
        facts = terminal_facts()
        return resolve_language(facts.language or "auto", facts.locale)

    @property
    def messages(self) -> MessageCatalog:
        """The messages of the commands in the language of the environment."""
        return MessageCatalog("cli", self.language)


Run = Callable[[Namespace, CommandContext], int]
"""Executes a command and returns the exit code; the `run` default of a command's parser."""
