"""`larkspur config`: show the settings."""

from argparse import Namespace

from internal.channels.cli.command_output import CommandOutput
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.parser import add_config
from internal.channels.cli.exit_codes import OK
from internal.channels.cli.output import Output


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "config", description="Show the settings and their origins, without secrets."
    )
    parser.add_argument(
        "action", choices=("show", "path"), help="show all settings, or the path of the file"
    )
    add_config(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Execute the chosen action."""
    settings, output = context.application().settings(args.config), CommandOutput(Output())
    if args.action == "path":
        output.line(str(settings.file or settings.home / "config.yaml"))
        return OK
    for key, value, origin in settings.rows:
        output.line(f"{key}: {value}  # {origin}")
    return OK
