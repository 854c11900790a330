"""An agent replaces folders by links while others use them; nobody reads where the links lead.

All commands run unasked, in the default mode. The canary is in a file that no command may see.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.errors import InvalidRequest
from tests.support.agent_app import open_agent
from tests.support.anthropic_server import Call, Reply, Rules, seen_in
from tests.support.exchanged_folders import exchanging
from tests.support.git_repository import make_repository
from tests.support.sandboxes import sandbox_params
from tests.support.scripted_model import When

SECRET = "of-another-project"  # noqa: S105  # made up
PROVIDERS = sandbox_params("bubblewrap", "landlock")


def environ(provider: str) -> dict[str, str]:
    return {"LARKSPUR_AGENT__GATES": "off", "LARKSPUR_SANDBOX__PROVIDER": provider}


def sent(requests: list[dict[str, Any]]) -> str:
    return "".join(str(request["messages"]) for request in requests)


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "token").write_text(SECRET)
    return folder


@pytest.mark.parametrize("target", ["home", "secrets"])
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.first_rows(2)
async def test_the_objects_of_a_worktree_are_replaced(
    home: Path, secrets: Path, tmp_path: Path, provider: str, target: str
) -> None:
    (home / "token").write_text(SECRET)
    repository = make_repository(tmp_path / "project", a_txt="first\n")
    objects = repository / ".git" / "objects"
    tasks = [{"instruction": "work", "workspace": "worktree"}]
    read = Call("shell", {"command": f"cat {objects}/token {objects}/*/token; ls {objects}"})
    script = Rules([
        Reply(calls=[Call("subagent", {"tasks": tasks})], when=When(last_user="start", results=0)),
        Reply(calls=[read], hold="swapped", when=When(last_user="work", results=0)),
        Reply("seen", when=When(last_user="work", results=1)),
        Reply("done", when=When(last_user="start", results=1)),
    ])  # fmt: skip
    async with open_agent(home, script, environ(provider)) as here:
        made = await here.submit("start", workspace=str(repository), permission_mode=None)
        await here.model.until_open(1)
        objects.rename(repository / "moved")
        objects.symlink_to(home if target == "home" else secrets)
        here.model.release("swapped")
        await here.end_of(made)
        said = sent(here.model.requests)
    assert "leads to" in said
    assert SECRET not in said


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.first_rows(1)
async def test_a_folder_is_exchanged_while_it_is_searched(
    home: Path, secrets: Path, tmp_path: Path, provider: str
) -> None:
    workspace = tmp_path / "project"
    (workspace / "sub").mkdir(parents=True)
    (workspace / "sub" / "notes").write_text("another line")
    (workspace / "link").symlink_to(secrets)
    searches = [
        Call("search_files", {"path": "sub", "pattern": "another", "glob": f"*{'*' * number}"})
        for number in range(10)
    ]
    script = [Reply(calls=searches), Reply(calls=searches), Reply("done")]
    async with open_agent(home, script, environ(provider)) as here:
        with exchanging(workspace, "sub", "link"):
            made = await here.submit("start", workspace=str(workspace))
            await here.end_of(made)
        said = sent(here.model.requests[-1:])
    assert SECRET not in said
    assert said.count("'tool_result'") == 20


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.first_rows(1)
async def test_a_workspace_inside_of_another_is_exchanged(
    home: Path, secrets: Path, tmp_path: Path, provider: str
) -> None:
    outer = tmp_path / "project"
    (outer / "inner").mkdir(parents=True)
    (outer / "link").symlink_to(secrets)
    calls = [
        Call("read_file", {"path": "token"}),
        Call("shell", {"command": "cat token; touch made"}),
        Call("search_files", {"pattern": "another"}),
        Call("write_file", {"path": "made", "content": ""}),
    ]
    script = [*(Reply(calls=calls) for _ in range(5)), Reply("done")]
    async with open_agent(home, script, environ(provider)) as here:
        with exchanging(outer, "inner", "link"):
            # a task whose folder is the link when it is given or started is refused
            while True:
                try:
                    made = await here.submit(
                        "start", workspace=str(outer / "inner"), allow=("write_file",)
                    )
                except InvalidRequest:
                    continue
                events = await here.end_of(made)
                if here.model.requests:
                    break
        said = sent(here.model.requests)
    assert SECRET not in said
    assert os.listdir(secrets) == ["token"]  # noqa: PTH208  # names
    ended = events[-1]["payload"]
    assert ended["stop_reason"] == "final_answer" or "leads to" in str(ended)


async def test_a_task_is_told_that_its_workspace_leads_elsewhere(
    home: Path, secrets: Path, tmp_path: Path
) -> None:
    outer = tmp_path / "project"
    (outer / "inner").mkdir(parents=True)
    async with open_agent(home, [Reply("one"), Reply("two")], environ("native")) as here:
        made = await here.submit("first", workspace=str(outer / "inner"))
        await here.end_of(made)
        (outer / "inner").rename(outer / "moved")
        (outer / "inner").symlink_to(secrets)
        with pytest.raises(InvalidRequest, match=f"leads to {secrets}"):
            await here.submit("second", made.session_id, workspace=str(outer / "inner"))


@pytest.mark.parametrize("name", ["pipe", "."])
async def test_a_pipe_is_not_searched(home: Path, tmp_path: Path, name: str) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    os.mkfifo(workspace / "pipe")
    (workspace / "notes").write_text("a line")
    search = Call("search_files", {"path": name, "pattern": "line"})
    async with open_agent(home, [Reply(calls=[search]), Reply("done")], environ("native")) as here:
        async with asyncio.timeout(15):  # a search may take 20 s
            made = await here.submit("start", workspace=str(workspace))
            await here.end_of(made)
        said = seen_in(here.model.requests[-1]).last_result
    assert ("neither a file nor a folder" if name == "pipe" else "notes:1: a line") in said
