"""The commands of every channel.

A new one is a module of this package with a `COMMAND` and the section with its texts in the table
`every` of `internal/i18n/commands.json`.
"""

from importlib import import_module

from internal.channels.commands.command import SharedCommand
from internal.i18n.commands import shared_names


def _load(name: str) -> SharedCommand:
    command: SharedCommand = import_module(f"internal.channels.commands.{name}").COMMAND
    return command


COMMANDS: tuple[SharedCommand, ...] = tuple(map(_load, shared_names()))
"""In the order of their texts, in which the channels list them."""
