"""`larkspur debug`."""

from pathlib import Path

import pytest

from internal.agent.domain.errors import ProfileUnusable
from tests.support.command_runner import CommandRunner


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "project"
    (path / ".git").mkdir(parents=True)
    (path / "AGENTS.md").write_text("Indent with tabs.")
    monkeypatch.chdir(path)
    return path


def test_the_prompt_has_the_rules_the_folder_and_its_instructions(
    run: CommandRunner, folder: Path
) -> None:
    shown = run("debug", "prompt")
    assert shown.out.index("Rules:") < shown.out.index("Indent with tabs.")
    assert f"Workspace: {folder}" in shown.out
    assert '<instructions from="the folder, AGENTS.md">\nIndent with tabs.' in shown.out
    assert shown.err == ""
    assert run("debug", "prompt", "--json").json["instructions"].count("<instructions ") == 1


def test_an_ignored_file_is_named_on_standard_error(run: CommandRunner, folder: Path) -> None:
    (folder / "AGENTS.md").unlink()
    (folder / "AGENTS.md").mkdir()
    shown = run("debug", "prompt")
    assert "AGENTS.md was ignored: it is a folder" in shown.err
    assert "<instructions from" not in shown.out


def test_the_tools_and_the_skills_are_those_of_the_profile(
    run: CommandRunner, folder: Path
) -> None:
    shown = run("debug", "prompt", "--profile", "researcher", "--skills", "report-with-charts")
    assert folder.name in shown.out
    assert "- report-with-charts: " in shown.out
    assert "- code-review: " not in shown.out
    assert "\nTools:\n- read_file\n" in shown.out
    assert "- load_skill\n" in shown.out
    assert "- edit_file\n" not in shown.out
    tools = run("debug", "prompt", "--skills", "--json").json["tools"]
    assert "load_skill" not in {tool["name"] for tool in tools}
    assert tools[0]["parameters"]["properties"]["path"]["type"] == "string"


def test_an_unknown_profile_is_refused_with_the_nearest_name(run: CommandRunner) -> None:
    with pytest.raises(ProfileUnusable, match="Did you mean coder"):
        run("debug", "prompt", "--profile", "codr")
