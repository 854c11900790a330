"""Subtasks in one-shot commands and sessions, through a gateway and in one process."""

from pathlib import Path

from tests.e2e.test_cli_oneshot import BOTH_TRANSPORTS, cli_environment
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
