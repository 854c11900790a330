"""`larkspur skills`."""

import shutil
from pathlib import Path

import pytest

from internal.agent.domain.errors import LarkspurError
from internal.channels.cli.exit_codes import FAILED, OK, USAGE, WAITING
from tests.support.command_runner import CommandRunner


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "reports"
    (folder / "scripts").mkdir(parents=True)
    header = "name: reports\ndescription: Writes reports.\nallowed-tools: Bash(git *)"
    (folder / "SKILL.md").write_text(f"---\n{header}\n---\nsee\u202ethis")
    (folder / "scripts" / "run.py").write_text("import a_package_of_the_test")
    return folder


def state(run: CommandRunner) -> list[str]:
    """The states of the skills that were added."""
    return [one["state"] for one in run("skills", "--json").json if one["origin"] == "own"]


def test_a_skill_is_added_reviewed_and_removed(run: CommandRunner, source: Path) -> None:
    assert run("skills").code == OK
    assert run("skills", "add", str(source)).code == OK
    assert state(run) == ["not reviewed"]
    refused = run("skills", "review", "reports")
    assert (refused.code, state(run)) == (WAITING, ["not reviewed"])
    assert "--yes" in refused.message
    for shown in (
        "scripts/run.py",
        "script",
        "Bash(git *): can be allowed with the rule shell(git *)",
        "line 6, column 4: U+202E",
        "sha256",
    ):
        assert shown in refused.out
    assert "\u202e" not in refused.out
    assert run("skills", "review", "reports", "--yes").code == OK
    assert run.local("rules", "--json").json == []
    (entry,) = run.local("audit", "--json").json
    assert (entry["action"], entry["via"], entry["target"]) == ("skill.accepted", "cli", "reports")
    item, *shipped = run("skills", "list", "--json").json
    assert item["state"] == "offered"
    assert {(one["origin"], one["state"]) for one in shipped} == {("shipped", "offered")}
    with pytest.raises(LarkspurError, match="was not added here"):
        run("skills", "remove", shipped[0]["name"])
    (Path(item["folder"]) / "scripts" / "run.py").write_text("2")
    assert state(run) == ["changed since its review"]
    assert "changed since its review" in run("skills", "show", "reports").out
    assert run("skills", "remove", "reports").code == OK
    assert state(run) == []


def test_rules_are_granted_at_a_review_and_removed(run: CommandRunner, source: Path) -> None:
    run("skills", "add", str(source))
    assert run("skills").out.splitlines()[0].split()[:5] == [
        *("reports", "not", "reviewed", "own", "Writes")
    ]
    with pytest.raises(LarkspurError, match=r"does not ask for the rule 'shell\(rm \*\)'"):
        run("skills", "review", "reports", "--yes", "--rule", "shell(rm *)")
    assert "not reviewed" in run("skills").out  # with what was shown before the error
    assert state(run) == ["not reviewed"]
    granted = run("skills", "review", "reports", "--yes", "--rule", "shell(git *)")
    assert "Granted: shell(git *). To remove it: larkspur rules" in granted.err
    (rule,) = run.local("rules", "--json").json
    assert rule["rule"] == "shell(git *)"
    assert run.local("rules", "remove", str(rule["number"])).code == OK
    assert run.local("rules", "--json").json == []
    assert run("skills", "show", "reports", "--rule", "shell(git *)").code == USAGE


def test_a_skill_that_is_added_again_needs_another_review(run: CommandRunner, source: Path) -> None:
    run("skills", "add", str(source))
    run("skills", "review", "reports", "--yes")
    run("skills", "remove", "reports")
    run("skills", "add", str(source))
    assert state(run) == ["not reviewed"]


def test_the_check_of_a_folder_names_what_is_unusual(run: CommandRunner, source: Path) -> None:
    assert run("skills", "check", str(source)).code == OK
    renamed = source.rename(source.with_name("other"))
    found = run("skills", "check", str(renamed))
    assert found.code == FAILED
    assert "differs from the folder's, other" in found.out
    with pytest.raises(LarkspurError, match="is missing"):
        run("skills", "check", str(renamed / "scripts"))


def test_a_wrong_command_line_is_explained(run: CommandRunner) -> None:
    for line in (("show",), ("list", "name"), ("add",)):
        found = run("skills", *line)
        assert (found.code, found.message[:6]) == (USAGE, "Usage:")
    with pytest.raises(LarkspurError, match="no skill 'none'"):
        run("skills", "show", "none")


def test_a_review_names_what_commands_lack_for_the_scripts(
    run: CommandRunner, source: Path, environ: dict[str, str]
) -> None:
    run("skills", "add", str(source))
    assert "lacking" not in run("skills", "show", "reports").out
    environ["LARKSPUR_SANDBOX__PROVIDER"] = "bubblewrap"
    shown = run("skills", "show", "reports").out
    assert "lacking: Its scripts need the Python packages a-package-of-the-test, which" in shown
    requirements = Path(environ["HOME"], "packages.txt")
    requirements.write_text("A_package.of-the-test==1.0\n")
    environ["LARKSPUR_SANDBOX__PACKAGES"] = str(requirements)
    assert "lacking" not in run("skills", "show", "reports").out


def test_a_collection_is_added_and_reviewed_in_one_go(
    run: CommandRunner, source: Path, tmp_path: Path
) -> None:
    collection = tmp_path / "collection"
    for name in ("reports", "charts"):
        folder = collection / "plugins" / "office" / "skills" / name
        shutil.copytree(source, folder)
        text = (folder / "SKILL.md").read_text().replace("name: reports", f"name: {name}")
        (folder / "SKILL.md").write_text(text)
    assert run("skills", "check", str(collection)).code == OK
    (collection / "empty").mkdir()
    (collection / "empty" / "SKILL.md").write_text("")
    added = run("skills", "add", str(collection))
    assert added.code == FAILED
    assert f"{collection}/empty/SKILL.md, line 1: the skill has no description" in added.err
    assert "Added 2 skills: charts, reports. They are not used before a review" in added.err
    refused = run("skills", "review", "--all")
    assert (refused.code, state(run)) == (WAITING, ["not reviewed"] * 2)
    assert refused.out.count("scripts/run.py") == 2
    assert run("skills", "review", "--all", "--rule", "shell(git *)").code == USAGE
    assert run("skills", "review", "--all", "reports").code == USAGE
    assert run("skills", "review", "--all", "--yes").code == OK
    assert state(run) == ["offered"] * 2
    assert "No skill needs a review" in run("skills", "review", "--all").err
    assert run("skills", "remove", "reports", "charts").code == OK
    assert state(run) == []
