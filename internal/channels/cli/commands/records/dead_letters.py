"""`larkspur dead-letters`: list, retry and dismiss messages and runs that were given up."""

import os
from argparse import Namespace
from collections.abc import Sequence

from internal.channels.cli.client import GatewayClient
from internal.channels.cli.command_output import CommandOutput, format_columns, one_line
from internal.channels.cli.commands.confirmation import confirms
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.gateway import run_with_records
from internal.channels.cli.commands.parser import add_gateway, add_json
from internal.channels.cli.exit_codes import OK, USAGE, CliExit
from internal.channels.cli.id_lookup import find_id
from internal.channels.cli.output import Output, print_error
from internal.channels.cli.records import DeadLetterItem
from internal.channels.cli.task_request import decode_argument

_USAGE = "Usage: larkspur dead-letters [list] | retry ID|all [--yes] | dismiss ID|all"
_ALL = "all"
_LIMIT = 500
_REASON_COLUMNS = 400


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "dead-letters",
        description="List the messages and runs that were given up; retry or dismiss ID or all.",
    )
    parser.add_argument(
        "action",
        nargs="?",
        choices=("list", "retry", "dismiss"),
        default="list",
        help="what to do (list)",
    )
    parser.add_argument(
        "id", nargs="?", type=decode_argument, metavar="ID", help="the dead letter, or all"
    )
    parser.add_argument(
        "--yes", action="store_true", help="send messages again that may have been sent"
    )
    add_json(parser)
    add_gateway(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Execute the chosen action."""
    messages = context.messages

    async def work(client: GatewayClient) -> int:
        letters = await client.dead_letters(_LIMIT)
        match args.action, args.id:
            case "list", None:
                return _list(letters, context, CommandOutput(Output(), args.json))
            case "retry", str(written):
                chosen = _choose(letters, written)
                _confirm(chosen, context, is_confirmed=args.yes)
                for letter in chosen:
                    may_repeat = letter.may_have_been_sent
                    await client.retry_dead_letter(letter.id, may_repeat=may_repeat)
                print_error(messages("retried", count=len(chosen)))
                if client.transport.via == "process":
                    print_error(messages("retried_later"))
            case "dismiss", str(written):
                chosen = _choose(letters, written)
                for letter in chosen:
                    await client.dismiss_dead_letter(letter.id)
                print_error(messages("dismissed", count=len(chosen)))
            case _:
                raise CliExit(USAGE, _USAGE)
        return OK

    return run_with_records(args, context, work)


def _list(letters: Sequence[DeadLetterItem], context: CommandContext, output: CommandOutput) -> int:
    if output.as_json:
        return output.items(letters)
    if not letters:
        print_error(context.messages("no_dead_letters"))
    for letter, row in zip(letters, format_columns([one.cells for one in letters]), strict=True):
        output.line(row)
        output.line(f"    {one_line(letter.reason, _REASON_COLUMNS)}")
    return OK


def _choose(letters: Sequence[DeadLetterItem], written: str) -> list[DeadLetterItem]:
    """Return the dead letters that are meant, oldest first.

    Raises:
        GatewayError: there is none, or several match an abbreviated id.
    """
    if written == _ALL:
        return list(reversed(letters))
    chosen = find_id(written, [one.id for one in letters])
    return [one for one in letters if one.id == chosen]


def _confirm(
    chosen: Sequence[DeadLetterItem], context: CommandContext, *, is_confirmed: bool
) -> None:
    """Ask before messages are sent again that may have been sent.

    Raises:
        CliExit: the answer is no; without a terminal there is no answer.
    """
    uncertain = [one.id for one in chosen if one.may_have_been_sent]
    if is_confirmed or not uncertain:
        return
    sentence = context.messages("resend_twice", ids=", ".join(uncertain))
    if not (os.isatty(0) and os.isatty(2)):
        raise CliExit(USAGE, f"{sentence} {context.messages('resend_with_yes')}")
    question = f"{sentence} {context.messages('resend_anyway')}"
    if not confirms(question, context, default=False):
        raise CliExit(USAGE)
