"""`larkspur rules`: list and delete the permission rules that people granted."""

from argparse import Namespace

from internal.channels.cli.client import GatewayClient
from internal.channels.cli.command_output import CommandOutput
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.gateway import run_with_records
from internal.channels.cli.commands.parser import add_gateway, add_json
from internal.channels.cli.exit_codes import OK, USAGE, CliExit
from internal.channels.cli.output import Output, print_error


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "rules", description="List the permission rules that people granted; remove N."
    )
    parser.add_argument(
        "action", nargs="?", choices=("list", "remove"), default="list", help="what to do (list)"
    )
    parser.add_argument("number", nargs="?", type=int, metavar="N", help="the rule to remove")
    add_json(parser)
    add_gateway(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Execute the chosen action."""
    messages = context.messages

    async def work(client: GatewayClient) -> int:
        match args.action, args.number:
            case "list", None:
                found = await client.rules()
                if not found and not args.json:
                    print_error(messages("no_rules"))
                return CommandOutput(Output(), args.json).items(found)
            case "remove", int(number):
                rules = {one.number: one.rule for one in await client.rules()}
                await client.remove_rule(number)
                print_error(messages("removed", what=rules.get(number, number)))
                return OK
            case _:
                raise CliExit(USAGE, "Usage: larkspur rules [list] | rules remove N")

    return run_with_records(args, context, work)
