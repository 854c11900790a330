"""Subtasks in one-shot commands and sessions, through a gateway and in one process."""

from pathlib import Path

from tests.e2e.test_cli_oneshot import BOTH_TRANSPORTS, cli_environment, until_line
from tests.e2e.test_terminal_session import open_session
from tests.support.scripted_model import Call, Reply, Rules, When

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
async def test_one_shot_command_waits_while_its_run_awaits_subtasks(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with cli_environment(way, home, environ, Rules(COMPARED)) as there:
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
    async with cli_environment(way, home, environ, Rules(rules)) as there:
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
    async with open_session(way, home, environ, Rules(rules)) as repl:
        await repl.send("long")
        await repl.place.model.until_open(1)
        repl.tty.type("\x02")
        await repl.tty.wait_for("goes on in the background")
        await repl.send("quick")
        await repl.tty.wait_for("quick answer")
        repl.place.model.release("go")
        await repl.tty.wait_for("background · long  ✓")
        assert "words of the long task" not in repl.tty.screen.text
        repl.tty.type("\x04")
        assert await repl.exit_restored() == 0


async def test_leaving_asks_first_while_a_task_of_this_process_is_in_the_background(
    home: Path, environ: dict[str, str]
) -> None:
    rules = [Reply("never", hold="never", when=When(last_user="long"))]
    async with open_session("process", home, environ, Rules(rules)) as repl:
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
    async with open_session(way, home, environ, Rules(COMPARED)) as repl:
        await repl.send("compare")
        await repl.tty.wait_for("all compared", "task 1 · a  ✓", "task 3 · c  ✓")
        repl.tty.type("\x04")
        await repl.exit_restored()
        listed = await repl.place.start("tasks", "--tree")
        out, err = await listed.communicate()
    rows = out.decode().splitlines()
    assert len(rows) == 4, err
    assert all(f"task {n} · {site}: read {site}" in rows[n] for n, site in enumerate(SITES, 1))


@BOTH_TRANSPORTS
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
    async with cli_environment(way, home, environ, Rules(rules)) as there:
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
