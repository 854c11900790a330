"""`larkspur say`: steer a running task."""

from argparse import Namespace

from internal.channels.cli.client import GatewayClient
from internal.channels.cli.command_output import CommandOutput, short_id
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.gateway import run_with_records
from internal.channels.cli.commands.parser import TASK_ID_HELP, add_gateway
from internal.channels.cli.exit_codes import USAGE, CliExit
from internal.channels.cli.id_lookup import ACTIVE, find_task
from internal.channels.cli.output import Output
from internal.channels.cli.task_request import decode_argument


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser("say", description="Steer a running task.")
    parser.add_argument("id", type=decode_argument, metavar="ID", help=TASK_ID_HELP)
    parser.add_argument(
        "text", nargs="+", type=decode_argument, metavar="TEXT", help="what the agent should know"
    )
    add_gateway(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Send the text to the task's run."""

    async def work(client: GatewayClient) -> int:
        task = await find_task(client, args.id)
        if task.status not in ACTIVE:
            waiting = await client.waiting(task.session_id)
            returned = [one.text for one in waiting if one.is_given_back]
            lost = "".join(f"\n{context.messages('given_back', text=text)}" for text in returned)
            new = f'larkspur -r {short_id(task.session_id)} -p "…"'
            raise CliExit(USAGE, f"The task has ended ({task.state}). Start a new one: {new}{lost}")
        if task.status == "waiting" and task.stop_reason != "await_tasks":
            questions = await client.questions(session_id=task.session_id)
            own = [one.question_id for one in questions if one.task_id == task.task_id]
            answers = " · ".join(
                f"larkspur answer {short_id(question_id)} …" for question_id in own
            )
            raise CliExit(USAGE, f"The task waits for an answer: {answers}")
        steered = await client.steer(task.task_id, " ".join(args.text))
        return CommandOutput(Output()).rows(
            [[context.messages("steered" if steered else "next_task")]]
        )

    return run_with_records(args, context, work)
