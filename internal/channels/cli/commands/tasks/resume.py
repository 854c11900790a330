"""`larkspur resume`: continue a failed or stopped task."""

from argparse import Namespace

from internal.channels.cli.client import GatewayClient
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.gateway import run_with_agent
from internal.channels.cli.commands.parser import add_gateway, add_output_format
from internal.channels.cli.headless.runner import HeadlessRunner
from internal.channels.cli.id_lookup import find_task
from internal.channels.cli.output import Output
from internal.channels.cli.task_request import Ids, decode_argument


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "resume", description="Continue a failed or stopped task and print its answer."
    )
    parser.add_argument(
        "id",
        type=decode_argument,
        metavar="TASK",
        help="a task, run or session id, or the beginning of one",
    )
    add_output_format(parser)
    add_gateway(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Continue the task and print its answer."""

    async def work(client: GatewayClient) -> int:
        task = await find_task(client, args.id)
        after = await client.head(task.session_id)
        if task.status == "queued":
            run_id = (await client.task(task.task_id)).run_id
            ids = Ids(task.session_id, task.task_id, run_id)
        else:
            ids = await client.resume(task.task_id)
        runner = HeadlessRunner(client, Output())
        if client.transport.via == "gateway" or await client.transport.adopt(ids.run_id):
            return await runner.follow_own(ids, args.output_format, after)
        return await runner.follow(ids, args.output_format, after)

    return run_with_agent(args, context, work)
