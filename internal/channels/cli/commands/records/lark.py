"""`larkspur lark`: list the messages to Lark that were given up, and send them again."""

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
from internal.channels.cli.output import Output, print_error
from internal.channels.cli.records import DeadLetterItem
from internal.channels.cli.task_request import decode_argument

_USAGE = "Usage: larkspur lark dead | lark resend N|all [--yes]"
_ALL = "all"
_LIMIT = 500
_REASON_COLUMNS = 400


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "lark", description="List the messages to Lark that were given up; send N or all again."
    )
    parser.add_argument("action", choices=("dead", "resend"), help="what to do")
    parser.add_argument(
        "number", nargs="?", type=decode_argument, metavar="N", help="the message to send, or all"
    )
    parser.add_argument(
        "--yes", action="store_true", help="send messages again that may have been sent"
    )
    add_json(parser)
    add_gateway(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Do the action."""

    async def work(client: GatewayClient) -> int:
        letters = [one for one in await client.dead_letters(_LIMIT) if one.channel == "lark"]
        match args.action, args.number:
            case "dead", None:
                return _list(letters, context, CommandOutput(Output(), args.json))
            case "resend", str(written):
                chosen = _choose(letters, written)
                _confirm(chosen, context, is_confirmed=args.yes)
                for letter in chosen:
                    await client.resend(letter.number, may_repeat=letter.may_have_been_sent)
                print_error(context.messages("resent", count=len(chosen)))
                if client.transport.via == "process":
                    print_error(context.messages("resent_later"))
                return OK
            case _:
                raise CliExit(USAGE, _USAGE)

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
    """Return the messages that are meant, oldest first.

    Raises:
        CliExit: there is no such message.
    """
    chosen = [one for one in reversed(letters) if written in {_ALL, str(one.number)}]
    if not chosen and written != _ALL:
        raise CliExit(USAGE, f"There is no undelivered message {one_line(written)}. {_USAGE}")
    return chosen


def _confirm(
    chosen: Sequence[DeadLetterItem], context: CommandContext, *, is_confirmed: bool
) -> None:
    """Ask before messages are sent again that may have been sent.

    Raises:
        CliExit: the answer is no; without a terminal there is no answer.
    """
    uncertain = [str(one.number) for one in chosen if one.may_have_been_sent]
    if is_confirmed or not uncertain:
        return
    sentence = context.messages("resend_twice", numbers=", ".join(uncertain))
    if not (os.isatty(0) and os.isatty(2)):
        raise CliExit(USAGE, f"{sentence} {context.messages('resend_with_yes')}")
    question = f"{sentence} {context.messages('resend_anyway')}"
    if not confirms(question, context, default=False):
        raise CliExit(USAGE)
