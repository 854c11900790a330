"""The files outside of the workspace that isolated commands see: rules, arguments, access."""

from typing import Any

import pytest

from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.outside_paths import OutsideAccess, is_below
from internal.agent.domain.permissions.policy import (
    Allowed,
    ApprovalNeeded,
    Denied,
    Policy,
    Verdict,
    evaluate_call,
    outside_of,
)
from internal.agent.domain.permissions.rules import RuleError, parse_allow_rule, parse_rule
from internal.agent.domain.permissions.targets import (
    CommandTarget,
    NetworkTarget,
    OutsidePathTarget,
)
from internal.agent.domain.tools import ToolSpec

SHELL = ToolSpec(
    "shell",
    "",
    {},
    "exec",
    targets=(
        CommandTarget("command"),
        NetworkTarget("network"),
        OutsidePathTarget("read_paths"),
        OutsidePathTarget("write_paths", writable=True),
    ),
    sandboxed=True,
)


def sandboxed(*allow: str, deny: tuple[str, ...] = (), mode: Mode = Mode.RUN) -> Policy:
    return Policy(mode=mode, allow=allow, deny=deny)


def verdict(policy: Policy, *, isolated: bool = True, **arguments: Any) -> Verdict:
    return evaluate_call(policy, SHELL, {"command": "make", **arguments}, isolated=isolated)


@pytest.mark.parametrize(
    ("rule", "arguments"),
    [
        ("read_outside(/srv/data)", {"read_paths": ["/srv/data"]}),
        ("read_outside(/srv/data)", {"read_paths": ["/srv/data/deep/file.csv"]}),
        ("read_outside(/srv/data/)", {"read_paths": ["/srv//data/./x"]}),
        ("write_outside(/srv/data)", {"read_paths": ["/srv/data/x"]}),
        ("write_outside(/srv/data)", {"write_paths": ["/srv/data/x"]}),
    ],
)
def test_a_rule_covers_a_path_and_all_below_it(rule: str, arguments: Any) -> None:
    assert verdict(sandboxed(rule), **arguments) == Allowed()


@pytest.mark.parametrize(
    ("rule", "arguments", "about", "offered"),
    [
        (None, {"read_paths": ["/srv/data"]}, "/srv/data (read)", "read_outside(/srv/data)"),
        (None, {"write_paths": ["/srv/x/"]}, "/srv/x (change)", "write_outside(/srv/x)"),
        (
            "read_outside(/srv/data)",
            {"write_paths": ["/srv/data/x"]},
            "/srv/data/x (change)",
            "write_outside(/srv/data/x)",
        ),
        (
            "read_outside(/srv/data)",
            {"read_paths": ["/srv/database"]},
            "/srv/database (read)",
            "read_outside(/srv/database)",
        ),
        (
            "read_outside(/srv/data)",
            {"read_paths": ["/srv"]},
            "/srv (read)",
            "read_outside(/srv)",
        ),
        ("shell(/srv)", {"read_paths": ["/srv"]}, "/srv (read)", "read_outside(/srv)"),
    ],
)
def test_another_path_needs_a_yes_and_its_rule_is_offered(
    rule: str | None, arguments: Any, about: str, offered: str
) -> None:
    policy = sandboxed(*filter(None, [rule]))
    needed = verdict(policy, **arguments)
    assert isinstance(needed, ApprovalNeeded)
    assert (needed.code, needed.about, needed.rules) == ("network", about, (offered,))
    assert verdict(sandboxed(*policy.allow, offered), **arguments) == Allowed()


def test_hosts_and_paths_are_asked_about_together() -> None:
    needed = verdict(
        sandboxed(), network=["a.example"], read_paths=["/srv/a"], write_paths=["/srv/b"]
    )
    assert isinstance(needed, ApprovalNeeded)
    assert needed.reason.endswith("it reaches a.example, /srv/a (read), /srv/b (change).")
    assert needed.rules == ("network(a.example)", "read_outside(/srv/a)", "write_outside(/srv/b)")


def test_without_isolation_only_the_command_is_judged() -> None:
    policy = sandboxed("shell(make)", mode=Mode.ASK)
    assert isinstance(verdict(policy, isolated=False, read_paths=["/srv"]), Allowed)
    assert isinstance(verdict(sandboxed(mode=Mode.ALL), write_paths=["/srv"]), Allowed)
    assert isinstance(verdict(sandboxed(mode=Mode.DENY), read_paths=["/srv"]), Denied)


@pytest.mark.parametrize(
    "path",
    [
        *("", "data", "~/data", "../x", "/srv/../etc", "/", "/etc", "/usr", "/proc", "/proc/1"),
        *("/sys/x", "/dev/sda", "/run/docker.sock", "/var/run", "/a\u200bb", "/a\nb", 3, None),
        "/" + "a" * 5000,
    ],
)
def test_what_commands_can_never_have_is_denied(path: Any) -> None:
    for mode in (Mode.RUN, Mode.ALL):
        denied = verdict(sandboxed(mode=mode), read_paths=[path])
        assert isinstance(denied, Denied)
        assert "write an absolute path" in denied.reason


@pytest.mark.parametrize(
    ("deny", "arguments", "denied"),
    [
        ("read_outside(/srv/secret)", {"read_paths": ["/srv/secret/x"]}, True),
        ("read_outside(/srv/secret)", {"read_paths": ["/srv"]}, True),
        ("read_outside(/srv/secret)", {"write_paths": ["/srv/secret"]}, True),
        ("write_outside(/srv/secret)", {"read_paths": ["/srv/secret"]}, False),
        ("read_outside(/srv/secret)", {"read_paths": ["/srv/secrets"]}, False),
        ("read_outside", {"read_paths": ["/srv/x"]}, True),
        ("write_outside", {"write_paths": ["/srv/x"]}, True),
    ],
)
def test_denied_paths_are_refused_in_every_mode(deny: str, arguments: Any, denied: bool) -> None:
    for mode in (Mode.RUN, Mode.ASK, Mode.ALL):
        policy = sandboxed("write_outside(/srv)", "shell", deny=(deny,), mode=mode)
        assert isinstance(verdict(policy, **arguments), Denied) == denied


def test_a_call_sees_the_paths_of_rules_and_those_it_names() -> None:
    policy = sandboxed(
        "read_outside(/srv/a)",
        "write_outside(/srv/b)",
        "read_outside(/srv/c)",
        deny=("read_outside(/srv/c/secret)",),
    )
    seen = outside_of(policy, SHELL, {"read_paths": ["/srv/b", "/srv/d/"]})
    assert seen == OutsideAccess(read_only=("/srv/a", "/srv/d"), writable=("/srv/b",))
    nothing = sandboxed("write_outside(/srv/b)", deny=("read_outside",))
    assert outside_of(nothing, SHELL, {}) == OutsideAccess()
    plain = ToolSpec("read_file", "", {}, "read")
    assert outside_of(policy, plain, {}) == OutsideAccess()


def test_a_rule_names_a_path() -> None:
    for wrong in (
        "read_outside",
        "read_outside(data)",
        "write_outside(/etc)",
        "read_outside(/*)",
    ):
        with pytest.raises(RuleError):
            parse_allow_rule(wrong, {})
    assert parse_rule("read_outside", {}).patterns is None


def test_a_path_is_below_itself_and_its_folders() -> None:
    assert is_below("/srv/data", "/srv/data")
    assert is_below("/srv/data/x", "/srv/data")
    assert not is_below("/srv/database", "/srv/data")
