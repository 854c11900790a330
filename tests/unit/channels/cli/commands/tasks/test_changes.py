"""`larkspur tasks diff` and `apply`."""

import asyncio
from pathlib import Path

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from tests.support.agent_app import open_agent
from tests.support.anthropic_server import Call, Reply, Rules
from tests.support.command_runner import CommandRunner
from tests.support.git_repository import git, make_repository
from tests.support.scripted_model import When

TASK = {"instruction": "work", "workspace": "worktree"}
DELEGATE = Call("subagent", {"tasks": [TASK]})
WRITE = Call("write_file", {"path": "a.txt", "content": "by the subtask \x1b[2J\n"})
SCRIPT = Rules(
    [
        Reply(calls=[DELEGATE], when=When(last_user="start", results=0)),
        Reply(calls=[WRITE], when=When(last_user="work", results=0)),
        Reply("worked", when=When(last_user="work", results=1)),
        Reply("done", when=When(last_user="start", results=1)),
    ]
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "project", a_txt="first\n")


@pytest.fixture
def task_id(home: Path, repository: Path) -> str:
    """Return the id of a subtask that has changed a file in a worktree."""

    async def work() -> str:
        async with open_agent(home, SCRIPT, {"LARKSPUR_AGENT__GATES": "off"}) as here:
            made = await here.submit("start", workspace=str(repository))
            await here.end_of(made)
            tree = await here.services.gateway.queries.task_tree(made.task_id, LOCAL_OWNER)
            [item] = tree.subtasks
            return item.task.id

    return asyncio.run(work())


def test_the_diff_can_be_piped_to_git(run: CommandRunner, task_id: str, repository: Path) -> None:
    shown = run.local("tasks", "diff", task_id[-8:])
    assert shown.code == 0
    assert shown.out.startswith(f"{task_id} on the branch larkspur/{task_id[-8:]}, from commit ")
    (repository.parent / "patch").write_text(shown.out)
    git(repository, "apply", "../patch")
    assert (repository / "a.txt").read_text() == "by the subtask \x1b[2J\n"


def test_changes_are_applied_only_with_yes(
    run: CommandRunner, task_id: str, repository: Path
) -> None:
    asked = run.local("tasks", "apply", task_id)
    assert asked.code == 2
    assert asked.err.endswith("Changed files (1): a.txt.\n")
    assert asked.message.startswith("A person has to confirm the changes;")
    assert (repository / "a.txt").read_text() == "first\n"

    applied = run.local("tasks", "apply", task_id, "--yes")
    assert (applied.code, applied.out) == (
        0,
        f"Files changed in {repository}: 1. Nothing was committed.\n",
    )
    assert (repository / "a.txt").read_text().startswith("by the subtask")
    assert "task.applied" in run.local("audit").out
    again = run.local("tasks", "apply", task_id, "--yes")
    assert again.code == 2
    assert again.message.startswith(f"The changes are in {repository} already.")


def test_a_conflict_changes_nothing(run: CommandRunner, task_id: str, repository: Path) -> None:
    (repository / "a.txt").write_text("mine\n")
    failed = run.local("tasks", "apply", task_id, "--yes", "--json")
    assert failed.code == 2
    assert failed.message.startswith("Nothing was changed: the changes do not fit.")
    assert (repository / "a.txt").read_text() == "mine\n"
    (repository / "a.txt").write_text("first\n")
    applied = run.local("tasks", "apply", task_id, "--yes", "--json")
    assert applied.json == {"task_id": task_id, "folder": str(repository), "paths": ["a.txt"]}


def test_a_task_without_a_worktree_has_no_diff(run: CommandRunner) -> None:
    task = run.ask("what is 6*7")
    for action in ("diff", "apply"):
        failed = run.local("tasks", action, task["task_id"])
        assert failed.code == 2
        assert failed.message.endswith("has changed nothing in a worktree (completed).")


@pytest.mark.parametrize("words", [["diff"], ["apply"], ["list", "x"]])
def test_an_id_is_given_exactly_where_it_is_needed(run: CommandRunner, words: list[str]) -> None:
    failed = run.local("tasks", *words)
    assert failed.code == 2
    assert failed.message.startswith("Usage: larkspur tasks")
