"""`larkspur worker`: execute runs beside gateways."""

from argparse import Namespace

from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.parser import add_config


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "worker",
        description="Execute runs beside the gateways of one PostgreSQL database, with the same"
        " settings. It has no page and no channels.",
    )
    parser.add_argument(
        "--health-port",
        type=int,
        help="port of 127.0.0.1 on which GET /health is answered; 0 for any free port",
    )
    add_config(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Work until a signal."""
    flags = {"dispatch": {"health_port": args.health_port}}
    return context.application().work(args.config, flags)
