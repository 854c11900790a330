"""Network access of isolated commands: rules, arguments and hosts."""

from typing import Any

import pytest

from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.network import (
    NetworkAccess,
    NetworkSetting,
    network_access,
    network_hosts,
    network_kind,
    private_access,
    rules_of_network,
    widens_network,
)
from internal.agent.domain.permissions.policy import (
    Allowed,
    ApprovalNeeded,
    Denied,
    Policy,
    Verdict,
    evaluate_call,
    network_of,
    with_network,
)
from internal.agent.domain.permissions.rules import RuleError, parse_allow_rule
from internal.agent.domain.permissions.targets import CommandTarget, NetworkTarget
from internal.agent.domain.tools import ToolSpec

SHELL = ToolSpec(
    "shell",
    "",
    {},
    "exec",
    targets=(CommandTarget("command"), NetworkTarget("network")),
    sandboxed=True,
)


def verdict(policy: Policy, network: Any, command: str = "make") -> Verdict:
    return evaluate_call(policy, SHELL, {"command": command, "network": network}, isolated=True)


def sandboxed(*allow: str, deny: tuple[str, ...] = (), mode: Mode = Mode.RUN) -> Policy:
    return Policy(mode=mode, allow=allow, deny=deny)


@pytest.mark.parametrize(
    ("rules", "wanted"),
    [
        (("network(github.com)",), "github.com"),
        (("network(github.com)",), "GitHub.com"),
        (("network(*.github.com)",), "api.github.com"),
        (("network(*.github.com)",), "*.github.com"),
        (("network(*.github.com)",), "*.eu.github.com"),
        (("network(github.com:8443)",), "github.com:8443"),
        (("network",), "github.com:22"),
        (("network",), "*"),
        (rules_of_network("registries"), "pypi.org"),
        (rules_of_network("open"), "*"),
        (rules_of_network(("a.example", "b.example")), "b.example"),
    ],
)
def test_a_rule_covers_the_hosts_that_it_names(rules: tuple[str, ...], wanted: str) -> None:
    assert verdict(sandboxed(*rules), [wanted]) == Allowed()


@pytest.mark.parametrize(
    ("rules", "wanted"),
    [
        ((), "github.com"),
        (("network(github.com)",), "api.github.com"),
        (("network(*.github.com)",), "github.com"),
        (("network(*.github.com)",), "evilgithub.com"),
        (("network(github.com)",), "*.github.com"),
        (("network(github.com)",), "github.com:22"),
        (("network(github.com:22)",), "github.com"),
        (("network(*.com)",), "*"),
        (("shell(github.com)", "web_fetch(github.com)"), "github.com"),
    ],
)
def test_another_host_needs_a_yes_and_its_rule_is_offered(
    rules: tuple[str, ...], wanted: str
) -> None:
    needed = verdict(sandboxed(*rules), [wanted])
    assert isinstance(needed, ApprovalNeeded)
    assert (needed.code, needed.about) == ("network", wanted)
    assert needed.rules == (("network" if wanted == "*" else f"network({wanted.lower()})"),)
    assert verdict(sandboxed(*rules, *needed.rules), [wanted]) == Allowed()


def test_command_and_hosts_are_judged_together() -> None:
    asks = sandboxed("shell(git *)", mode=Mode.ASK)
    assert isinstance(verdict(asks, [], "git pull"), Allowed)
    needed = verdict(asks, ["github.com"], "git pull")
    assert isinstance(needed, ApprovalNeeded)
    assert needed.rules == ("network(github.com)",)
    both = verdict(sandboxed(mode=Mode.ASK), ["a.example", "b.example"], "npm test")
    assert isinstance(both, ApprovalNeeded)
    assert both.rules == ("shell(npm test)", "network(a.example)", "network(b.example)")
    assert isinstance(verdict(sandboxed(mode=Mode.ALL), ["*"]), Allowed)
    assert isinstance(verdict(sandboxed(mode=Mode.DENY), ["a.example"]), Denied)
    # without isolation every command reaches everything, so only the command is judged
    call = {"command": "git pull", "network": ["github.com"]}
    assert isinstance(evaluate_call(asks, SHELL, call), Allowed)


def test_denied_hosts_are_refused_in_every_mode() -> None:
    for mode in Mode:
        policy = sandboxed("network", deny=("network(*.evil.example)",), mode=mode)
        assert isinstance(verdict(policy, ["a.evil.example"]), Denied)
        nothing = sandboxed("network", deny=("network",), mode=mode)
        assert isinstance(verdict(nothing, ["a.example"]), Denied)
    # of a request for all hosts, the denied ones are refused when a command connects to them
    policy = sandboxed("network", deny=("network(*.evil.example)",))
    assert verdict(policy, ["*"]) == Allowed()
    access = network_of(policy, SHELL, {"network": ["*"]})
    assert access.permits("a.example", 5432)
    assert not access.permits("a.evil.example", 443)


@pytest.mark.parametrize(
    "host", ["8.8.8.8", "::ffff:8.8.8.8", "::ffff:808:808", "64:ff9b::808:808"]
)
def test_a_denied_ipv4_address_is_refused_in_its_ipv6_forms(host: str) -> None:
    policy = sandboxed("network", deny=("network(8.8.8.8)",))
    access = network_of(policy, SHELL, {"network": ["*"]})
    assert not access.permits(host, 443)
    assert access.permits("::ffff:8.8.8.9", 443)
    assert network_of(sandboxed("network(8.8.8.8)"), SHELL, {}).permits(host, 443)


@pytest.mark.parametrize(
    "wanted",
    [
        *(
            "http://a.example",
            "a.example/x",
            "a b",
            "",
            "a.example:x",
            "*.*",
            "a*.example",
            "127.1",
        ),
        *("a.example\0.evil.example", "\u202eexample.com", "ⓐ.example", 3, None, {"host": "a"}),
    ],
)
def test_what_is_not_a_host_is_denied_with_a_sentence(wanted: Any) -> None:
    denied = verdict(sandboxed(), [wanted])
    assert isinstance(denied, Denied)
    assert "is not a host: write example.com" in denied.reason


def test_arguments_of_other_shapes_are_judged_as_well() -> None:
    assert isinstance(verdict(sandboxed(), "a.example"), ApprovalNeeded)
    assert isinstance(verdict(sandboxed(), True), Denied)  # what a model may send
    empty: tuple[Any, ...] = (None, [], "", False, 0)
    for nothing in empty:
        assert verdict(sandboxed(), nothing) == Allowed()


def test_what_a_command_may_connect_to() -> None:
    policy = sandboxed(
        "network(pypi.org)", "network(db.example:5432)", deny=("network(x.example)",)
    )
    access = network_of(policy, SHELL, {"network": ["*.npmjs.org", "x.example"]})
    reached = [
        (host, port)
        for host in ("pypi.org", "db.example", "a.npmjs.org", "npmjs.org", "x.example", "b.example")
        for port in (80, 443, 5432)
        if access.permits(host, port)
    ]
    assert reached == [
        *(("pypi.org", 80), ("pypi.org", 443), ("db.example", 5432)),
        *(("a.npmjs.org", 80), ("a.npmjs.org", 443)),
    ]
    plain = ToolSpec("read_file", "", {}, "read")
    assert network_of(policy, plain, {}) == NetworkAccess()


def test_rules_for_hosts_are_checked() -> None:
    assert network_kind(()) == network_kind(("shell(ls)",)) == "off"
    for setting in ("registries", "open"):
        assert network_kind(rules_of_network(setting)) == setting
    assert network_kind(("network(a.example)", *rules_of_network("registries"))) == "hosts"
    with pytest.raises(RuleError, match=r"network\(example\.com\)"):
        parse_allow_rule("network(http://a.example)", {})
    with pytest.raises(RuleError, match="write a host name"):
        sandboxed("network(a b)").check({})


def test_a_choice_replaces_the_network_of_a_policy_and_nothing_else() -> None:
    policy = Policy(allow=("shell(ls)", "network(a.example)"), deny=("network(b.example)",))
    assert with_network(policy, None) is policy
    assert with_network(policy, "off").allow == ("shell(ls)",)
    chosen = with_network(policy, ("b.example:8443", "registries"))
    assert chosen.deny == policy.deny
    assert network_hosts(chosen.allow) == (
        "b.example:8443",
        *network_hosts(rules_of_network("registries")),
    )
    assert network_kind(chosen.allow) == "hosts"


@pytest.mark.parametrize("wrong", ["not a host", "", "http://a.example", "a.example)", "off"])
def test_a_choice_with_something_else_than_hosts_is_refused(wrong: str) -> None:
    with pytest.raises(RuleError):
        with_network(Policy(), ("a.example", wrong))


@pytest.mark.parametrize(
    ("allowed", "chosen", "widens"),
    [
        ("off", "off", False),
        ("off", "registries", True),
        ("registries", "registries", False),
        ("registries", "open", True),
        ("open", ("a.example:22",), False),
        (("*.a.example",), ("b.a.example",), False),
        (("*.a.example",), ("a.example",), True),
        (("a.example", "registries"), ("a.example", "pypi.org"), False),
    ],
)
def test_a_choice_is_compared_with_what_is_allowed(
    allowed: NetworkSetting, chosen: NetworkSetting, widens: bool
) -> None:
    assert widens_network(rules_of_network(allowed), chosen) == widens


def test_addresses_that_are_written_out_may_be_private_and_names_on_request() -> None:
    allow = ("127.0.0.1:5432", "localhost:6379", "[fd00::1]:22", "db.example:5432", "*.example")
    rules = [parse_allow_rule(f"network({host})", {}) for host in allow]
    access = private_access(network_access(rules, (), ()), names=False)
    sites = (("127.0.0.1", 5432), ("localhost", 6379), ("fd00::1", 22))
    assert all(access.permits_private(*site) for site in sites)
    for site in (("127.0.0.1", 80), ("db.example", 5432), ("a.example", 443), ("127.0.0.2", 5432)):
        assert not access.permits_private(*site)
    named = private_access(network_access(rules, (), ()), names=True)
    assert named.permits_private("db.example", 5432)
    assert not named.permits_private("db.example", 5433)


def test_an_ipv6_address_is_asked_for_and_allowed_like_a_host() -> None:
    policy = sandboxed("network([::1]:5432)")
    assert verdict(policy, ["[0:0:0:0:0:0:0:1]:5432"]) == Allowed()
    asked = verdict(policy, ["[::1]:5433"])
    assert isinstance(asked, ApprovalNeeded)
    mapped = network_access([parse_allow_rule("network([::ffff:10.0.0.1]:80)", {})], (), ())
    assert mapped.permits("10.0.0.1", 80)
    for wrong in ("network([::1%lo]:80)", "network([10.0.0.1]:80)", "network([::1)"):
        with pytest.raises(RuleError):
            parse_allow_rule(wrong, {})
