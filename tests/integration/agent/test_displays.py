"""Declared displays of each event, compared with the output of a real run.

The code of each display gets the events of a run, once with and once without the events of a kind.
The output differs if, and only if, the event declares this display.
"""

import json
import subprocess
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
from tests import ROOT
from tests.support.agent_app import open_agent, plan
from tests.support.scripted_model import Call, Reply, Rules, When

pytestmark = pytest.mark.slow

WEB = ROOT / "web"
ROLLDOWN = WEB / "node_modules/.bin/rolldown"
IN_REPLIES = {"workflow.input.received", "workflow.files.changed", "workflow.question.asked"}
"""Events that a chat shows with the reply, or as a message of its own, not as progress."""

Log = Sequence[dict[str, Any]]
DECLARED = {event.name: event for event in EVENTS}

ASK = Call("request_user", {"question": "Which colour?", "options": ["red", "green"]})
TASKS = [
    {"instruction": "dig", "agent_profile": {"role": "digger"}},
    {"instruction": "sift", "depends_on": ["1"]},
]
STEPS = [
    plan("look", "write"),
    Call("shell", {"command": "echo hello; exit 3"}),
    Call("write_file", {"path": "output/report.md", "content": "# Report"}),
    Call("subagent", {"tasks": TASKS}),
    ASK,
]
RULES = [
    Reply(calls=[Call("list_dir", {})], when=When(last_user="dig", results=0)),
    Reply(calls=[ASK], when=When(last_user="dig", results=1)),
    Reply("dug", when=When(last_user="dig", results=2)),
    Reply("sifted", when=When(last_user="sift")),
    *(
        Reply(
            "I go on.",
            pieces=2,
            thinking="hm",
            calls=[call],
            when=When(last_user="start", results=number),
        )
        for number, call in enumerate(STEPS)
    ),
    Reply("all done", pieces=3, when=When(last_user="start", results=len(STEPS))),
]


async def played(home: Path) -> list[dict[str, Any]]:
    """Return the events of a run with all sorts of calls, and of one that is stopped."""
    async with open_agent(home, Rules(RULES), {"LARKSPUR_AGENT__GATES": "off"}) as here:
        made = await here.submit("start")
        asked = await here.until(made.session_id, is_question)
        await here.answer(asked[-1]["payload"]["question_id"], "text", "red")
        question = await here.asked(made)
        await here.answer(question["question_id"], "text", "green")
        await here.end_of(made)
        second = await here.submit("start", made.session_id)
        await here.until(made.session_id, lambda each: waits_for_tasks(each, second.run_id))
        await here.services.gateway.stop(second.task_id, LOCAL_OWNER, "web")
        return await here.end_of(second)


def is_question(event: dict[str, Any]) -> bool:
    return bool(event["is_subtask"]) and event["event"] == "workflow.question.asked"


def waits_for_tasks(event: dict[str, Any], run_id: str) -> bool:
    is_wait = event["payload"].get("stop_reason") == "await_tasks"
    return bool(event["run_id"] == run_id and is_wait)


def encoded(event: dict[str, Any]) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()


def distinct(shown: Iterator[str]) -> list[str]:
    """Return the displayed texts, with repetitions in a row removed."""
    found: list[str] = []
    for each in shown:
        if not found or found[-1] != each:
            found.append(each)
    return found


def outermost_runs(log: Log) -> dict[str, dict[str, Any]]:
    """Return an event of each run that no other run created, by run id."""
    return {each["run_id"]: each for each in log if not each["is_subtask"]}


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
    """Yield the output of `-p` for each run, whose person answers its questions elsewhere."""
    for first in outermost_runs(log).values():
        ids = Ids(first["session_id"], first["task_id"], first["run_id"])
        for output in ("text", "json"):
            report = RunReport(output, ids)
            for number, event in enumerate(log, 1):
                report.add_event(f"abc-{number}" if "seq" in event else "", encoded(event))
                yield from report.take_notices()
                yield from report.take_asides()
                yield str((report.has_ended, report.is_waiting, report.subtasks))
                report.resume(())
            yield str(report.messages())
            yield str(report.result())


def stream(log: Log) -> Iterator[str]:
    for event in log:
        if not DECLARED[event["event"]].inner:
            yield encoded(event).decode()


def chat(log: Log) -> Iterator[str]:
    """Yield the progress of each run in a chat; replies have tests of their own."""
    phrases = ChatTexts("en").phrases_for("start")
    for root in outermost_runs(log):
        progress, subtasks = RunProgress(), SubtaskStates(RunId(root))
        for event in log:
            if "seq" not in event:
                continue
            if event["run_id"] == root:
                progress.apply(event["event"], encoded(event))
            subtasks.apply(event["event"], encoded(event))
            lines = progress.lines(phrases, subtasks.lines(phrases))
            yield str((progress.title(phrases), lines, progress.thoughts, progress.is_over))


PAGE_SCRIPT = """
import { readFileSync } from 'node:fs';
import { EMPTY } from './session_state.mjs';
import { reduceEvent } from './event_reducer.mjs';
const log = JSON.parse(readFileSync(0, 'utf8'));
function shown(rows) {
  const states = [];
  let state = EMPTY;
  for (const row of rows) {
    state = reduceEvent(state, row);
    const text = JSON.stringify({ ...state, cursor: '' });
    if (states.at(-1) !== text) states.push(text);
  }
  return states.join('\\n');
}
const whole = shown(log);
const kinds = [...new Set(log.map((row) => row.event.event))];
const without = (kind) => shown(log.filter((row) => row.event.event !== kind));
console.log(JSON.stringify(kinds.filter((kind) => without(kind) !== whole)));
"""


def kinds_on_the_page(log: Log, folder: Path) -> set[str]:
    """Return the kinds of events without which the state of the page is another one."""
    folder.mkdir()
    for module in ("event_reducer", "session_state"):
        out = ("--format", "esm", "--file", str(folder / f"{module}.mjs"))
        command = (str(ROLLDOWN), f"src/state/{module}.ts", *out)
        subprocess.run(command, cwd=WEB, check=True, capture_output=True)
    script = folder / "kinds.mjs"
    script.write_text(PAGE_SCRIPT, encoding="utf-8")
    rows = [
        {"event": event, **({"id": f"abcdef-{number}"} if "seq" in event else {})}
        for number, event in enumerate(log, 1)
    ]
    given = json.dumps(rows).encode()
    done = subprocess.run(["node", script], input=given, check=True, capture_output=True)
    return {*json.loads(done.stdout)}


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
    assert len(kinds) >= 19, "a run of all sorts"
    displays: dict[Display, Callable[[Log], Iterator[str]]] = {
        "terminal": terminal,
        "one_shot": one_shot,
        "stream": stream,
    }
    for name, show in displays.items():
        declared = {kind for kind in kinds if name in DECLARED[kind].shown}
        assert kinds_that_matter(show, log) == declared, name
    declared = {kind for kind in kinds if "chat" in DECLARED[kind].shown}
    assert kinds_that_matter(chat, log) == declared - IN_REPLIES


@pytest.mark.needs("node")
async def test_the_page_shows_what_the_events_of_a_real_run_declare(
    home: Path, tmp_path: Path
) -> None:
    log = await played(home)
    declared = {each["event"] for each in log if "page" in DECLARED[each["event"]].shown}
    assert kinds_on_the_page(log, tmp_path / "page") == declared
