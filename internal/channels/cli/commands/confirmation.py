"""Questions that are asked before a command starts. Standard library only."""

import os
import sys
from argparse import Namespace

from internal.channels.cli.command_output import one_line
from internal.channels.cli.commands.context import CommandContext
from internal.channels.cli.exit_codes import USAGE, CliExit
from internal.channels.cli.output import print_error
from internal.channels.cli.task_request import working_folder
from internal.config import home as home_folder
from internal.i18n.catalog import load_catalog

_MAX_COLUMNS = 500  # of a path


def confirms(question: str, context: CommandContext, *, default: bool) -> bool:
    """Ask on the terminal and return the answer; `default` is that of an empty line.

    Raises:
        CliExit: the answer is neither yes nor no.
    """
    print_error(question)
    answers = load_catalog("cli", context.language)["answers"]
    line = sys.stdin.readline()
    answer = line.strip().lower()
    if line and not answer:
        return default
    if answer in answers["yes"]:
        return True
    if answer in answers["no"]:
        return False
    raise CliExit(USAGE)


def confirmed_folder(args: Namespace, context: CommandContext) -> str:
    """Return the current directory, which is the workspace of the task.

    Asks first if it contains the user's home directory or that of Larkspur, unless `--here` is
    given.

    Raises:
        CliExit: it cannot be used, or the answer is no; without a terminal there is no answer.
    """
    folder = working_folder()
    inner = None if args.here else home_folder.find_home_in(folder)
    if inner is None:
        return folder
    shown = {"folder": one_line(folder, _MAX_COLUMNS), "inner": one_line(str(inner), _MAX_COLUMNS)}
    sentence = context.messages("broad_folder", **shown)
    if not (os.isatty(0) and os.isatty(2)):
        raise CliExit(USAGE, f"{sentence} {context.messages('work_with_here')}")
    if not confirms(f"{sentence}\n{context.messages('work_there')}", context, default=False):
        raise CliExit(USAGE)
    return folder
