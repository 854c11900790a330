"""`larkspur debug prompt` prints the prompt of the scripted model."""

from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.errors import InvalidRequest, ProfileUnusable
from internal.channels.cli.application import FolderPrompt
from internal.config.loader import load
from larkspur.model_prompt import make_prompt
from tests.support.agent_app import open_agent
from tests.support.anthropic_server import Reply

SETTINGS = {"LARKSPUR_SANDBOX__PROVIDER": "native", "LARKSPUR_LLM__PROVIDER": "anthropic"}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / "AGENTS.md").write_text("Indent with tabs.")
    return folder


@pytest.fixture
def profiles(home: Path) -> Path:
    folder = home / "profiles"
    folder.mkdir(parents=True)
    (folder / "unskilled.yaml").write_text("tools: {remove: [load_skill]}\n")
    (folder / "charts.yaml").write_text("skills: [report-with-charts]\n")
    return folder


async def prompt_of(
    home: Path, workspace: Path, profile: str | None, skills: tuple[str, ...] | None = None
) -> FolderPrompt:
    environ = {"LARKSPUR_HOME": str(home), "ANTHROPIC_API_KEY": "key-for-tests", **SETTINGS}
    return await make_prompt(load(environ=environ), workspace, profile, skills)


@pytest.mark.usefixtures("profiles")
@pytest.mark.parametrize("profile", [None, "unskilled", "charts"])
@pytest.mark.parametrize("skills", [None, ("report-with-charts",)])
async def test_a_run_gets_the_printed_prompt(
    home: Path, workspace: Path, profile: str | None, skills: tuple[str, ...] | None
) -> None:
    options: dict[str, Any] = {} if skills is None else {"skills": skills}
    async with open_agent(home, [Reply("one")], SETTINGS) as here:
        made = await here.submit("go", profile=profile, workspace=str(workspace), **options)
        await here.end_of(made)
        (request,) = here.model.requests
    printed = await prompt_of(home, workspace, profile, skills)
    assert printed.system == request["system"][0]["text"]
    assert printed.instructions == request["messages"][0]["content"][0]["text"]
    assert [(tool["name"], tool["description"]) for tool in printed.tools] == [
        (tool["name"], tool["description"]) for tool in request["tools"]
    ]
    assert ("load_skill" in printed.system) == ("load_skill" in {t["name"] for t in printed.tools})


async def test_an_unknown_profile_or_skill_is_refused_with_the_nearest_name(
    home: Path, workspace: Path
) -> None:
    with pytest.raises(ProfileUnusable, match=r"no profile coeder\. Did you mean coder\?"):
        await prompt_of(home, workspace, "coeder")
    with pytest.raises(InvalidRequest, match="did you mean code-review"):
        await prompt_of(home, workspace, None, ("code-reviw",))
