"""Subtasks in one-shot commands and sessions, through a gateway and in one process."""

import asyncio
import json
from asyncio.subprocess import Process
from pathlib import Path

import pytest

from tests.support.cli_environment import BOTH_TRANSPORTS, open_command_line, until_line
from tests.support.scripted_model import Call, Reply, Rules, When
from tests.support.terminal_session import open_terminal

ASK = Call("request_user", {"question": "Which colour?", "options": ["red", "green"]})
SITES = ("a", "b", "c")
DELEGATE = Call(
    "subagent",
    {"tasks": [{"instruction": f"read {site}", "agent_profile": {"role": site}} for site in SITES]},
)
COMPARED = [
    Reply(calls=[DELEGATE], when=When(last_user="compare", results=0)),
    Reply("all compared", when=When(last_user="compare", results=1)),
    *(Reply(f"{site} is fine", when=When(last_user=f"read {site}")) for site in SITES),
]


@BOTH_TRANSPORTS
@pytest.mark.slow
async def test_one_shot_command_waits_while_its_run_awaits_subtasks(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with open_command_line(way, home, environ, Rules(COMPARED)) as there:
        done = await there.shot("compare")
    assert (done.code, done.out) == (0, b"all compared\n"), done.err


@BOTH_TRANSPORTS
async def test_one_shot_command_waits_for_subtasks_that_outlast_its_run_and_for_their_report(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    create = Call("create_task", {"instruction": "dig", "agent_profile": {"role": "digger"}})
    rules = [
        Reply(calls=[create], when=When(last_user="start", results=0)),
        Reply("it is on its way", when=When(last_user="start", results=1)),
        Reply("gold", hold="go", when=When(last_user="dig", results=0)),
        Reply("the digger found gold", when=When(last_text="has ended")),
        Reply("reported: gold"),
    ]
    async with open_command_line(way, home, environ, Rules(rules)) as there:
        process = await there.start("-p", "start")
        await until_line(process, process.stderr, b"waiting for 1 subtask")
        there.model.release("go")
        out, err = await process.communicate()
    first, _, last = out.decode().strip().partition("\n\n")
    assert (process.returncode, first) == (0, "it is on its way"), err
    assert "gold" in last


@BOTH_TRANSPORTS
async def test_ctrl_b_frees_the_prompt_and_the_end_of_the_task_is_one_line(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    rules = [
        Reply("words of the long task", hold="go", when=When(last_user="long")),
        Reply("quick answer", when=When(last_user="quick")),
    ]
    async with open_terminal(way, home, environ, Rules(rules)) as repl:
        await repl.send("long")
        await repl.place.model.until_open(1)
        repl.tty.type("\x02")
        await repl.tty.wait_for("goes on in the background")
        await repl.send("quick")
        # with the tokens the run has ended: Ctrl+D leaves only between runs
        await repl.tty.wait_for("quick answer", " out")
        repl.place.model.release("go")
        await repl.tty.wait_for("background · long  ✓")
        assert "words of the long task" not in repl.tty.screen.text
        repl.tty.type("\x04")
        assert await repl.exit_restored() == 0


@pytest.mark.slow
async def test_leaving_asks_first_while_a_task_of_this_process_is_in_the_background(
    home: Path, environ: dict[str, str]
) -> None:
    rules = [Reply("never", hold="never", when=When(last_user="long"))]
    async with open_terminal("process", home, environ, Rules(rules)) as repl:
        await repl.send("long")
        await repl.place.model.until_open(1)
        repl.tty.type("\x02")
        await repl.tty.wait_for("goes on in the background")
        repl.tty.type("\x04")
        await repl.tty.wait_for("1 background task ends")
        repl.tty.type("\x04")
        assert await repl.exit_restored() == 0
        assert (await repl.place.only_task())["status"] == "cancelled"


@BOTH_TRANSPORTS
async def test_subtasks_have_rows_in_a_session_and_in_the_tree_of_tasks(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with open_terminal(way, home, environ, Rules(COMPARED)) as repl:
        await repl.send("compare")
        await repl.tty.wait_for("all compared", "task 1 · a  ✓", "task 3 · c  ✓")
        repl.tty.type("/tasks\r")
        await repl.tty.wait_for(*(f"task {n} · {site}: read" for n, site in enumerate(SITES, 1)))
        row = next(row for row in repl.tty.screen.rows if "task 1 · a: read a" in row)
        assert row.startswith("  "), "subtasks are indented"
        repl.tty.type("\x04")
        await repl.exit_restored()
        listed = await repl.place.start("tasks", "--tree")
        out, err = await listed.communicate()
        as_json = await repl.place.start("tasks", "--tree", "--json")
        (tree,) = json.loads((await as_json.communicate())[0])
    assert (tree["task"], tree["status"], tree["total_cost"]) == ("compare", "completed", 0.0)
    below = [(one["path"], one["parent_task_id"]) for one in tree["subtasks"]]
    assert below == [(f"task {n} · {site}", tree["task_id"]) for n, site in enumerate(SITES, 1)]
    rows = out.decode().splitlines()
    assert len(rows) == 4, err
    assert all(f"task {n} · {site}: read {site}" in rows[n] for n, site in enumerate(SITES, 1))


@BOTH_TRANSPORTS
@pytest.mark.slow
async def test_one_shot_command_ends_when_only_a_person_can_continue_its_subtasks(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    tasks = [{"instruction": "ask first"}, {"instruction": "paint it", "depends_on": ["1"]}]
    rules = [
        Reply(calls=[Call("subagent", {"tasks": tasks})], when=When(last_user="go", results=0)),
        Reply("all painted", when=When(last_user="go", results=1)),
        Reply(calls=[ASK], when=When(last_user="ask first", results=0)),
        Reply("green it is", when=When(last_user="ask first", results=1)),
        Reply("painted", when=When(last_user="paint it")),
    ]
    async with open_command_line(way, home, environ, Rules(rules)) as there:
        shot = await there.shot("go", "--output-format", "json")
        (asked,) = shot.rows[0]["questions"]
        answered = await there.start("answer", asked["question_id"], "green")
        _, err = await answered.communicate()
        assert (shot.code, answered.returncode) == (6, 0), (shot.err, err)
        if not there.gateways:
            await there.serve()
        watched = await there.start("watch", shot.rows[0]["task_id"])
        out, err = await watched.communicate()
    assert (watched.returncode, "● all painted" in out.decode()) == (0, True), (out, err)


async def created_subtask(process: Process) -> str:
    """Return the id of the next subtask that a command with stream-json creates."""
    assert process.stdout is not None
    async with asyncio.timeout(60):
        while line := await process.stdout.readline():
            event = json.loads(line).get("event", {})
            if event.get("event") == "background.task.dispatched":
                return str(event["payload"]["task_id"])
    raise AssertionError("no subtask was created")


ONE = Call("subagent", {"prompt": "read one"})


@BOTH_TRANSPORTS
@pytest.mark.slow
async def test_a_subtask_is_steered_and_watched_from_another_process(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    look = Call("list_dir", {})
    rules = [
        Reply(calls=[ONE], when=When(last_user="compare", results=0)),
        Reply("compared", when=When(last_user="compare", results=1)),
        Reply("read quickly", when=When(last_user="be quick")),
        Reply(calls=[look], hold="go", when=When(last_user="read one", results=0)),
        Reply("read slowly", when=When(last_user="read one", results=1)),
    ]
    async with open_command_line(way, home, environ, Rules(rules)) as there:
        process = await there.start("-p", "compare", "--output-format", "stream-json")
        subtask = await created_subtask(process)
        said = await there.start("say", subtask, "be quick")
        _, err = await said.communicate()
        assert said.returncode == 0, err
        watched = await there.start("watch", subtask)
        there.model.release("go")
        shown, err = await watched.communicate()
        out, _ = await process.communicate()
    assert (watched.returncode, process.returncode) == (0, 0), err
    assert "● read quickly" in shown.decode()
    assert "compared" not in shown.decode()
    assert json.loads(out.splitlines()[-1])["text"] == "compared"


@BOTH_TRANSPORTS
@pytest.mark.slow
async def test_a_stopped_subtask_does_not_stop_the_run_that_created_it(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    rules = [
        Reply(calls=[ONE], when=When(last_user="compare", results=0)),
        Reply("it was stopped", when=When(last_user="compare", results=1)),
        Reply(hang=True, when=When(last_user="read one")),
    ]
    async with open_command_line(way, home, environ, Rules(rules)) as there:
        process = await there.start("-p", "compare", "--output-format", "stream-json")
        subtask = await created_subtask(process)
        stopped = await there.start("stop", subtask)
        _, err = await stopped.communicate()
        out, _ = await process.communicate()
        assert (await there.task(subtask))["status"] == "cancelled"
    assert (stopped.returncode, process.returncode) == (0, 0), err
    assert json.loads(out.splitlines()[-1])["text"] == "it was stopped"


@BOTH_TRANSPORTS
@pytest.mark.slow
async def test_ctrl_c_stops_the_run_in_front_and_not_the_task_in_the_background(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    rules = [
        Reply("done after all", hold="go", when=When(last_user="long")),
        Reply(hang=True, when=When(last_user="second")),
    ]
    async with open_terminal(way, home, environ, Rules(rules)) as repl:
        await repl.send("long")
        await repl.place.model.until_open(1)
        repl.tty.type("\x02")
        await repl.tty.wait_for("goes on in the background")
        await repl.send("second")
        await repl.place.model.until_open(2)
        await repl.tty.wait_for("esc stop")
        repl.tty.type("\x03")
        await repl.tty.wait_for("■ stopped")
        assert repl.place.model.open_requests == 1
        repl.place.model.release("go")
        await repl.tty.wait_for("background · long  ✓")
        repl.tty.type("\x04")
        assert await repl.exit_restored() == 0


@BOTH_TRANSPORTS
@pytest.mark.slow
async def test_subtasks_of_a_run_with_a_plan_have_rows_below_the_plan(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    plan = Call("plan", {"goal": "a report", "steps": ["compare", "write"], "complexity": "simple"})
    rules = [
        Reply(calls=[plan], when=When(last_user="compare", results=0)),
        Reply(calls=[DELEGATE], when=When(last_user="compare", results=1)),
        Reply("all compared", when=When(last_user="compare", results=2)),
        *(
            Reply(f"{site} is fine", hold="go", when=When(last_user=f"read {site}"))
            for site in SITES
        ),
    ]
    async with open_terminal(way, home, environ, Rules(rules)) as repl:
        await repl.send("compare")
        await repl.tty.wait_for(*(f"├ task {n} · {site}  ◆" for n, site in enumerate(SITES, 1)))
        await repl.tty.wait_for("waits for its tasks")
        repl.place.model.release("go")
        await repl.tty.wait_for("● all compared", " out")
        rows = [row for row in repl.tty.screen.text.splitlines() if row]
        planned = rows.index("▣ plan 2 steps  compare → write")
        ended = [row.rpartition("  ✓")[0] for row in rows[planned + 1 :] if "├" in row]
        assert sorted(ended) == [f"  ├ task {n} · {site}" for n, site in enumerate(SITES, 1)]


@pytest.mark.slow
async def test_the_next_start_names_the_task_of_a_killed_terminal_and_not_its_subtasks(
    home: Path, environ: dict[str, str]
) -> None:
    rules = [
        Reply(calls=[DELEGATE], when=When(last_user="compare", results=0)),
        Reply(hang=True, when=When(last_user="read ")),
        Reply("again", when=When()),
    ]
    async with open_terminal("process", home, environ, Rules(rules)) as repl:
        await repl.send("compare")
        await repl.tty.wait_for("├ task 3 · c  ◆")
        await repl.tty.wait_for("waits for its tasks")
        repl.tty.process.kill()
        await repl.tty.wait_exit()
        shot = await repl.place.shot("hello")
        listed = await repl.place.start("tasks", "--tree", "--json")
        _, tree = json.loads((await listed.communicate())[0])
    assert {one["status"] for one in (tree, *tree["subtasks"])} == {"failed"}, tree
    assert (shot.code, shot.err.count("larkspur resume")) == (0, 1), shot.err
    assert f"larkspur resume {tree['task_id']}" in shot.err
