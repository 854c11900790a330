"""`larkspur questions`: list the questions that wait for a person."""

from argparse import Namespace

from internal.channels.cli.client import GatewayClient
from internal.channels.cli.command_output import CommandOutput, one_line, short_id
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.gateway import run_with_records
from internal.channels.cli.commands.parser import add_gateway, add_json
from internal.channels.cli.exit_codes import OK
from internal.channels.cli.output import Output, print_error
from internal.channels.cli.question_text import answer_command
from internal.normal_forms.time_zones import format_moment

_LIMIT = 500


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "questions", description="List the open questions, oldest first, with how to answer them."
    )
    parser.add_argument("--all", action="store_true", help="include closed questions")
    add_json(parser)
    add_gateway(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """List the questions."""
    messages, output = context.messages, CommandOutput(Output(), args.json)

    async def work(client: GatewayClient) -> int:
        found = (await client.questions(None if args.all else "open", limit=_LIMIT))[::-1]
        if args.json:
            return output.json([dict(one.view) for one in found])
        for one in found:
            cells = (short_id(one.question_id), *one.cells[1:])
            output.line("  ".join(one_line(cell) for cell in cells))
            if one.status == "open":
                until = messages("until", time=format_moment(one.expires))
                for line in (*answer_command(one.view, messages), until):
                    output.line(f"  {line}")
        if not found:
            print_error(messages("no_open_questions"))
        return OK

    return run_with_records(args, context, work)
