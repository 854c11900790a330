"""`larkspur lark-sim`: run a simulator of Lark."""

from argparse import Namespace

from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.task_request import decode_argument


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "lark-sim", description="Run a simulator of Lark with a chat page on this machine."
    )
    parser.add_argument(
        "--port", type=int, default=8430, help="port to listen on; 0 for any free port (8430)"
    )
    parser.add_argument("--app-id", type=decode_argument, help="id of the simulated app")
    parser.add_argument(
        "--app-secret", type=decode_argument, help="secret of the simulated app (generated)"
    )
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Serve the simulator until a signal."""
    return context.application().simulate_lark(args.port, args.app_id, args.app_secret)
