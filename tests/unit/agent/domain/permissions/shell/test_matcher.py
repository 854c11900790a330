"""Parts of commands against allow patterns, and the rules suggested for them."""

import pytest

from internal.agent.domain.permissions.rules import parse_allow_rule
from internal.agent.domain.permissions.shell.matcher import (
    allows_part,
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
