"""What each event declares about where it is shown, compared with what a real run shows.

The events of a run are given to the code of each display once with and once without those of a
kind. What the display shows differs if, and only if, the event says that it is shown there.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.events.displays import Display
from internal.agent.domain.events.types import EVENTS
from internal.agent.domain.ids import RunId
from internal.agent.domain.principals import LOCAL_OWNER
from internal.channels.chat.displays.run_state import RunProgress
from internal.channels.chat.displays.subtask_states import SubtaskStates
from internal.channels.cli.headless.report import RunReport
from internal.channels.cli.render.theme import UNICODE
from internal.channels.cli.repl.view import TranscriptView
from internal.channels.cli.task_request import Ids
from internal.i18n.catalog import MessageCatalog
from internal.i18n.chat import ChatTexts
from tests.support.agent_app import core, plan
from tests.support.scripted_model import Call, Reply, Rules, When

pytestmark = pytest.mark.slow

Log = Sequence[dict[str, Any]]
DECLARED = {event.name: event for event in EVENTS}

STEPS = [
    plan("look", "write"),
    Call("shell", {"command": "echo hello; exit 3"}),
    Call("write_file", {"path": "output/report.md", "content": "# Report"}),
    Call("subagent", {"tasks": [{"instruction": "dig"}]}),
    Call("request_user", {"question": "Which colour?", "options": ["red", "green"]}),
]
RULES = [
    Reply("dug", when=When(last_user="dig", results=1)),
    Reply(calls=[Call("list_dir", {})], when=When(last_user="dig", results=0)),
    *(
        Reply("I go on.", pieces=2, thinking="hm", calls=[call], when=When(all_results=number))
        for number, call in enumerate(STEPS)
    ),
    Reply("all done", pieces=3, when=When(all_results=len(STEPS))),
]


async def played(home: Path) -> list[dict[str, Any]]:
    """Return the events of a run with all sorts of calls, and of one that is stopped."""
    async with core(home, Rules(RULES), {"LARKSPUR_AGENT__GATES": "off"}) as here:
        made = await here.submit("start")
        question = await here.asked(made)
        await here.answer(question["question_id"], "text", "red")
        events = await here.end_of(made)
        queue = await here.submit("start", made.session_id)
        await here.asked(queue)
        await here.services.gateway.stop(queue.task_id, LOCAL_OWNER, "web")
        events = await here.end_of(queue)
    return [each for each in events if each["run_id"] != "" and each["event"] in DECLARED]


def encoded(event: dict[str, Any]) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()


def distinct(shown: Iterator[str]) -> list[str]:
    """Return what was shown, each thing once in a row."""
    found: list[str] = []
    for each in shown:
        if not found or found[-1] != each:
            found.append(each)
    return found


def terminal(log: Log) -> Iterator[str]:
    view = TranscriptView(MessageCatalog("repl", "en"), UNICODE)
    for event in log:
        view.add_event(encoded(event))
        rows, live = view.take_rows(100)
        yield from (str(row) for row in rows)
        run = view.current
        status = None if run is None else (run.status, [*run.tools], run.progress, run.tokens)
        yield str((live, status, view.plan, view.request, view.last_answer, view.thoughts))


def one_shot(log: Log) -> Iterator[str]:
    first = log[0]
    report = RunReport("text", Ids(first["session_id"], first["task_id"], first["run_id"]))
    for number, event in enumerate(log, 1):
        report.add_event(f"abc-{number}" if "seq" in event else "", encoded(event))
        yield from report.take_notices()
        yield from report.take_asides()
        yield str((report.has_ended, report.is_waiting, report.subtasks))
    yield str(report.messages())
    yield str(report.result())


def stream(log: Log) -> Iterator[str]:
    for event in log:
        if not DECLARED[event["event"]].inner:
            yield encoded(event).decode()


def chat(log: Log) -> Iterator[str]:
    """What the progress of a run in a chat shows; the reply has a test of its own."""
    progress, subtasks = RunProgress(), SubtaskStates(RunId(log[0]["run_id"]))
    phrases = ChatTexts("en").phrases_for("start")
    for event in log:
        if "seq" in event:
            if event["run_id"] == log[0]["run_id"]:
                progress.apply(event["event"], encoded(event))
            subtasks.apply(event["event"], encoded(event))
        yield str((progress.title(phrases), progress.lines(phrases, subtasks.lines(phrases))))
        yield str(progress.thoughts)


def kinds_that_matter(show: Callable[[Log], Iterator[str]], log: Log) -> set[str]:
    """Return the kinds of events without which a display shows something else."""
    whole = distinct(show(log))
    kinds = {each["event"] for each in log}
    return {
        kind
        for kind in kinds
        if distinct(show([each for each in log if each["event"] != kind])) != whole
    }


async def test_a_real_run_shows_what_its_events_declare(home: Path) -> None:
    log = await played(home)
    kinds = {each["event"] for each in log}
    assert len(kinds) >= 20, "a run of all sorts"
    displays: dict[Display, Callable[[Log], Iterator[str]]] = {
        "terminal": terminal,
        "one_shot": one_shot,
        "stream": stream,
    }
    for name, show in displays.items():
        declared = {kind for kind in kinds if name in DECLARED[kind].shown}
        assert kinds_that_matter(show, log) == declared, name
    declared = {kind for kind in kinds if "chat" in DECLARED[kind].shown}
    assert kinds_that_matter(chat, log) <= declared
