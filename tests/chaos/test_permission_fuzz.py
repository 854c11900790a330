"""Allowed commands stay within the rules in a real shell, whatever their syntax.

Seeded commands are judged under several policies. Every command that a policy allows runs in bash,
started as the shell tool starts it, and in dash. The started programs and the changed files are
compared with the rules and with the judged parts of the command.
"""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.policy import Allowed, Policy, evaluate_call
from internal.agent.domain.permissions.shell.parser import ParsedCommand, Redirect, parse_script
from internal.agent.domain.permissions.shell.words import Word
from internal.tools.commands.shell import _shell, shell
from tests.chaos.command_execution import BATCH_SIZE, SHELLS, WRAPPERS, Execution, TracedShell
from tests.chaos.command_generator import CommandGenerator

SHARDS = 66
MIN_ALLOWED = 1_700
"""Allowed commands that each shard runs in each shell."""

MIN_SHARE = 0.3
"""Share of the generated commands that must be allowed: asking always is not enough."""

Argv = tuple[str, ...]


class Rules(NamedTuple):
    """A policy with its allowed programs and changes, written down a second time by hand."""

    name: str
    policy: Policy
    may_run: Callable[[Argv], bool]
    may_change: Callable[[str], bool]
    is_complete: bool = True
    """True if nothing may run that the judged parts do not show."""


def _allows_unwrapped(argv: Argv) -> bool:
    """Return whether `shell(tracer *)` or `shell(git log *)` allows this, wrappers included."""
    return argv[0] in {"tracer", *WRAPPERS} or argv[:2] == ("git", "log")


RULES = (
    Rules(
        "allow rules with a wildcard",
        Policy(
            allow=("shell(tracer *)", "shell(git log *)", "shell(echo *)", "shell(> out/**)"),
        ),
        _allows_unwrapped,
        lambda path: path.startswith("out/"),
    ),
    Rules(
        "exact allow rules",
        Policy(
            allow=(
                *("shell(tracer a 'b c')", "shell(tracer)", "shell(A=1 tracer)", "shell(tracer a)"),
                *("shell(tracer a#b)", "shell(printf *)", "shell(> out/a)", "shell(> new)"),
            )
        ),
        lambda argv: (
            argv[0] in WRAPPERS
            or argv in {("tracer", "a", "b c"), ("tracer",), ("tracer", "a"), ("tracer", "a#b")}
        ),
        lambda path: path in {"out/a", "new"},
    ),
    Rules(
        "allow rules with deny rules",
        Policy(
            allow=("shell(tracer *)", "shell(echo *)", "shell(> out/**)", "shell(> new)"),
            deny=("shell(tracer stop *)", "shell(> out/no)", "shell(victim)"),
        ),
        lambda argv: argv[0] in {"tracer", *WRAPPERS} and argv[:2] != ("tracer", "stop"),
        lambda path: path == "new" or (path.startswith("out/") and path != "out/no"),
    ),
    Rules(
        "deny rules in full mode",
        Policy(Mode.ALL, deny=("shell(victim *)", "shell(git push *)", "shell(> secret)")),
        lambda argv: argv[0] != "victim" and argv[:2] != ("git", "push"),
        lambda path: path != "secret",
        is_complete=False,
    ),
)


@pytest.fixture(scope="module")
def traced() -> Iterator[TracedShell]:
    found = {name: shutil.which(name, path="/bin:/usr/bin") or "" for name in SHELLS}
    assert all(found.values()), f"a shell is missing: {found}"
    with tempfile.TemporaryDirectory(prefix="larkspur-fuzz-") as folder:
        yield TracedShell(Path(folder), found)


def allowing(command: str, number: int) -> list[Rules]:
    """Return the rules under which the n-th command runs without a question, of two of them."""
    *allow_rules, full = RULES
    return [
        rules
        for rules in (allow_rules[number % len(allow_rules)], full)
        if isinstance(evaluate_call(rules.policy, shell.spec, {"command": command}), Allowed)
    ]


def pattern(word: Word) -> str:
    """Return a regular expression for the arguments, each ended by NUL, that a word stands for."""
    match word.kind:
        case "plain":
            return re.escape(word.text) + "\0"
        case "glob":
            return "(?:[^\0-][^\0]*\0)+"
        case "open":
            return "[^\0]*".join(map(re.escape, word.text)) + "[^\0]*\0"
        case "unknown":
            return "(?:[^\0]*\0)*"


def find_difference(rules: Rules, command: str, execution: Execution) -> str:
    """Return a sentence about an effect that the rules or the judged parts do not cover, or ""."""
    for argv in execution.ran:
        if not rules.may_run(argv):
            return f"{argv} ran"
    for path in execution.changed:
        if not rules.may_change(path):
            return f"{path} changed"
    if not rules.is_complete:
        return ""
    parts = parse_script(command).parts
    judged = [part.words for part in parts if isinstance(part, ParsedCommand)]
    tails = [words[at:] for words in judged for at in range(len(words))]  # of a wrapper
    written = [part.target for part in parts if isinstance(part, Redirect) and part.writes]
    for argv in execution.ran:
        text = "".join(f"{word}\0" for word in argv)
        if not any(re.fullmatch("".join(map(pattern, words)), text) for words in tails):
            return f"{argv} ran and is not a judged command"
    for path in execution.changed:
        if path not in {word.text.removeprefix("./") for word in written}:
            return f"{path} changed and is not a judged redirection"
    return ""


def run_shard(traced: TracedShell, seed: int, wanted: int) -> list[str]:
    """Judge commands until a number of them were allowed and have run; return the differences."""
    commands, differences = iter(CommandGenerator(seed)), list[str]()
    judged = allowed = 0
    while allowed < wanted:
        chosen: dict[str, list[Rules]] = {}
        for command in commands:
            judged += 1
            if found := allowing(command, judged):
                chosen[command] = found
            if len(chosen) == min(BATCH_SIZE, wanted - allowed):
                break
        allowed += len(chosen)
        for argv in (_shell(), ("dash", "-c")):
            executions = traced.run(argv, list(chosen))
            for (command, lanes), execution in zip(chosen.items(), executions, strict=True):
                differences += [
                    f"{rules.name}, {argv[0]}: {command!r}: {difference}"
                    for rules in lanes
                    if (difference := find_difference(rules, command, execution))
                ]
    assert allowed / judged >= MIN_SHARE, f"only {allowed} of {judged} commands were allowed"
    return differences


@pytest.mark.slow
def test_allowed_commands_do_only_what_the_rules_allow(traced: TracedShell) -> None:
    assert run_shard(traced, seed=0, wanted=800) == []


@pytest.mark.chaos
@pytest.mark.parametrize("shard", range(1, SHARDS + 1))
def test_many_allowed_commands_do_only_what_the_rules_allow(
    traced: TracedShell, shard: int
) -> None:
    assert run_shard(traced, seed=shard, wanted=MIN_ALLOWED) == []
