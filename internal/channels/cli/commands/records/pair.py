"""`larkspur pair`: grant roles to people of a channel, list and revoke them."""

from argparse import Namespace
from datetime import datetime

from internal.channels.cli.client import GatewayClient
from internal.channels.cli.command_output import CommandOutput
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.gateway import run_with_records
from internal.channels.cli.commands.parser import add_gateway, add_json
from internal.channels.cli.exit_codes import OK, USAGE, CliExit
from internal.channels.cli.id_lookup import find_id
from internal.channels.cli.output import Output, print_error
from internal.channels.cli.records import GrantedRole
from internal.channels.cli.task_request import decode_argument
from internal.i18n.catalog import MessageCatalog
from internal.normal_forms.time_zones import format_moment

_USAGE = "Usage: larkspur pair [--role ROLE] | pair list | pair remove ID"


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "pair",
        description="Create a code that grants a person of a channel a role; list, remove ID.",
    )
    parser.add_argument(
        "action", nargs="?", choices=("list", "remove"), help="without it, create a code"
    )
    parser.add_argument(
        "id", nargs="?", type=decode_argument, metavar="ID", help="the person to remove"
    )
    parser.add_argument(
        "--role",
        choices=("talk", "operate", "owner"),
        default="operate",
        help="the role to grant (operate)",
    )
    add_json(parser)
    add_gateway(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Execute the chosen action."""
    messages, output = context.messages, CommandOutput(Output(), args.json)

    async def work(client: GatewayClient) -> int:
        match args.action, args.id:
            case None, None:
                return await _create(client, args.role, output, messages)
            case "list", None:
                found = await client.people()
                if not found and not args.json:
                    print_error(messages("no_roles"))
                return output.items(found)
            case "remove", str(written):
                principal = find_id(written, [one.principal for one in await client.people()])
                await client.unpair(principal)
                print_error(messages("removed", what=principal))
                return OK
            case _:
                raise CliExit(USAGE, _USAGE)

    return run_with_records(args, context, work)


async def _create(
    client: GatewayClient, role: GrantedRole, output: CommandOutput, messages: MessageCatalog
) -> int:
    code, expires = await client.pair(role)
    if output.as_json:
        return output.json({"code": code, "role": role, "expires": expires})
    output.line(code)
    left = datetime.fromisoformat(expires) - datetime.now().astimezone()
    print_error(messages("pair", minutes=round(left.total_seconds() / 60), code=code))
    granted = messages(f"role_{role}")
    print_error(messages("pair_role", role=granted, time=format_moment(expires)))
    return OK
