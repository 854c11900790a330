"""`larkspur trust`: let agents follow the text of an instruction file."""

import os
from argparse import Namespace
from pathlib import Path

from internal.agent.domain.text import escape_invisible
from internal.agent.ports.instructions import MAX_TEXT_BYTES
from internal.channels.cli.command_output import CommandOutput
from internal.channels.cli.commands.confirmation import confirms
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.parser import add_config, text_argument
from internal.channels.cli.exit_codes import CONFIG, OK, USAGE, CliExit
from internal.channels.cli.output import Output


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "trust",
        description="Show an AGENTS.md or CLAUDE.md that a command of an agent may have written,"
        " and let agents follow this text.",
    )
    parser.add_argument("file", type=text_argument, help="the file")
    parser.add_argument("--yes", action="store_true", help="do not ask; the text is shown")
    add_config(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Show the text, ask about it, and trust exactly this text.

    Raises:
        CliExit: there is no such file, the person declines, or this cannot be stored.
    """
    path, output = Path(args.file), CommandOutput(Output())
    if not path.is_file():
        raise CliExit(USAGE, f"There is no file {path}.")
    with path.open("rb") as file:
        content = file.read(MAX_TEXT_BYTES)
    for line in escape_invisible(content.decode("utf-8", "replace")).splitlines():
        output.line(line)
    if not args.yes:
        if not (os.isatty(0) and os.isatty(2)):
            raise CliExit(USAGE, "Nobody can be asked here: read the text, then add --yes.")
        if not confirms(f"Let agents follow this text of {path}? [y/N]", context, default=False):
            raise CliExit(USAGE)
    if not context.application().trust_text(args.config, path, content):
        raise CliExit(CONFIG, "This cannot be stored; the log has the reason.")
    output.line(f"Agents follow {path} from the next run on, until its text changes.")
    return OK
