"""Runs of an earlier version: stored runs of 0.1.0a1 continue with this code.

`leave_runs` wrote the database, as a killed process leaves it; the file is never written again.
"""

import asyncio
import gzip
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from internal.agent.app.runs.creation import Submitted
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.principals import LOCAL_OWNER
from internal.config.home import prepare
from tests.support.agent_app import open_agent, plan, sound
from tests.support.anthropic_server import Call, Fault, Reply, Rules, When

STORED = Path(__file__).parent / "runs-0.1.0a1.db.gz"
NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}


def delegate(instruction: str, *more: str) -> Reply:
    tasks = [{"instruction": each} for each in (instruction, *more)]
    return Reply(calls=[Call("subagent", {"tasks": tasks})])


def on(last_user: str, results: int, reply: Reply) -> Reply:
    return replace(reply, when=When(last_user=last_user, results=results))


ASK = Reply(calls=[Call("request_user", {"question": "Which colour?"})])
WRITE = Call("write_file", {"path": "made.txt", "content": "made"})
SLEEP = Call("shell", {"command": "echo begun; exec sleep 600"})
BACKGROUND = Call("shell", {"command": "echo served; exec sleep 600", "background": True})

# What each run had done: its task, and the replies of the model until the process died.
LEFT = [
    on("approve", 0, Reply(calls=[WRITE, Call("list_dir", {"path": "."})])),
    on("colour", 0, ASK),
    on("review", 0, Reply(calls=[plan("dig", "fill", title="A pond")])),
    on("thinking", 0, Reply(calls=[plan("think", title="Thoughts")])),
    on("thinking", 1, Reply(hang=True)),
    on("calling", 0, Reply(calls=[SLEEP, Call("list_dir", {"path": "."})])),
    on("serving", 0, Reply(calls=[BACKGROUND])),
    on("serving", 1, ASK),
    on("delegating", 0, delegate("dig the pond")),
    on("dig", 0, Reply(hang=True)),
    on("told", 0, delegate("look around")),
    on("look", 0, Reply(text="seen")),
    on("told", 1, ASK),
    on("failing", 0, Reply(calls=[plan("fail")])),
    on("failing", 1, Reply(fault=Fault("status", status=400, times=None))),
]


PLAIN = ("colour", "thinking", "calling", "serving", "delegating", "told", "failing")


async def leave_runs(home: Path, target: Path) -> None:
    """Write a database with runs in all states that are stored, as a killed process leaves it."""
    async with open_agent(home, Rules(LEFT), NO_GATES) as here:
        made = {
            "approve": await here.submit("approve", permission_mode=Mode.ASK),
            "review": await here.submit("review", plan_review="always"),
        }
        for name in PLAIN:
            made[name] = await here.submit(name)
        for name in ("approve", "review", "colour", "serving", "told"):
            await here.asked(made[name])
        await here.until(made["delegating"].session_id, waits_for_tasks)
        await here.until(made["calling"].session_id, has_printed)
        await here.end_of(made["failing"])
        await here.model.until_open(2)
        await asyncio.to_thread(copy_database, home / "larkspur.db", target)


def waits_for_tasks(each: dict[str, Any]) -> bool:
    return bool(each["payload"].get("stop_reason") == "await_tasks")


def has_printed(each: dict[str, Any]) -> bool:
    return bool(each["event"] == "workflow.tool.completed")


def copy_database(source: Path, target: Path) -> None:
    plain = target.with_suffix("")
    with closing(sqlite3.connect(source)) as read, closing(sqlite3.connect(plain)) as written:
        read.backup(written)
        written.execute("vacuum")
    target.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
    plain.unlink()


# The rest of each run: the replies of the model to the process that goes on.
REST = [
    on("approve", 2, Reply("approved")),
    on("colour", 1, Reply("coloured")),
    on("review", 1, Reply("reviewed")),
    on("thinking", 1, Reply("thought")),
    on("calling", 2, Reply("called")),
    on("serving", 2, Reply("served")),
    on("dig", 0, Reply("dug")),
    on("delegating", 1, Reply("delegated")),
    on("told", 2, Reply("knew it")),
    Reply("went on"),
]
ANSWERS = {
    "approve": ("approve", ""),
    "review": ("approve", ""),
    "colour": ("text", "red"),
    "serving": ("text", "green"),
    "told": ("text", "blue"),
}


async def test_the_runs_of_the_first_version_go_on(tmp_path: Path) -> None:
    home = prepare(tmp_path / "home")
    (home / "larkspur.db").write_bytes(gzip.decompress(STORED.read_bytes()))
    async with open_agent(home, Rules(REST), NO_GATES) as here:
        gateway = here.services.gateway
        tasks = {each.instruction: each for each in await gateway.queries.tasks(LOCAL_OWNER)}
        made: dict[str, Submitted] = {}
        for name, task in tasks.items():
            run = await gateway.queries.latest_run(task.id, LOCAL_OWNER)
            made[name] = Submitted(task.id, run.id, task.session_id, run.status)
        for question, *_ in await gateway.queries.questions(LOCAL_OWNER):
            name = next(key for key, each in made.items() if each.run_id == question.run_id)
            decision, text = ANSWERS[name]
            await here.answer(question.question.id, decision, text)
        made["failing"] = await gateway.resume(made["failing"].task_id, LOCAL_OWNER, "web")
        logs = {}
        for name, each in made.items():
            await here.end_of(each)
            logs[name] = await here.durable(each)
        requests = here.model.requests
    assert {name: log[-1]["payload"].get("final_answer") for name, log in logs.items()} == {
        "approve": "approved",
        "colour": "coloured",
        "review": "reviewed",
        "thinking": "thought",
        "calling": "called",
        "serving": "served",
        "delegating": "delegated",
        "dig the pond": "dug",
        "told": "knew it",
        "look around": "seen",
        "failing": "went on",
    }
    for log in logs.values():
        sound(log)
    for name in ("delegating", "told"):
        ends = [each for each in logs[name] if each["event"] == "background.task.completed"]
        assert len(ends) == 1, "the end of a subtask is told once"
        assert logs[name][-1]["payload"]["subtasks"] == 1
    read = {first_text(each): results_of(each) for each in requests}
    assert read["calling"] == ["interrupted, outcome unknown", "input/\noutput/"]
    assert read["colour"] == ["red"]
    assert read["serving"][1:] == ["green"]
    assert [each.partition(" after ")[2][-4:] for each in read["told"]] == ["seen", ""]
    # the folder of the session is another one here
    assert read["approve"] == [
        "Not run: this is not the call that a person agreed to.", "input/\noutput/",
    ]  # fmt: skip


def first_text(request: dict[str, Any]) -> str:
    """Return the task of a request of the model."""
    return str(request["messages"][0]["content"][0]["text"])


def results_of(request: dict[str, Any]) -> list[str]:
    """Return the results that a request of the model has."""
    parts = [part for message in request["messages"] for part in message["content"]]
    return [str(part["content"]) for part in parts if part["type"] == "tool_result"]
