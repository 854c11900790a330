"""Parts of commands against allow and deny patterns, and the rules suggested for them."""

import pytest

from internal.agent.domain.permissions.rules import (
    CommandPattern,
    RedirectPattern,
    parse_allow_rule,
    parse_rule,
)
from internal.agent.domain.permissions.shell.matcher import (
    allows_part,
    any_denied,
    denies,
    expand_parts,
    needs_no_rule,
    suggest_rule,
)
from internal.agent.domain.permissions.shell.parser import parse_script
from internal.agent.domain.permissions.targets import CommandTarget

TARGETS = {"shell": (CommandTarget("command"),)}


def is_allowed(pattern: str, command: str) -> bool:
    rule = parse_allow_rule(f"shell({pattern})", TARGETS)
    (part,) = parse_script(command).parts
    return allows_part(rule, part)


def is_denied(pattern: str, command: str) -> bool | None:
    patterns = parse_rule(f"shell({pattern})", TARGETS).patterns or ()
    shell = [p for p in patterns if isinstance(p, CommandPattern | RedirectPattern)]
    return denies(shell, expand_parts(parse_script(command)))


@pytest.mark.parametrize(
    ("pattern", "command", "allowed"),
    [
        ("git log *", "git log -n 5", True),
        ("git log *", "timeout 5 git log", True),
        ("git log", "git log -n 5", False),
        ("git log *", "/opt/git log", False),
        ("git log *", "git log $X", False),
        ("git *", "git -c core.pager=x log", False),
        ("A=1 make", "A=1 make", True),
        ("A=1 make", "A=2 make", False),
        ("> out/*", "> out/a", True),
        ("> out/*", "< out/a", False),
        ("> /dev/*", "> /dev/sda", False),
    ],
)
def test_an_allow_rule_covers_exactly_its_pattern(
    pattern: str, command: str, allowed: bool
) -> None:
    assert is_allowed(pattern, command) is allowed


@pytest.mark.parametrize(
    ("pattern", "command", "denied"),
    [
        ("rm *", "/bin/rm x", True),
        ("rm *", "sudo rm x", True),
        ("rm *", "bash -c 'rm x'", True),
        ("git push *", "git -C folder push origin", True),
        ("git push *", "git-push origin", True),
        ("rm *", "echo x | sh", None),
        ("rm *", "$X y", None),
        ("> secret/*", "> $X", None),
        ("> secret/*", "> secret/a", True),
        ("rm *", "ls x", False),
    ],
)
def test_a_deny_rule_also_matches_hidden_commands(
    pattern: str, command: str, denied: bool | None
) -> None:
    assert is_denied(pattern, command) is denied


def test_an_unknown_verdict_never_hides_a_denial() -> None:
    assert any_denied([None, True, False]) is True
    assert any_denied([False, None]) is None
    assert any_denied([False, False]) is False
    assert any_denied([]) is False


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("> /dev/null", True),
        ("< notes/a.md", True),
        ("< /etc/passwd", False),
        ("> notes/a.md", False),
        ("true", False),
    ],
)
def test_discarding_output_and_reading_inside_the_workspace_need_no_rule(
    command: str, expected: bool
) -> None:
    (part,) = parse_script(command).parts
    assert needs_no_rule(part) is expected


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("rm 'a b' ./*.py", "shell(rm 'a b' ./*.py)"),
        ("nice make", "shell(make)"),
        ("> 'a*'", "shell(> 'a*')"),
        ("sudo make", ""),
        ("A=1 make", ""),
        ("rm $X", ""),
        ("> /dev/sda", ""),
    ],
)
def test_the_narrowest_safe_rule_is_suggested(command: str, rule: str) -> None:
    (part,) = parse_script(command).parts
    assert suggest_rule("shell", part) == rule
