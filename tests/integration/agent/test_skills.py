"""Skills in runs: the catalogue, the tools, the scripts, and the effect of a changed byte."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.errors import InvalidRequest
from internal.config.loader import load
from internal.skills.library import shipped_folder
from larkspur.administration.skills import SkillAdmin
from tests.support.agent_app import Core, open_agent
from tests.support.anthropic_server import Call, Reply, seen_in
from tests.support.sandboxes import sandbox_params
from tests.support.skills import write_skill

NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}


@pytest.fixture
def user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    return tmp_path / "user"


@pytest.fixture
def skill(home: Path) -> Path:
    return write_skill(home)


async def review(home: Path, name: str = "bird-song") -> None:
    admin = SkillAdmin(load(environ={"LARKSPUR_HOME": str(home)}))
    await asyncio.to_thread(admin.accept, admin.review(name).item, ())


async def go(here: Core, workspace: Path) -> None:
    made = await here.submit("go", workspace=str(workspace), permission_mode="all")
    await here.end_of(made)


@pytest.mark.parametrize("provider", sandbox_params("bubblewrap", "landlock", "native"))
@pytest.mark.first_rows(1)
async def test_a_reviewed_skill_is_described_loaded_and_its_scripts_run(
    home: Path, skill: Path, tmp_path: Path, provider: str
) -> None:
    await review(home)
    (home / "secret").write_text("canary")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    tries = f"bash {skill}/scripts/sing.sh; echo x >> {skill}/SKILL.md; cat {home}/secret"
    calls = (
        Call("load_skill", {"name": "bird-song"}),
        Call("read_skill_file", {"name": "bird-song", "path": "scripts/sing.sh"}),
        Call("load_skill", {"name": "bird-sing"}),
        Call("load_skill", {"skill": "bird-song"}),
        Call("read_skill_file", {"name": "bird-song", "path": "../../secret"}),
        Call(
            "shell", {"command": tries if provider != "native" else f"bash {skill}/scripts/sing.sh"}
        ),
    )
    environ = {**NO_GATES, "LARKSPUR_SANDBOX__PROVIDER": provider}
    script = [*(Reply(calls=[call]) for call in calls), Reply("done")]
    async with open_agent(home, script, environ) as here:
        await go(here, workspace)
        first, *others = here.model.requests
        loaded, file, unknown, wrong, outside, ran = (seen_in(one).last_result for one in others)
    assert "- bird-song: Writes down the songs of birds." in str(first["system"])
    assert {"load_skill", "read_skill_file"} <= {tool["name"] for tool in first["tools"]}
    assert f"Folder: {skill}" in loaded
    assert "Listen first." in loaded
    assert "echo tirra-lirra" in file
    assert "there is no skill" in unknown
    assert "load_skill: " in wrong
    assert "leads out of the skill" in outside
    assert "tirra-lirra" in ran
    assert "canary" not in ran
    assert (skill / "SKILL.md").read_text().endswith("Listen first.\n")


@pytest.mark.parametrize("provider", sandbox_params("bubblewrap", "landlock", "native"))
@pytest.mark.first_rows(1)
async def test_shipped_skills_are_offered_without_a_review_and_their_scripts_run(
    home: Path, tmp_path: Path, provider: str
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "a.csv").write_text("name,amount\nlark,2\nwren,3\n")
    skill = shipped_folder() / "spreadsheet-analysis"
    profile = f"python3 -I {skill}/scripts/profile_table.py a.csv"
    change = "" if provider == "native" else f"; echo x > {skill}/new"
    calls = (
        Call("load_skill", {"name": "spreadsheet-analysis"}),
        Call("read_skill_file", {"name": "code-review", "path": "references/checklist.md"}),
        Call("shell", {"command": profile + change}),
    )
    environ = {**NO_GATES, "LARKSPUR_SANDBOX__PROVIDER": provider}
    script = [*(Reply(calls=[call]) for call in calls), Reply("done")]
    async with open_agent(home, script, environ) as here:
        await go(here, workspace)
        first, *others = here.model.requests
        loaded, checklist, ran = (seen_in(one).last_result for one in others)
    assert "load_skill" in {tool["name"] for tool in first["tools"]}
    for name in ("code-review", "report-with-charts", "spreadsheet-analysis"):
        assert f"- {name}: " in str(first["system"])
    assert f"Folder: {skill}" in loaded
    assert "scripts/profile_table.py" in loaded
    assert "Checklist for a review" in checklist
    assert "| amount | integer | 0 | 2 | 2 | 3 | 2.5 |" in ran
    assert not (skill / "new").exists()


@pytest.mark.parametrize("provider", sandbox_params("bubblewrap", "landlock"))
async def test_skills_of_the_setting_are_offered_after_a_review_and_can_only_be_read(
    home: Path, tmp_path: Path, user_home: Path, provider: str
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    folder = user_home / ".claude" / "skills" / "bird-song"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\ndescription: Writes down songs.\n---\nListen first.\n")
    paths = '["~/.claude/skills", "~/.agents/skills"]'  # the second one does not exist
    environ = {
        **NO_GATES,
        "LARKSPUR_SKILLS__PATHS": paths,
        "LARKSPUR_SANDBOX__PROVIDER": provider,
    }
    admin = SkillAdmin(load(environ={**environ, "LARKSPUR_HOME": str(home)}))
    load_it = Reply(calls=[Call("load_skill", {"name": "bird-song"})])
    tries = f"cat {folder}/SKILL.md; echo x > {folder}/new"
    try_it = Reply(calls=[Call("shell", {"command": tries})])
    async with open_agent(home, [Reply("one"), load_it, try_it, Reply("two")], environ) as here:
        await go(here, workspace)
        item = admin.review("bird-song").item
        assert (item.origin, item.state) == ("shared", "not reviewed")
        await asyncio.to_thread(admin.accept, item, ())
        await go(here, workspace)
        first, second, third, fourth = here.model.requests
    assert "- bird-song" not in str(first["system"])
    assert "- bird-song: Writes down songs." in str(second["system"])
    assert f"Folder: {folder}" in seen_in(third).last_result
    assert "Listen first." in seen_in(fourth).last_result
    assert not (folder / "new").exists()


async def test_a_profile_without_the_tool_has_no_skills(home: Path, tmp_path: Path) -> None:
    (home / "profiles").mkdir()
    (home / "profiles" / "reader.yaml").write_text("tools: [read_file]\n")
    environ = {**NO_GATES, "LARKSPUR_AGENT__PROFILE": "reader"}
    async with open_agent(home, [Reply("done")], environ) as here:
        await go(here, tmp_path)
        (request,) = here.model.requests
    assert "load_skill" not in {tool["name"] for tool in request["tools"]}
    assert "Skills hold know-how" not in str(request["system"])


async def test_a_skill_is_withheld_until_it_is_reviewed_and_after_a_changed_byte(
    home: Path, skill: Path, tmp_path: Path
) -> None:
    load = Reply(calls=[Call("load_skill", {"name": "bird-song"})])
    script = [Reply("one"), load, Reply("two"), Reply("three")]
    async with open_agent(home, script, NO_GATES) as here:
        await go(here, tmp_path)  # not reviewed
        await review(home)
        holds = here.model.requests
        assert "- bird-song" not in str(holds[0]["system"])
        await go(here, tmp_path)
        assert "Listen first." in seen_in(holds[2]).last_result
        (skill / "scripts" / "sing.sh").write_text("echo tirra-lirrA\n")
        await go(here, tmp_path)
        assert "- bird-song" not in str(holds[3]["system"])


async def test_a_skill_that_changes_during_a_run_is_withheld_at_once(
    home: Path, skill: Path, tmp_path: Path
) -> None:
    await review(home)
    change = Call("shell", {"command": f"echo x >> {skill}/SKILL.md"})
    load = Call("load_skill", {"name": "bird-song"})
    script = [Reply(calls=[change]), Reply(calls=[load]), Reply("done")]
    async with open_agent(home, script, NO_GATES) as here:  # not isolated: it can change the file
        await go(here, tmp_path)
        assert (
            "is withheld: changed since its review" in seen_in(here.model.requests[-1]).last_result
        )


async def test_a_loaded_skill_survives_the_compression_of_a_long_run(
    home: Path, skill: Path, tmp_path: Path
) -> None:
    with (skill / "SKILL.md").open("a") as file:
        file.write("la " * 500 + "Mind the pauses. " + "la " * 500)
    await review(home)
    (tmp_path / "long.txt").write_text("word " * 8_000)
    load = Reply(calls=[Call("load_skill", {"name": "bird-song"})])
    reads = [Reply(calls=[Call("read_file", {"path": "long.txt"})]) for _ in range(8)]
    environ = {**NO_GATES, "LARKSPUR_LLM__CONTEXT_WINDOW": "40000"}
    async with open_agent(home, [load, *reads, Reply("done")], environ) as here:
        made = await here.submit("go", workspace=str(tmp_path), permission_mode="all")
        await here.end_of(made)
        events = {each["event"] for each in await here.durable(made)}
        requests = here.model.requests[1:]
    assert "workflow.diagnostic.context_compression" in events
    assert len(requests) == 9
    assert all(str(one["messages"]).count("Mind the pauses.") == 1 for one in requests)


async def test_a_profile_and_a_task_grant_skills_by_name(home: Path, tmp_path: Path) -> None:
    for name in ("bird-song", "other"):
        write_skill(home, name)
        await review(home, name)
    (home / "profiles").mkdir()
    (home / "profiles" / "singer.yaml").write_text("skills: [Bird-Song, missing]\n")
    script = [Reply(calls=[Call("load_skill", {"name": "other"})]), *[Reply("done")] * 3]
    async with open_agent(home, script, NO_GATES) as here:

        async def start(profile: str | None, **options: Any) -> tuple[Any, list[dict[str, Any]]]:
            made = await here.submit("go", profile=profile, workspace=str(tmp_path), **options)
            await here.end_of(made)
            return made, await here.durable(made)

        _, events = await start("singer")
        with pytest.raises(InvalidRequest, match="singer does not grant the skills: other"):
            await start("singer", skills=("other",))
        await start(None, skills=("other",))
        _, failed = await start(None, skills=("bird-sonk",))
        first, second, third = here.model.requests
    (problem,) = [e["payload"] for e in events if e["event"] == "workflow.diagnostic.error"]
    assert "There is no skill missing" in problem["error"]
    assert "- bird-song:" in str(first["system"])
    assert "- other:" not in str(first["system"])
    assert "there is no skill 'other'; there are: bird-song" in seen_in(second).last_result
    assert "- bird-song:" not in str(third["system"])
    assert "- other:" in str(third["system"])
    assert "There is no skill bird-sonk" in str(failed)
    assert "did you mean bird-song" in str(failed).lower()


async def test_the_skills_of_a_working_folder_wait_for_a_review_of_their_files(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    for folder in (workspace / ".claude" / "skills" / "moth", outside / "owl"):
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(
            f"---\nname: {folder.name}\ndescription: About the {folder.name}.\n---\nLook closely.\n"
        )
    (workspace / ".agents").mkdir()
    (workspace / ".agents" / "skills").symlink_to(outside)
    load_it = Reply(calls=[Call("load_skill", {"name": "moth"})])
    script = [load_it, Reply("one"), load_it, Reply("two"), load_it, Reply("three")]
    async with open_agent(home, script, NO_GATES) as here:

        async def start() -> list[dict[str, Any]]:
            made = await here.submit("go", workspace=str(workspace))
            await here.end_of(made)
            events = await here.durable(made)
            return [e["payload"] for e in events if e["event"] == "workflow.diagnostic.error"]

        before = await start()
        monkeypatch.chdir(workspace)
        await review(home, "moth")
        monkeypatch.chdir(tmp_path)
        after = await start()
        skill = workspace / ".claude" / "skills" / "moth" / "SKILL.md"
        skill.write_text(skill.read_text() + "Obey.\n")
        changed = await start()
        requests = here.model.requests
    (problem,) = before
    assert "nobody has reviewed are not used: moth. Review one with: larkspur" in problem["error"]
    assert after == []
    assert changed == before
    systems = [str(each["system"]) for each in requests]
    assert [text.count("About the moth.") for text in systems] == [0, 0, 1, 1, 0, 0]
    assert not any("owl" in text for text in systems)
    results = [seen_in(requests[n]).last_result for n in (1, 3, 5)]
    assert "is withheld: not reviewed" in results[0]
    assert "Look closely." in results[1]
    assert "is withheld: changed since its review" in results[2]
