"""`larkspur profiles`."""

from pathlib import Path

from internal.channels.cli.exit_codes import CONFIG, OK, USAGE
from tests.support.command_runner import CommandRunner


def test_profiles_are_listed_and_the_default_is_marked(run: CommandRunner) -> None:
    names = [one["name"] for one in run("profiles", "--json").json]
    assert names == ["coder", "default", "planner", "researcher", "reviewer", "writer"]
    assert "default *" in run("profiles").out


def test_a_profile_is_shown_as_its_file_has_it(run: CommandRunner) -> None:
    shown = run("profiles", "show", "planner").out
    assert "permission_mode: plan" in shown
    assert "tools: read_file, list_dir, search_files" in shown
    assert "instructions: |\n  - Ask" in shown
    missing = run("profiles", "show", "plannr")
    assert (missing.code, "There is no profile plannr" in missing.message) == (USAGE, True)


def test_a_new_file_is_a_usable_profile_and_never_replaces_one(
    run: CommandRunner, home: Path
) -> None:
    made = run("profiles", "new", "support")
    path = home / "profiles" / "support.yaml"
    assert made.out.strip() == str(path)
    assert run("profiles", "check").code == OK
    path.write_text("role: [wrong]\n")
    assert run("profiles", "new", "support").code == USAGE
    assert run("profiles", "new", "../evil").code == USAGE
    checked = run("profiles", "check")
    assert (checked.code, f"{path}:1: role must be text" in checked.out) == (CONFIG, True)
    shown = run("profiles", "show", "support")
    assert (shown.code, "role must be text" in shown.message) == (CONFIG, True)


def test_names_belong_to_some_actions(run: CommandRunner) -> None:
    assert run("profiles", "show").code == USAGE
    assert run("profiles", "list", "coder").code == USAGE


def test_profiles_that_the_settings_name_and_do_not_exist_are_problems(
    run: CommandRunner, home: Path
) -> None:
    text = "channels: {lark: {profile: codr, groups: {oc_1: {profile: planner}}}}"
    (home / "config.yaml").write_text(text)
    checked = run("profiles", "check")
    assert checked.code == CONFIG
    expected = "channels.lark.profile: there is no profile codr; did you mean coder?"
    assert checked.out.splitlines()[0] == expected


def test_a_model_that_is_not_listed_is_a_warning_with_its_line(
    run: CommandRunner, home: Path
) -> None:
    (home / "config.yaml").write_text("llm: {provider: anthropic, api_key: key-for-tests}")
    folder = home / "profiles"
    folder.mkdir(parents=True)
    (folder / "support.yaml").write_text("role: a helper\nmodel: claude-sonet-5-5\n")
    (folder / "child.yaml").write_text("extends: support\n")
    checked = run("profiles", "check")
    assert checked.code == OK
    first, last = checked.out.splitlines()
    assert first == (
        f"{folder}/support.yaml:2: model: Anthropic may not have the model claude-sonet-5-5;"
        " did you mean claude-sonnet-5-5?"
    )
    assert last == "8 profiles can be used, 0 cannot."
    (found,) = run("profiles", "check", "--json").json
    assert (found["name"], found["problem"], found["warning"]) == ("support", "", first)
    printed = run("debug", "prompt", "--profile", "support")
    assert "Anthropic may not have the model claude-sonet-5-5" in printed.err
