"""`larkspur tasks`: list tasks, and apply the worktree changes of one."""

from argparse import Namespace

from internal.channels.cli.client import GatewayClient
from internal.channels.cli.command_output import CommandOutput
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.gateway import run_with_records
from internal.channels.cli.commands.parser import TASK_ID_HELP, add_gateway, add_json
from internal.channels.cli.commands.tasks.changes import apply_changes, print_diff
from internal.channels.cli.exit_codes import USAGE, CliExit
from internal.channels.cli.id_lookup import find_session
from internal.channels.cli.output import Output
from internal.channels.cli.render.task_tree import tree_json, tree_rows
from internal.channels.cli.task_request import decode_argument

_USAGE = "Usage: larkspur tasks [list] | diff ID | apply ID [--yes]"


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "tasks",
        description="List tasks, newest first; diff ID prints what a task changed in its worktree;"
        " apply ID makes these changes in the folder of the task that created it.",
    )
    parser.add_argument(
        "action",
        nargs="?",
        choices=("list", "diff", "apply"),
        default="list",
        help="what to do (list)",
    )
    parser.add_argument("id", nargs="?", type=decode_argument, metavar="ID", help=TASK_ID_HELP)
    parser.add_argument(
        "--session", type=decode_argument, metavar="ID", help="only the tasks of this session"
    )
    parser.add_argument("--yes", action="store_true", help="apply without a question")
    parser.add_argument("--tree", action="store_true", help="show the subtasks below each task")
    add_json(parser)
    add_gateway(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Execute the chosen action."""
    if (args.action == "list") != (args.id is None):
        raise CliExit(USAGE, _USAGE)

    async def work(client: GatewayClient) -> int:
        if args.action == "diff":
            return await print_diff(client, args.id)
        if args.action == "apply":
            return await apply_changes(client, args.id, args, context)
        session_id = None if args.session is None else await find_session(client, args.session)
        output = CommandOutput(Output(), args.json)
        if not args.tree:
            return output.items(await client.tasks(session_id))
        trees = await client.task_trees(session_id)
        return output.json([*map(tree_json, trees)]) if args.json else output.rows(tree_rows(trees))

    return run_with_records(args, context, work)
