"""Commands and the repositories of a workspace, in the sandbox that protects files.

The person's git runs in the workspace during and after a command.
"""

import asyncio
import os
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from internal.agent.domain.ids import RunId, SessionId
from internal.agent.ports.tools import CallContext, ToolOutcome
from internal.observability.clock import SystemClock
from internal.sandbox.bubblewrap import BubblewrapSandbox
from internal.sandbox.workspaces import SessionFolders
from internal.tools.commands.background import BackgroundCommandPool
from internal.tools.commands.configuration_search import FoundConfiguration
from internal.tools.commands.git_folders import ADVICE, GitFolders
from internal.tools.instruction_trust import InstructionTrust
from internal.tools.protected_paths import ProtectedPaths
from internal.worktrees.worktrees import GitWorktrees
from tests.support.git_repository import git, make_repository
from tests.support.tools import tool_box

pytestmark = pytest.mark.needs("namespaces")

PLANTS = """
plant() {
  git config --file "$1/config" core.fsmonitor "$PROGRAM"
  git config --file "$1/config.worktree" core.fsmonitor "$PROGRAM"
  printf '../planted' > "$1/commondir"
  mkdir -p "$1/hooks" "$1/info" "$1/modules/sub/hooks" "$1/worktrees/x"
  cp planted/run "$1/hooks/post-checkout"; cp planted/run "$1/hooks/reference-transaction"
  echo '* filter=z' > "$1/info/attributes"
  cp planted/config "$1/modules/sub/config"; cp planted/config "$1/worktrees/x/config.worktree"
  mv "$1/config" "$1/config.old"; rm -rf "$1/config" "$1/hooks"; mv "$1" "$1.old"
  mkdir -p "$1"; cp planted/config "$1/config"
}
PROGRAM=$PWD/planted/run
mkdir planted; printf '#!/bin/sh\\ntouch %s/ran\\ncat' "$PWD" > planted/run; chmod +x planted/run
git config --file planted/config core.fsmonitor "$PROGRAM"
git config --file planted/config filter.z.clean "$PROGRAM"
for each in .git nested/.git; do plant "$each"; done
mv nested elsewhere
git -C planted init -q
"""


class Agent:
    """An agent that runs isolated commands in a repository of a person."""

    def __init__(self, root: Path, workspace: Path, home: Path) -> None:
        self.workspace = workspace
        self.pool = BackgroundCommandPool(SystemClock(), InstructionTrust(root))
        self.box = tool_box(
            workspace,
            sandbox=BubblewrapSandbox(SessionFolders(root / "homes")),
            background=self.pool,
            protected=ProtectedPaths(home, session_folders=[home / "worktrees"]),
        )

    async def __call__(self, command: str, **more: object) -> ToolOutcome:
        """Run a command."""
        return await self.call("shell", {"command": command, **more})

    async def call(self, tool: str, arguments: dict[str, object]) -> ToolOutcome:
        """Call a tool."""
        context = CallContext(
            SessionId("s"), RunId("r"), "c", str(self.workspace), lambda _text: None
        )
        return await self.box.run(context, tool, arguments)

    async def end_of(self, command: str) -> str:
        """Wait until a background command has ended, and return the output of the last read."""
        since = 0
        while True:
            outcome = await self.call(
                "shell_output", {"id": command, "wait_seconds": 30, "since": since}
            )
            if not outcome.metadata["running"]:
                return outcome.text
            since = outcome.metadata["next"]


def repository(folder: Path) -> Path:
    made = make_repository(folder, a_txt="one\n")
    (made / ".gitignore").write_text("nested\nran\nplanted\n*.old\n")
    return made


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncGenerator[Agent]:
    workspace = repository(tmp_path / "workspace")
    repository(workspace / "nested")
    one = Agent(tmp_path, workspace, tmp_path / "home")
    yield one
    await one.pool.close()


def use(folder: Path) -> str:
    """Use git as a person's editor and prompt do, also where it would enter submodules."""
    subprocess.run(["touch", folder / "a.txt"], check=True)
    for arguments in (("checkout", "-q", "HEAD"), ("add", "a.txt")):
        git(folder, *arguments)
    return git(folder, "status", "--short")


async def test_a_command_configures_no_repository_of_the_person(agent: Agent) -> None:
    outcome = await agent(PLANTS)
    for each in (agent.workspace, agent.workspace / "nested"):
        assert use(each) in {"?? .gitignore", "?? .gitignore\n?? elsewhere/"}
        assert not (each / ".git" / "commondir").exists()
        assert not (each / ".git" / "config.worktree").exists()
    assert not (agent.workspace / "ran").exists()
    assert outcome.metadata["configuration"] == ["planted/.git"]


async def test_a_command_that_still_runs_configures_none_either(agent: Agent) -> None:
    go = agent.workspace / "go"
    os.mkfifo(go)
    wait = f"{PLANTS}\nexec 3<go; read -r _ <&3; printf ../planted > .git/commondir; read -r _ <&3"
    outcome = await agent(wait, background=True)
    with await asyncio.to_thread(go.open, "w", buffering=1) as lines:
        for _ in range(2):
            # two commands share what keeps a file from being made
            await agent("echo x > .git/commondir; echo x > .git/config.worktree")
            assert use(agent.workspace / "nested") == "?? .gitignore"
            lines.write("\n")
    assert not (agent.workspace / "ran").exists()
    assert ADVICE in await agent.end_of(outcome.metadata["background"])
    assert not (agent.workspace / ".git" / "commondir").exists()


async def test_git_works_in_a_protected_repository(agent: Agent) -> None:
    outcome = await agent(
        """
        set -e
        export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
        for each in . nested; do
          cd $each
          echo two > b.txt; git add b.txt; git commit -qm two; git tag t
          git switch -qc topic; echo three > c.txt; git add c.txt; git commit -qm three
          echo x > a.txt; git stash -q; git stash pop -q; git checkout -q a.txt
          git switch -q main; echo four > d.txt; git add d.txt; git commit -qm four
          git rebase -q topic; git cherry-pick t~0 --allow-empty --keep-redundant-commits >/dev/null
          git merge -q topic; git reset -q --hard HEAD~1; git branch -q -D topic; git gc -q
          git bisect start HEAD HEAD~2 >/dev/null; git bisect reset 2>/dev/null; git fsck
        done
        """
    )
    assert outcome.metadata["exit_code"] == 0, outcome.text
    assert "configuration" not in outcome.metadata
    assert git(agent.workspace, "log", "-1", "--format=%s") != "First"


async def test_new_repositories_work_and_are_named(agent: Agent, tmp_path: Path) -> None:
    make = """
        set -e
        git clone -q nested clone; git -C clone config user.name a; git init -q new
        git -C new remote add origin /x; git -C clone checkout -qb topic origin/main
    """
    outcome = await agent(make)
    assert outcome.metadata["exit_code"] == 0, outcome.text
    assert outcome.metadata["configuration"] == ["clone/.git", "new/.git"]
    empty = tmp_path / "empty"
    empty.mkdir()
    agent.workspace = empty
    outcome = await agent("git init -q && git config user.name a && git remote add o /x")
    assert (outcome.metadata["exit_code"], outcome.metadata["configuration"]) == (0, [".git"])
    assert ADVICE not in outcome.text


@pytest.mark.parametrize(
    "command",
    [
        "git config user.name x",
        "git remote add origin https://example.com/a.git",
        "touch .git/hooks/pre-commit",
        "git worktree add -q ../tree",
        "cd nested && git config user.name x",
        "rm -rf nested",
    ],
)
async def test_a_command_that_fails_for_it_is_told(agent: Agent, command: str) -> None:
    outcome = await agent(command)
    assert outcome.metadata["exit_code"] != 0
    assert ADVICE in outcome.text


async def test_in_a_subtasks_copy_git_is_the_agents(agent: Agent, tmp_path: Path) -> None:
    copy = tmp_path / "home" / "worktrees" / "session-1.task-1"
    copy.parent.mkdir(parents=True)
    worktrees = GitWorktrees()
    worktrees.create(str(agent.workspace), str(copy))
    agent.workspace = copy
    outcome = await agent(
        "git config core.fsmonitor ./x; git remote add origin /x; touch .git/hooks/pre-commit; "
        "mkdir -p .git/hooks; touch .git/hooks/pre-commit; git init -q sub; rm -rf sub"
    )
    assert outcome.metadata["configuration"] == [".git/config", ".git/hooks/pre-commit"]
    assert outcome.text.endswith("tell them]")
    assert (await agent("git config user.name x && rm -r .git/hooks")).metadata["exit_code"] == 0


async def test_a_worktree_is_made_while_a_command_runs(agent: Agent, tmp_path: Path) -> None:
    go = agent.workspace / "go"
    os.mkfifo(go)
    await agent("echo ready; read -r _ < go", background=True)
    assert (agent.workspace / ".git" / "commondir").read_text() == ".\n"
    GitWorktrees().create(str(agent.workspace), str(tmp_path / "worktrees" / "s.task-1"))
    await asyncio.to_thread(go.write_text, "\n")


async def test_linked_repositories_and_those_of_submodules_are_protected(agent: Agent) -> None:
    workspace = agent.workspace
    store = workspace / "modules" / "store"
    store.mkdir(parents=True)
    (workspace / "nested" / ".git").rename(store / "nested")
    (workspace / "nested" / ".git").symlink_to("../modules/store/nested")
    repository(workspace / "modules" / "other")
    allowed = ("-c", "protocol.file.allow=always")
    git(workspace, *allowed, "submodule", "--quiet", "add", "./modules/other", "sub")
    places = ("modules/store/nested", "modules/other/.git", ".git/modules/sub")
    await agent(
        "printf '#!/bin/sh\ntouch ran' > planted; chmod +x planted; cp planted nested/.git/hooks/x;"
        + "".join(
            f"cp planted {place}/hooks/post-checkout; git config -f {place}/config a.b c;"
            for place in places
        )
        + "echo 'gitdir: ../planted' > sub/.git; rm sub/.git; echo 'gitdir: ../planted' > sub/.git"
    )
    for place in places:
        assert not (workspace / place / "hooks" / "post-checkout").exists()
        assert "[a]" not in (workspace / place / "config").read_text()
    assert not (store / "nested" / "hooks" / "x").exists()
    assert "modules/sub" in (workspace / "sub" / ".git").read_text()
    outcome = await agent(
        "cd nested && git -c user.name=a -c user.email=a@b commit -qm x --allow-empty"
    )
    assert outcome.metadata["exit_code"] == 0, outcome.text


def test_files_of_the_person_are_left_as_they_are(tmp_path: Path) -> None:
    found = {str(tmp_path): FoundConfiguration((".git", "bare", "elsewhere/.git", "link/.git"))}
    for name in (".git", "bare", "elsewhere/.git", "link"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link" / ".git").symlink_to(tmp_path / "bare")
    (tmp_path / ".git" / "config").write_text("[user]\n\tname = Ada\n")
    (tmp_path / ".git" / "config.worktree").write_text("[core]\n")
    (tmp_path / "elsewhere" / ".git" / "config").write_text("[core]\n\tworktree = /srv\n")
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    first, second = GitFolders(found), GitFolders(found)
    kept = tmp_path / ".git" / "commondir"
    assert kept.read_text() == ".\n"
    assert not (tmp_path / "elsewhere" / ".git" / "commondir").exists()
    first.release()
    assert kept.exists()  # the other command needs it
    second.release()
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == before
    third = GitFolders(found)
    kept.unlink()
    kept.write_text("../other\n")  # the person's own
    third.release()
    assert kept.read_text() == "../other\n"
