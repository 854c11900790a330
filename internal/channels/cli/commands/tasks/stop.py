"""`larkspur stop`: stop a task."""

from argparse import Namespace

from internal.channels.cli.client import GatewayClient
from internal.channels.cli.command_output import CommandOutput
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.gateway import run_with_records
from internal.channels.cli.commands.parser import TASK_ID_HELP, add_gateway
from internal.channels.cli.exit_codes import OK, USAGE, CliExit
from internal.channels.cli.id_lookup import ACTIVE, find_task
from internal.channels.cli.output import Output
from internal.channels.cli.task_request import decode_argument


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser("stop", description="Stop a task.")
    parser.add_argument("id", type=decode_argument, metavar="ID", help=TASK_ID_HELP)
    add_gateway(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Stop the task and print its id."""

    async def work(client: GatewayClient) -> int:
        task = await find_task(client, args.id)
        if task.status not in ACTIVE:
            raise CliExit(USAGE, f"{task.task_id} has ended: {task.state}.")
        await client.stop(task.task_id)
        CommandOutput(Output()).line(task.task_id)
        return OK

    return run_with_records(args, context, work)
