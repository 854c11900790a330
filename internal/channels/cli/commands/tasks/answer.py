"""`larkspur answer`: answer a question."""

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from internal.agent.domain.plans import read_steps
from internal.channels.cli.answer_parser import DecisionText, describe_answer, parse_answer
from internal.channels.cli.client import GatewayClient
from internal.channels.cli.command_output import short_id
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.gateway import run_with_agent
from internal.channels.cli.commands.parser import add_gateway, add_output_format
from internal.channels.cli.exit_codes import OK, USAGE, CliExit
from internal.channels.cli.headless.report import RunReport
from internal.channels.cli.headless.runner import HeadlessRunner
from internal.channels.cli.id_lookup import find_question
from internal.channels.cli.output import Output, print_error
from internal.channels.cli.task_request import Ids, decode_argument, decode_input

_MAX_STEPS_BYTES = 1_000_000


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "answer",
        description="Answer a question. Its run continues, in this process if no gateway runs.",
    )
    add = parser.add_argument
    add(
        "question",
        type=decode_argument,
        metavar="QUESTION",
        help="the question's id, or its beginning or end",
    )
    add(
        "decision",
        nargs="+",
        type=decode_argument,
        metavar="DECISION",
        help="yes, no, no because …, session, rule, option numbers, edit, or free text",
    )
    many: dict[str, Any] = {"action": "append", "default": [], "type": decode_argument}
    add(
        "--step",
        metavar="TEXT",
        dest="steps",
        help="a step of the edited plan (repeatable)",
        **many,
    )
    add("--steps", metavar="FILE", dest="file", help="file with one step per line; - is stdin")
    add(
        "--goal",
        metavar="TEXT",
        type=decode_argument,
        default="",
        help="goal of the edited plan (unchanged)",
    )
    add("--item", metavar="CALL=yes|no", dest="items", help="answer a single call", **many)
    add(
        "--rule", metavar="RULE", dest="rules", help="write this rule, not the offered ones", **many
    )
    add("--wait", action="store_true", help="wait for the run and print its answer")
    add_output_format(parser)
    add_gateway(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Store the answer; execute or follow the run if requested."""
    decision, messages = _decision(args), context.messages

    async def work(client: GatewayClient) -> int:
        question = await find_question(client, args.question)
        answer = parse_answer(question.view, decision)
        after = await client.head(question.session_id)
        answered = await client.answer(question.question_id, answer)
        print_error(describe_answer(answered.view, messages))
        ids = Ids(answered.session_id, answered.task_id, answered.run_id)
        runner = HeadlessRunner(client, Output())
        if await client.transport.adopt(ids.run_id):
            return await runner.follow_own(ids, args.output_format, after)
        if args.wait:
            return await runner.follow(ids, args.output_format, after)
        where = (
            "continues_in_gateway" if client.transport.via == "gateway" else "continues_in_terminal"
        )
        print_error(messages(where, task=short_id(ids.task_id)))
        if args.output_format != "text":
            Output().write(RunReport(args.output_format, ids).format_queued())
        return OK

    return run_with_agent(args, context, work)


def _decision(args: Namespace) -> DecisionText:
    steps = [*args.steps, *(() if args.file is None else read_steps(_read_text(args.file)))]
    return DecisionText(" ".join(args.decision), steps, args.goal, args.items, args.rules)


def _read_text(path: str) -> str:
    """Return the text of a file, of standard input for "-"."""
    try:
        if path == "-":
            content = sys.stdin.buffer.read(_MAX_STEPS_BYTES)
        else:
            with Path(path).open("rb") as file:
                content = file.read(_MAX_STEPS_BYTES)
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = error.strerror if isinstance(error, OSError) else str(error)
        message = f"The file {decode_argument(path)} cannot be read: {reason}."
        raise CliExit(USAGE, message) from None
    return decode_input(content)[0]
