"""`larkspur cost`: show tokens and cost."""

from argparse import Namespace

from internal.channels.cli.client import GatewayClient
from internal.channels.cli.command_output import CommandOutput
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.gateway import run_with_records
from internal.channels.cli.commands.parser import add_gateway, add_json
from internal.channels.cli.output import Output
from internal.i18n.quantities import format_cost, format_count


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "cost", description="Show tokens and cost by day, session or model."
    )
    parser.add_argument(
        "--by", choices=("day", "session", "model"), default="day", help="group by (day)"
    )
    add_json(parser)
    add_gateway(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """List tokens and cost."""
    output, unknown = CommandOutput(Output(), args.json), context.messages("cost_unknown")

    async def work(client: GatewayClient) -> int:
        found = await client.usage(args.by)
        if args.json:
            return output.json([one._asdict() for one in found])
        return output.rows(
            [
                (
                    one.key,
                    f"{format_count(one.input_tokens)} in",
                    f"{format_count(one.output_tokens)} out",
                    unknown if one.cost is None else format_cost(one.cost),
                )
                for one in found
            ]
        )

    return run_with_records(args, context, work)
