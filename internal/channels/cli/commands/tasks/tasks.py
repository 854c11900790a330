"""`larkspur tasks`: list tasks."""

from argparse import Namespace

from internal.channels.cli.client import GatewayClient
from internal.channels.cli.command_output import CommandOutput
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.gateway import run_with_records
from internal.channels.cli.commands.parser import add_gateway, add_json
from internal.channels.cli.id_lookup import find_session
from internal.channels.cli.output import Output
from internal.channels.cli.task_request import decode_argument


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser("tasks", description="List tasks, newest first.")
    parser.add_argument(
        "--session", type=decode_argument, metavar="ID", help="only the tasks of this session"
    )
    add_json(parser)
    add_gateway(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """List the tasks."""

    async def work(client: GatewayClient) -> int:
        session_id = None if args.session is None else await find_session(client, args.session)
        return CommandOutput(Output(), args.json).items(await client.tasks(session_id))

    return run_with_records(args, context, work)
