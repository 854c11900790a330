"""`larkspur audit`: list the recorded actions of people."""

from argparse import Namespace

from internal.channels.cli.client import GatewayClient
from internal.channels.cli.command_output import CommandOutput
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.gateway import run_with_records
from internal.channels.cli.commands.parser import add_gateway, add_json
from internal.channels.cli.output import Output

_LIMIT = 500


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "audit",
        description="List who did what, newest first: answers, stops, rules, roles, deletions.",
    )
    add_json(parser)
    add_gateway(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """List the audit entries."""

    async def work(client: GatewayClient) -> int:
        return CommandOutput(Output(), args.json).items(await client.audit_entries(_LIMIT))

    return run_with_records(args, context, work)
