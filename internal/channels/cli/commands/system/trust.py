"""`larkspur trust`: let agents follow an instruction file that a command wrote."""

from argparse import Namespace
from pathlib import Path

from internal.channels.cli.command_output import CommandOutput
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.parser import add_config, text_argument
from internal.channels.cli.exit_codes import CONFIG, OK, USAGE, CliExit
from internal.channels.cli.output import Output


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "trust",
        description="Let agents follow an AGENTS.md or CLAUDE.md that a command of an agent wrote."
        " Read it first.",
    )
    parser.add_argument("file", type=text_argument, help="the file")
    add_config(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Trust the file.

    Raises:
        CliExit: there is no such file, or this cannot be stored.
    """
    path, output = Path(args.file), CommandOutput(Output())
    if not path.is_file():
        raise CliExit(USAGE, f"There is no file {path}.")
    try:
        was_untrusted = context.application().trust_file(args.config, path)
    except OSError as error:
        raise CliExit(CONFIG, f"This cannot be stored: {error.strerror}.") from None
    output.line(
        f"Agents follow {path} from the next run on."
        if was_untrusted
        else f"{path} was not written by a command; nothing has changed."
    )
    return OK
