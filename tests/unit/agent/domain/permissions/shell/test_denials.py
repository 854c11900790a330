"""Commands started by a command line, matched against deny patterns."""

import pytest

from internal.agent.domain.permissions.rules import parse_rule
from internal.agent.domain.permissions.shell.denials import (
    MAX_COMPARISONS,
    MAX_EMBEDDED_TEXTS,
    Reach,
    ShellPattern,
    any_denied,
    denies,
)
from internal.agent.domain.permissions.shell.parser import parse_script
from internal.agent.domain.permissions.targets import CommandTarget

MANY_TEXTS = "".join(f"'form {n};' " for n in range(MAX_EMBEDDED_TEXTS + 1))
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


@pytest.mark.parametrize(
    ("pattern", "form", "small", "large"),
    [
        ("rm *", "sudo {}", "'form x;' ", MANY_TEXTS),
        ("rm *", "sudo {}", "'form x;' ", "'form " + "x;' 'form " * 3_000 + "'"),
        ("git push *", "sudo {} log", "git -a ", "git -a " * 900),
        ("rm *", "{}", "xargs ls ", "xargs ls " * 20),
        ("rm *", "sudo {}", "/bin/l* ", "/bin/r*x " * 30),
    ],
    ids=["texts", "bytes", "comparisons", "inputs", "file patterns"],
)  # fmt: skip
def test_a_command_beyond_a_limit_cannot_be_checked(
    pattern: str, form: str, small: str, large: str
) -> None:
    assert is_denied(pattern, form.format(small)) is False
    assert is_denied(pattern, form.format(large)) is None


def test_the_comparisons_stop_at_the_limit() -> None:
    patterns = parse_rule("shell(git push *)", TARGETS).patterns or ()
    shell = [p for p in patterns if isinstance(p, ShellPattern)]
    reach = Reach(parse_script("sudo " + "git -a " * 900 + "log"), shell)
    assert denies(shell, reach) is None
    assert reach.comparisons <= MAX_COMPARISONS + 1


def test_a_denied_command_is_found_before_a_limit_is_reached() -> None:
    assert is_denied("rm *", "rm x; sudo " + "'form x;' " * MAX_EMBEDDED_TEXTS * 2) is True
