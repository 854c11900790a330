"""Rules offered for `allowed-tools`: the requested access or less."""

import json
from pathlib import Path

import pytest

from internal.agent.domain.permissions.policy import Allowed, Policy, evaluate_call
from internal.agent.domain.permissions.rules import parse_allow_rule
from internal.agent.domain.tools import targets_by_tool
from internal.agent.ports.skills import SkillOrigin
from internal.skills.library import read_skill
from internal.skills.requested_tools import MAX_REQUESTED, requested_tools
from internal.skills.skill_file import parse_skill_file
from larkspur.task_defaults import TOOL_SPECS
from tests.support.skills import write_skill

SPECS = TOOL_SPECS


def requested(folder: Path, entry: str, origin: SkillOrigin = "own") -> tuple[str, str]:
    """The rule and the refusal of the only entry of a list."""
    text = f"---\ndescription: d\nallowed-tools: [{json.dumps(entry)}]\n---\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    (found,) = requested_tools(read_skill(folder, origin), SPECS)
    return found.rule, found.refusal


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        ("Bash(git:*)", "shell(git *)"),
        ("Bash(git *)", "shell(git *)"),
        ("bash(git log:*)", "shell(git log *)"),
        ("shell(git status)", "shell(git status)"),
        ('Bash(grep "a b":*)', "shell(grep 'a b' *)"),
        ("Write", "write_file"),
        ("Write(./notes/**)", "write_file(notes/**)"),
        ("Edit(*.md)", "edit_file(*.md)"),
        ("MultiEdit(docs/*)", "edit_file(docs/*)"),
        ("WebFetch(domain:example.com)", "web_fetch(example.com)"),
        ("WebFetch(domain:*.example.com)", "web_fetch(*.example.com)"),
    ],
)
def test_an_entry_becomes_a_rule_that_allows_the_same_or_less(
    tmp_path: Path, entry: str, rule: str
) -> None:
    assert requested(write_skill(tmp_path), entry) == (rule, "")
    parse_allow_rule(rule, targets_by_tool(SPECS))


@pytest.mark.parametrize(
    ("entry", "refusal"),
    [
        ("Read", "no rule needed"),
        ("Read(src/**)", "no rule needed"),
        ("Grep", "no rule needed"),
        ("Glob", "no rule needed"),
        ("load_skill", "no rule needed"),
        ("NotebookEdit", "unknown tool"),
        ("mcp_server", "unknown tool"),
        ("Bash", "too wide"),
        ("Bash()", "too wide"),
        ("Bash(*)", "too wide"),
        ("Bash(:*)", "too wide"),
        ("WebFetch", "too wide"),
        ("WebFetch(domain:*)", "too wide"),
        ("Bash(sudo git:*)", "runs other code"),
        ("Bash(env git status)", "runs other code"),
        ("Bash(python3:*)", "runs other code"),
        ("Bash(python3 -c 1)", "runs other code"),
        ("Bash(python3 -m pytest:*)", "runs other code"),
        ("Bash(python3 scripts/missing.py *)", "runs other code"),
        ("Bash(bash ../scripts/sing.sh)", "runs other code"),
        ("Bash(./build.sh:*)", "runs other code"),
        ("Bash(/usr/bin/git:*)", "runs other code"),
        ("Bash(git*)", "cannot be expressed"),
        ("Bash(git * main)", "cannot be expressed"),
        ("Bash(git log; rm -rf x:*)", "cannot be expressed"),
        ("Bash(git log\nrm:*)", "cannot be expressed"),
        ("Bash(git $(rm x):*)", "cannot be expressed"),
        ("Bash(git log > x)", "cannot be expressed"),
        ("Bash(git log # x:*)", "cannot be expressed"),
        ("Bash(PATH=x git:*)", "cannot be expressed"),
        ('Bash(git " :*)', "cannot be expressed"),
        ("Bash(git\u202e:*)", "cannot be expressed"),
        ("Bash(git", "cannot be expressed"),
        ("Write(src", "cannot be expressed"),
        ("Write()", "cannot be expressed"),
        ("Write(/etc/**)", "cannot be expressed"),
        ("Write(~/x)", "cannot be expressed"),
        ("Write(../**)", "cannot be expressed"),
        ("Write(a)) or shell(b)", "cannot be expressed"),
        ("WebFetch(domain:)", "cannot be expressed"),
        ("WebFetch(https://example.com)", "cannot be expressed"),
        ("run_code", "cannot be expressed"),
        ("(", "cannot be expressed"),
        (f"Bash({'a' * 1_000})", "cannot be expressed"),
    ],
)
def test_an_entry_without_a_rule_has_the_reason(tmp_path: Path, entry: str, refusal: str) -> None:
    assert requested(write_skill(tmp_path), entry) == ("", refusal)


def test_a_script_is_named_by_its_path_if_no_tool_can_change_it(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "my home")
    script = folder / "scripts" / "sing.sh"
    asked, direct = "Bash(bash scripts/sing.sh *)", "Bash(./scripts/sing.sh)"
    rule, _ = requested(folder, asked)
    assert rule == f"shell(bash '{script}' *)"
    assert requested(folder, direct)[0] == f"shell('{script}')"
    (shell,) = (spec for spec in SPECS if spec.name == "shell")
    policy = Policy(allow=(rule,))
    for command, allowed in (
        (f"bash '{script}' loud", True),
        ("bash scripts/sing.sh", False),
        (f"bash '{script}x'", False),
    ):
        verdict = evaluate_call(policy, shell, {"command": command})
        assert isinstance(verdict, Allowed) == allowed
    assert requested(folder, asked, "shared") == ("", "runs other code")
    assert requested(folder, asked, "workspace") == ("", "runs other code")
    script.rename(script.with_name("other.sh"))
    script.symlink_to("other.sh")
    assert requested(folder, asked) == ("", "runs other code")


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("Read, Bash(git log:*) Write", ("Read", "Bash(git log:*)", "Write")),
        ("Write(src Edit", ("Write(src Edit",)),
    ],
)
def test_an_open_parenthesis_does_not_widen_an_entry(text: str, entries: tuple[str, ...]) -> None:
    content = f"---\ndescription: d\nallowed-tools: {text}\n---\n".encode()
    assert parse_skill_file(content, "SKILL.md", "a").allowed_tools == entries


def test_the_number_of_entries_is_bounded(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, tools=" ".join(["Read"] * (MAX_REQUESTED + 1)))
    assert len(requested_tools(read_skill(folder), SPECS)) == MAX_REQUESTED
