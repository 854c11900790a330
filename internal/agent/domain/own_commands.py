"""Commands that a person ran beside the conversation, which go along with the next message.

The model reads them behind the message; people see each as a row of its own.
"""

import re
from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from internal.agent.domain.text import truncate_json

MAX_OWN_COMMANDS = 10
MAX_COMMAND_CHARS = 2_000
MAX_OUTPUT_CHARS = 10_000
MAX_SHOWN_BYTES = 30_000
"""Bytes of JSON that the commands of one message take in its event."""

_BLOCK = re.compile(
    r"\n\n<shell>\n\$ (?P<command>.*)\n(?P<output>(?:.*\n)*?)"
    r"\[exit code (?P<code>-?\d+)\]\n</shell>"
)
_END = "</shell>"


class OwnCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command of a person, the end of what it printed, and its exit code."""

    command: Annotated[str, Meta(min_length=1, max_length=MAX_COMMAND_CHARS)]
    output: Annotated[str, Meta(max_length=MAX_OUTPUT_CHARS)] = ""
    exit_code: int = 0


def add_commands(text: str, commands: Sequence[OwnCommand]) -> str:
    """Return the text of a message for the model, with the commands before it."""
    return text + "".join(map(_block, commands))


def split_commands(text: str) -> tuple[str, tuple[OwnCommand, ...]]:
    """Return a message as people read it, and the commands that `add_commands` added."""
    end = len(text)
    found = [*_BLOCK.finditer(text)]
    # only blocks at the end are ours: a person may have written others
    own = []
    for block in reversed(found):
        if block.end() != end:
            break
        end = block.start()
        own.append(
            OwnCommand(block["command"], block["output"].removesuffix("\n"), int(block["code"]))
        )
    return text[:end], tuple(reversed(own))


def added_commands(text: str, prompt: str) -> tuple[OwnCommand, ...]:
    """Return the commands with which a message became the prompt; () if it is another prompt."""
    own, commands = split_commands(prompt)
    return commands if own == text else ()


def shown_commands(text: str, prompt: str) -> tuple[tuple[OwnCommand, ...], int]:
    """Return the commands of a message as its event has them, and the bytes that they take."""
    commands = added_commands(text, prompt)
    if not commands:
        return (), 0
    share = MAX_SHOWN_BYTES // len(commands)
    shown = tuple(
        OwnCommand(
            truncate_json(each.command, share // 4),
            truncate_json(each.output, share // 2),
            each.exit_code,
        )
        for each in commands
    )
    return shown, MAX_SHOWN_BYTES


def _block(own: OwnCommand) -> str:
    command = " ".join(own.command.split("\n"))
    output = own.output.rstrip().replace(_END, f"&lt;{_END[1:]}")
    lines = ["<shell>", f"$ {command}", output, f"[exit code {own.exit_code}]", _END]
    return "\n\n" + "\n".join(line for line in lines if line)
