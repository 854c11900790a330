"""`larkspur tasks diff` and `apply`: the changes of a subtask in its worktree."""

import os
import re
from argparse import Namespace
from collections.abc import Iterable
from contextlib import aclosing
from functools import partial

from internal.channels.cli.client import GatewayClient
from internal.channels.cli.command_output import CommandOutput, short_id
from internal.channels.cli.commands.confirmation import confirms
from internal.channels.cli.commands.context import CommandContext
from internal.channels.cli.exit_codes import OK, USAGE, CliExit
from internal.channels.cli.id_lookup import find_task
from internal.channels.cli.output import Output, print_error

_MAX_NAMED = 20
_FILE = re.compile(rb'^diff --git (?:a/.+ b/(.+)|"a/.+" "b/(.+)")$', re.MULTILINE)


async def print_diff(client: GatewayClient, written: str) -> int:
    """Write the diff of a task to standard output.

    Raises:
        CliExit: there is none.
    """
    _, diff = await _read_diff(client, written)
    Output().write(diff)
    return OK


async def apply_changes(
    client: GatewayClient, written: str, args: Namespace, context: CommandContext
) -> int:
    """Apply the changes of a task to the folder of its creator, after a confirmation.

    Raises:
        CliExit: there are none, they do not fit, or the answer is no.
    """
    task_id, diff = await _read_diff(client, written)
    names = [(plain or quoted).decode("utf-8", "replace") for plain, quoted in _FILE.findall(diff)]
    if not args.yes:
        sentence = context.messages("changed_files", count=len(names), files=_named(names))
        await client.transport.run_blocking(partial(_confirm, sentence, context))
    applied = await client.apply_changes(task_id)
    output = CommandOutput(Output(), args.json)
    if args.json:
        return output.json({"task_id": task_id, **applied._asdict()})
    output.line(
        context.messages("changes_applied", count=len(applied.paths), folder=applied.folder)
    )
    return OK


async def _read_diff(client: GatewayClient, written: str) -> tuple[str, bytes]:
    """Return the id of a task and its diff."""
    task = await find_task(client, written)
    found = await client.worktree_diff(task.task_id)
    if found is None:
        shown = short_id(task.task_id)
        raise CliExit(USAGE, f"Task {shown} has changed nothing in a worktree ({task.status}).")
    async with aclosing(client.artifact_content(found.artifact_id)) as content:
        diff = b"".join([piece async for piece in content])
    if len(diff) != found.size:
        raise CliExit(USAGE, f"{found.name} did not arrive completely; try again.")
    return task.task_id, diff


def _confirm(sentence: str, context: CommandContext) -> None:
    if not (os.isatty(0) and os.isatty(2)):
        print_error(sentence)
        raise CliExit(USAGE, context.messages("apply_with_yes"))
    if not confirms(f"{sentence} {context.messages('apply_changes')}", context, default=False):
        raise CliExit(USAGE)


def _named(names: Iterable[str]) -> str:
    shown = list(names)
    more = len(shown) - _MAX_NAMED
    return ", ".join(shown[:_MAX_NAMED]) + (f" … +{more}" if more > 0 else "")
