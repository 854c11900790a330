"""Subtasks in one-shot commands and sessions, through a gateway and in one process."""

from pathlib import Path

from tests.e2e.test_cli_oneshot import BOTH_TRANSPORTS, cli_environment, until_line
from tests.support.scripted_model import Call, Reply, Rules, When

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
