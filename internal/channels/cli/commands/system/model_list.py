"""`larkspur models list`: the models that a server lists."""

from argparse import Namespace

from internal.channels.cli.command_output import CommandOutput
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.parser import add_config, add_json
from internal.channels.cli.exit_codes import FAILED, OK, CliExit
from internal.channels.cli.output import Output


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "list", description="Ask the server of a provider which models it has."
    )
    parser.add_argument("provider", nargs="?", default="", help="default: that of the settings")
    add_json(parser)
    add_config(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """List the models of a server."""
    found = context.application().server_models(args.config, args.provider)
    if found.models is None:
        raise CliExit(FAILED, f"{found.sentence} {found.advice}".strip())
    output = CommandOutput(Output(), args.json)
    if args.json:
        return output.json(found._asdict())
    for name in found.models:
        output.line(f"{name}{' *' * (name == found.in_use)}")
    output.line(found.sentence)
    return OK
