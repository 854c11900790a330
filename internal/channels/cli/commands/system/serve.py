"""`larkspur serve`: run the gateway."""

from argparse import Namespace

from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.parser import add_config
from internal.channels.cli.task_request import decode_argument


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "serve", description="Run the gateway: the web page, Lark and the tasks of all channels."
    )
    parser.add_argument("--host", type=decode_argument, help="address to listen on")
    parser.add_argument(
        "--port",
        type=int,
        help="port to listen on instead of server.port (8420); 0 for any free port",
    )
    parser.add_argument(
        "--lark-sim",
        action="store_true",
        help="also run a simulator of Lark, unless an app is configured",
    )
    parser.add_argument(
        "--open", action="store_true", help="open the page in a browser, where there is one"
    )
    parser.add_argument(
        "--no-work",
        action="store_true",
        help="execute no runs: leave them to `larkspur worker` (needs PostgreSQL)",
    )
    add_config(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Serve until a signal."""
    flags = {"server": {"host": args.host, "port": args.port}}
    return context.application().serve(
        args.config,
        flags,
        with_simulator=args.lark_sim,
        opens_page=args.open,
        executes=not args.no_work,
    )
