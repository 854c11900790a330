"""Permission rules as text: which are valid, and which may only deny."""

import pytest

from internal.agent.domain.permissions.policy import (
    Policy,
)
from internal.agent.domain.permissions.rules import RuleError, parse_allow_rule, parse_rule
from internal.agent.domain.tools import targets_by_tool
from internal.tools.registry import TOOLS

SPECS = {each.spec.name: each.spec for each in TOOLS}

TARGETS = targets_by_tool(SPECS.values())


@pytest.mark.parametrize(
    "text",
    [
        "", "shell(", "shell)", "shell(ls", "(ls)", "shell()", "shell(*)", "shell(* x)", "1tool",
        "shell(ls; rm)", "shell(ls | wc)", "shell(ls\nrm)", "shell(ls $X)", "shell(ls *x)",
        "shell(ls * x)", "shell(ls 'x)", "shell($X)", "shell(X=1)", "shell(X=$Y ls)", "shell('')",
        "shell(ls > x)", "shell(> $X)", "shell(> ../x)", "shell(f() { ls; })",
        "shell(# x)", "shell(ls \u202e)", "read_file()", "read_file(../x)", "read_file(a\\b)",
        "web_fetch()", "web_fetch(*)", "web_fetch(https://a.example)", "web_fetch(a.*.example)",
        "web_fetch(\u00e4.example)", "web_fetch(a.example:x)", "plan(x)", "ls -l", "shell (ls)",
        "shell(~/x *)", "shell(cat <<E)",
    ],
)  # fmt: skip
def test_an_invalid_rule_is_rejected_with_a_message(text: str) -> None:
    with pytest.raises(RuleError) as caught:
        parse_rule(text, TARGETS)
    assert len(str(caught.value)) > 20
    with pytest.raises(RuleError):
        Policy(allow=(text,)).check(TARGETS)
    with pytest.raises(RuleError):
        Policy(deny=(text,)).check(TARGETS)


@pytest.mark.parametrize(
    "text",
    [
        "shell(python)", "shell(python *)", "shell(python3.12 *)", "shell(/usr/bin/python3 *)",
        "shell(bash -c *)", "shell(bash)", "shell(sh -)", "shell(python -W ignore *)",
        "shell(python -m *)", "shell(awk *)", "shell(sudo *)", "shell(sudo git *)",
        "shell(env *)", "shell(xargs *)", "shell(psql db *)", "shell(eval *)", "shell(npx *)",
        "shell([[ a ]])",
        "read_file(/etc/*)",
    ],
)  # fmt: skip
def test_rules_that_would_allow_every_command_may_only_deny(text: str) -> None:
    parse_rule(text, TARGETS)
    Policy(deny=(text,)).check(TARGETS)
    with pytest.raises(RuleError):
        parse_allow_rule(text, TARGETS)
    with pytest.raises(RuleError):
        Policy(allow=(text,)).check(TARGETS)
