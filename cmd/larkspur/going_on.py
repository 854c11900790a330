"""`larkspur answer` and `resume`: a run goes on, in the gateway or in this process."""

import asyncio
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from internal.agent.app.events.subscription import parse_cursor
from internal.agent.domain.ids import RunId, TaskId
from internal.agent.domain.plans import read_steps
from internal.agent.domain.principals import LOCAL_OWNER
from internal.channels.cli.answer_parser import DecisionText, describe_answer, parse_answer
from internal.channels.cli.attached import Attached
from internal.channels.cli.client import GatewayClient, TaskItem
from internal.channels.cli.exit_codes import OK, USAGE, CliExit
from internal.channels.cli.http_client import Door
from internal.channels.cli.in_process import Here
from internal.channels.cli.output import Output, print_error
from internal.channels.cli.output_format import RunReport
from internal.channels.cli.people import find_question
from internal.channels.cli.phrases import Phrases
from internal.channels.cli.repl.local_client import LocalHost
from internal.channels.cli.repl.lookups import Lookups
from internal.channels.cli.repl.remote_client import RemoteHost
from internal.channels.cli.task_request import Ids, decode_argument
from internal.i18n.catalog import MessageCatalog
from larkspur.build import TerminalHouse
from larkspur.failing import sentences
from larkspur.inhouse import in_house
from larkspur.oneshot import gateway_of
from larkspur.speaking import language

Remote = tuple[Door, Callable[[], Door | None]]
_LARGEST_FILE = 1_000_000


def answer(wanted: Namespace) -> int:
    """Answer a question and return the exit code; without a gateway its run goes on here.

    Raises:
        Leave: the answer is not stored.
    """
    decision = _decision(wanted)
    remote = gateway_of(wanted)
    if remote is None:
        return in_house(wanted.config, lambda house: _answer_here(house, wanted, decision))
    host = RemoteHost(*remote)
    with sentences():
        ids, after = asyncio.run(_answered(host, wanted.question, decision))
    if wanted.wait:
        return Attached(*remote, Output()).followed(ids, wanted.output_format, after)
    return _elsewhere("goes_on_gateway", ids, wanted)


def resume(wanted: Namespace) -> int:
    """Go on where a task ended, show that and return the exit code.

    Raises:
        Leave: there is nothing to go on with.
    """
    remote = gateway_of(wanted)
    if remote is None:
        return in_house(wanted.config, lambda house: _resume_here(house, wanted))
    host = RemoteHost(*remote)
    with sentences():
        ids, after = asyncio.run(_resumed(host, wanted.id))
    return Attached(*remote, Output()).resumed(ids, wanted.output_format, after)


async def _answer_here(house: TerminalHouse, wanted: Namespace, decision: DecisionText) -> int:
    ids, after = await _answered(LocalHost(house), wanted.question, decision)
    return await _goes_on(house, ids, after, wanted)


async def _resume_here(house: TerminalHouse, wanted: Namespace) -> int:
    ids, after = await _resumed(LocalHost(house), wanted.id)
    return await _goes_on(house, ids, after, wanted)


async def _goes_on(house: TerminalHouse, ids: Ids, after: str, wanted: Namespace) -> int:
    """Do a queued run here, unless it has a terminal of its own that is alive."""
    here, start, output = Here(house, Output()), parse_cursor(after), wanted.output_format
    brief = (await house.gateway.queries.task(TaskId(ids.task_id), LOCAL_OWNER)).brief
    if await house.adopt(RunId(ids.run_id)):
        return await here.go_on(ids, output, start, brief)
    if getattr(wanted, "wait", True):
        return await here.followed(ids, output, start, brief)
    return _elsewhere("goes_on_terminal", ids, wanted)


async def _answered(host: GatewayClient, written: str, decision: DecisionText) -> tuple[Ids, str]:
    """Store an answer; return whose run goes on and the place behind all that was before."""
    question = await find_question(host, written)
    given = parse_answer(question.view, decision)
    after = await host.head(question.session_id)
    answered = await host.answer(question.question_id, given)
    print_error(describe_answer(answered.view["answer"], Phrases(language())))
    return Ids(answered.session_id, answered.task_id, answered.run_id), after


async def _resumed(host: GatewayClient, written: str) -> tuple[Ids, str]:
    """Make the task that goes on; one that is queued already for whoever takes it is that task."""
    width = shutil.get_terminal_size((100, 24)).columns
    task = await Lookups(host, Output(), MessageCatalog("repl", language()), width).task_of(written)
    after = await host.head(task.session_id)
    if task.status == "queued":
        return await _queued(host, task), after
    return await host.resume(task.task_id), after


async def _queued(host: GatewayClient, task: TaskItem) -> Ids:
    return Ids(task.session_id, task.task_id, (await host.task(task.task_id)).run_id)


def _elsewhere(where: str, ids: Ids, wanted: Namespace) -> int:
    print_error(Phrases(language())(where, task=ids.task_id))
    if wanted.output_format != "text":
        Output().write(RunReport(wanted.output_format, ids).queued())
    return OK


def _decision(wanted: Namespace) -> DecisionText:
    steps = [*wanted.steps, *(() if wanted.file is None else read_steps(_text(wanted.file)))]
    said = " ".join(wanted.decision)
    return DecisionText(said, steps, wanted.goal, wanted.items, wanted.rules)


def _text(path: str) -> str:
    """Return the steps that are written in a file, or in standard input."""
    try:
        if path == "-":
            content = sys.stdin.buffer.read(_LARGEST_FILE)
        else:
            with Path(path).open("rb") as file:
                content = file.read(_LARGEST_FILE)
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CliExit(
            USAGE, f"The file {decode_argument(path)} cannot be read: {reason}."
        ) from None
    return content.decode("utf-8", "replace")
