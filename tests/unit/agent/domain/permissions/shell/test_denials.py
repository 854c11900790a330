"""What a command may start against deny patterns."""

import pytest

from internal.agent.domain.permissions.rules import parse_rule
from internal.agent.domain.permissions.shell.denials import (
    Reach,
    ShellPattern,
    any_denied,
    denies,
)
from internal.agent.domain.permissions.shell.parser import parse_script
from internal.agent.domain.permissions.targets import CommandTarget

TARGETS = {"shell": (CommandTarget("command"),)}


def is_denied(pattern: str, command: str) -> bool | None:
    patterns = parse_rule(f"shell({pattern})", TARGETS).patterns or ()
    shell = [p for p in patterns if isinstance(p, ShellPattern)]
    return denies(shell, Reach(parse_script(command), shell))


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
