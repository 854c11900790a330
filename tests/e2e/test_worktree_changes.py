"""The changes of a subtask, taken over by a person in a terminal beside a gateway."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from tests.support.agent_app import open_agent
from tests.support.anthropic_server import Call, Reply, Rules
from tests.support.gateway_process import LARKSPUR, running_gateway
from tests.support.git_repository import make_repository
from tests.support.scripted_model import When
from tests.support.terminal import start_terminal

TASK = {"instruction": "work", "workspace": "worktree"}
SCRIPT = Rules(
    [
        Reply(calls=[Call("subagent", {"tasks": [TASK]})], when=When(last_user="start", results=0)),
        Reply(
            calls=[Call("write_file", {"path": "a.txt", "content": "changed\x1b[2J\n"})],
            when=When(last_user="work", results=0),
        ),
        Reply("worked", when=When(last_user="work", results=1)),
        Reply("done", when=When(last_user="start", results=1)),
    ]
)


async def make_changes(home: Path, repository: Path) -> str:
    """Return the id of a subtask that has changed a file in a worktree."""
    async with open_agent(home, SCRIPT, {"LARKSPUR_AGENT__GATES": "off"}) as here:
        made = await here.submit("start", workspace=str(repository))
        await here.end_of(made)
        tree = await here.services.gateway.queries.task_tree(made.task_id, LOCAL_OWNER)
        return tree.subtasks[0].task.id


async def run(environ: Mapping[str, str], *argv: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *(str(LARKSPUR), *argv),
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode()


@pytest.mark.slow
async def test_changes_are_shown_and_applied_through_a_gateway(
    home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    repository = make_repository(tmp_path / "project", a_txt="first\n")
    task_id = await make_changes(home, repository)
    async with running_gateway(environ, home):
        code, shown = await run(environ, "tasks", "diff", task_id)
        assert code == 0
        assert "-first\n+changed\x1b[2J\n" in shown
        code, told = await run(environ, "tasks", "apply", task_id)
        assert code == 2
        assert "A person has to confirm the changes" in told
        assert (repository / "a.txt").read_text() == "first\n"
        code, told = await run(environ, "tasks", "apply", task_id, "--yes")
        assert (code, told) == (0, f"Files changed in {repository}: 1. Nothing was committed.\n")
    assert (repository / "a.txt").read_text() == "changed\x1b[2J\n"


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 2), ("", 2)])
@pytest.mark.first_rows(1)
async def test_a_person_is_asked_before_files_are_changed(
    home: Path, environ: dict[str, str], tmp_path: Path, answer: str, code: int
) -> None:
    repository = make_repository(tmp_path / "project", a_txt="first\n")
    task_id = await make_changes(home, repository)
    command = [str(LARKSPUR), "tasks", "apply", task_id[-8:]]
    async with start_terminal(command, environ, tmp_path) as tty:
        await tty.wait_for("Changed files (1): a.txt.")
        tty.type(f"{answer}\r")
        assert await tty.wait_exit() == code
    assert ((repository / "a.txt").read_text() == "first\n") is (code != 0)
