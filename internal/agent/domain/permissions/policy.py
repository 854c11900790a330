"""The permission policy of a run: decide whether a tool call runs, needs approval or is denied.

`evaluate_call` is pure: it maps the policy, the specification of the tool and the arguments of the
call to a verdict.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from internal.agent.domain.permissions.matchers import CallMatcher, MissingPermission, ReasonCode
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.network import (
    NO_NETWORK,
    NetworkAccess,
    NetworkSetting,
    network_access,
    rules_of_network,
    wanted_hosts,
)
from internal.agent.domain.permissions.outside_paths import (
    NO_OUTSIDE,
    OutsideAccess,
    outside_access,
    wanted_paths,
)
from internal.agent.domain.permissions.rules import (
    Rule,
    RuleError,
    parse_allow_rule,
    parse_rule,
    split_rule,
)
from internal.agent.domain.permissions.targets import (
    NETWORK,
    SANDBOX_TARGETS,
    NetworkTarget,
    OutsidePathTarget,
    Risk,
    ToolTargets,
    rule_names,
)
from internal.agent.domain.text import escape_invisible, truncate_line
from internal.agent.domain.tools import ToolSpec

MAX_NAME_CHARS = 100
"""Maximum characters of the trusted item in the reason of a question."""


_PASSES: dict[Mode, frozenset[Risk]] = {
    Mode.ASK: frozenset({"read", "ui"}),
    Mode.PLAN: frozenset({"read", "ui"}),
    Mode.EDIT: frozenset({"read", "ui", "write"}),
    Mode.RUN: frozenset({"read", "ui", "write"}),
    Mode.DENY: frozenset({"read", "ui"}),
    Mode.ALL: frozenset({"read", "ui", "write", "exec", "net"}),
}
_CHANGES_NOTHING: frozenset[Risk] = frozenset({"read", "ui"})


class Policy(msgspec.Struct, frozen=True):
    """The permissions of a run, stored in its Turn. A deny rule wins over all else in every mode.

    Raises:
        RuleError: a text is not a rule. From stored bytes, msgspec raises a ValidationError.
    """

    mode: Mode = Mode.ASK
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for text in (*self.allow, *self.deny):
            split_rule(text)

    def check(self, targets: ToolTargets) -> None:
        """Check that every rule is valid for these tools.

        Raises:
            RuleError: a rule cannot be parsed or may not allow anything.
        """
        for text in self.allow:
            parse_allow_rule(text, targets)
        for text in self.deny:
            parse_rule(text, targets)


def with_network(policy: Policy, setting: NetworkSetting | None) -> Policy:
    """Return a policy whose commands reach other hosts without a question; None changes nothing.

    Raises:
        RuleError: an entry of the setting is not a host.
    """
    if setting is None:
        return policy
    others = (text for text in policy.allow if split_rule(text)[0] != NETWORK)
    hosts = rules_of_network(setting)
    for text in hosts:
        parse_allow_rule(text, {})
    return msgspec.structs.replace(policy, allow=(*others, *hosts))


class Allowed(msgspec.Struct, frozen=True, tag="allowed"):
    """The call may run: because of `rule`, or because of the mode alone (None)."""

    rule: str | None = None


class Denied(msgspec.Struct, frozen=True, tag="denied"):
    """The call may not run and cannot be approved. `reason` is a sentence."""

    reason: str


class ApprovalNeeded(msgspec.Struct, frozen=True, tag="needed"):
    """A person must approve. `rules` together would allow this call; () if none may be offered.

    `reason_detail` is the part of the reason that the call itself does not show; `code` and `about`
    are the same in another form; see `MissingPermission`.
    """

    reason: str
    rules: tuple[str, ...] = ()
    reason_detail: str = ""
    code: ReasonCode = ""
    about: str = ""

    @property
    def rule(self) -> str:
        """The rules as one text, joined with " and "; "" if none may be offered."""
        return " and ".join(self.rules)


Verdict = Allowed | Denied | ApprovalNeeded


def evaluate_call(
    policy: Policy, spec: ToolSpec, arguments: Mapping[str, Any], *, isolated: bool = False
) -> Verdict:
    """Return the verdict on one call. Never raises, whatever the arguments hold.

    `isolated`: the sandbox keeps commands from everything but the folders of their session; without
    that, the mode `run` is the mode `ask`. A deny rule that cannot be parsed for this tool makes
    the call need approval; such an allow rule allows nothing.
    """
    call = CallMatcher(spec, arguments)
    denial = _find_denial(policy, spec, call)
    if spec.trusts and not isinstance(denial, Denied):
        reason = f"{spec.name} needs the approval of the owner."
        name = truncate_line(str(arguments.get(spec.trusts, "")), MAX_NAME_CHARS)
        return _need(
            policy.mode, MissingPermission(reason, code="owner", about=escape_invisible(name))
        )
    return denial or _find_allowance(policy, spec, call, isolated=isolated)


def matches_call(rule: str, spec: ToolSpec, arguments: Mapping[str, Any]) -> bool:
    """Return True if a rule is about a call, or if that is unknown."""
    verdicts = _check_denials(CallMatcher(spec, arguments), spec, [rule])
    return any(matched is not False for matched in verdicts.values())


def call_hash(tool: str, arguments: Mapping[str, Any], workspace: str) -> str:
    """Return the identity of a call that an answer is bound to: SHA-256 in hex.

    The order of keys does not matter. An argument that is not a JSON value counts by its `repr`.
    """
    text = json.dumps([tool, dict(arguments), workspace], sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


def _find_denial(
    policy: Policy, spec: ToolSpec, call: CallMatcher
) -> Denied | ApprovalNeeded | None:
    """Return why a call may not run, or cannot be checked against the deny rules; else None."""
    verdicts = _check_denials(call, spec, policy.deny)
    for text, denied in verdicts.items():
        if denied:
            return Denied(f"{call.label} is denied by the rule {text}.")
    undecided = next((text for text, denied in verdicts.items() if denied is None), "")
    if policy.mode is Mode.PLAN and spec.risk not in _PASSES[Mode.PLAN]:
        return Denied(f"plan mode: nothing is changed or run, so {spec.name} is not available.")
    path = None if spec.risk in _CHANGES_NOTHING else call.protected_path
    if path is not None:
        return Denied(f"{call.label} is denied: {path} is protected and may not be changed.")
    if call.invalid_access is not None:
        return Denied(call.invalid_access)
    if undecided:
        reason = f"{call.label} cannot be checked against the deny rule {undecided}."
        return _need(policy.mode, MissingPermission(reason, code="deny_rule", about=undecided))
    return None


def _find_allowance(
    policy: Policy, spec: ToolSpec, call: CallMatcher, *, isolated: bool
) -> Verdict:
    """Return whether the mode and the rules allow a call that nothing denies."""
    rules = list(_parsed_allow_rules(spec, policy.allow))
    asks_access = isolated and policy.mode is not Mode.ALL
    access = call.find_missing_access(rules) if asks_access else None
    passes = _passes(policy.mode, spec, call, isolated=isolated)
    missing = None if passes else call.find_missing(rules)
    if not isinstance(missing, MissingPermission):
        return Allowed(missing) if access is None else _need(policy.mode, access)
    return _need(policy.mode, missing if access is None else _with_access(missing, access))


def network_of(policy: Policy, spec: ToolSpec, arguments: Mapping[str, Any]) -> NetworkAccess:
    """Return the hosts that a call which may run reaches, if it runs isolated."""
    if not any(isinstance(target, NetworkTarget) for target in spec.targets):
        return NO_NETWORK
    allow = _parsed_allow_rules(spec, policy.allow)
    wanted = wanted_hosts(spec.targets, arguments)
    return network_access(allow, _sandbox_denials(policy), wanted)


def outside_of(policy: Policy, spec: ToolSpec, arguments: Mapping[str, Any]) -> OutsideAccess:
    """Return the paths outside of the workspace that a call sees, if it may run isolated."""
    if not any(isinstance(target, OutsidePathTarget) for target in spec.targets):
        return NO_OUTSIDE
    allow = _parsed_allow_rules(spec, policy.allow)
    wanted = wanted_paths(spec.targets, arguments)
    return outside_access(allow, _sandbox_denials(policy), wanted)


def _sandbox_denials(policy: Policy) -> list[Rule]:
    """Return the deny rules about hosts and paths outside, for the commands of all tools."""
    found: list[Rule] = []
    for text in policy.deny:
        tool = split_rule(text)[0]
        if tool in SANDBOX_TARGETS:
            try:
                found.append(parse_rule(text, {}))
            except RuleError:  # from an earlier version: nothing may be reached
                found.append(Rule(tool, tool))
    return found


def _with_access(missing: MissingPermission, access: MissingPermission) -> MissingPermission:
    offered = (*missing.rules, *access.rules) if missing.rules and access.rules else ()
    return access._replace(rules=offered)


def _passes(mode: Mode, spec: ToolSpec, call: CallMatcher, *, isolated: bool) -> bool:
    """Return True if the mode alone allows a call."""
    if mode is Mode.RUN and not isolated:
        return spec.risk in _PASSES[Mode.ASK]
    if mode is not Mode.ALL and spec.risk == "write" and call.changes_configuration:
        return False  # where a command changes it, people are told
    return (mode is Mode.RUN and spec.sandboxed) or spec.risk in _PASSES[mode]


def _rules_for(spec: ToolSpec, rules: Iterable[str]) -> Iterator[str]:
    kinds = {type(target) for target in spec.targets}
    names = set(rule_names(spec.name))
    names |= {tool for tool, target in SANDBOX_TARGETS.items() if type(target) in kinds}
    return (text for text in rules if split_rule(text)[0] in names)


def _check_denials(
    call: CallMatcher, spec: ToolSpec, texts: Iterable[str]
) -> dict[str, bool | None]:
    """Return for each deny rule of the tool whether it matches, None if that is unknown."""
    rules: list[Rule] = []
    verdicts: dict[str, bool | None] = {}
    for text in _rules_for(spec, texts):
        verdicts[text] = None
        with suppress(RuleError):
            rules.append(parse_rule(text, {spec.name: spec.targets}))
    denied = call.check_denials(rules)
    return verdicts | {rule.text: each for rule, each in zip(rules, denied, strict=True)}


def _parsed_allow_rules(spec: ToolSpec, rules: Iterable[str]) -> Iterator[Rule]:
    for text in _rules_for(spec, rules):
        try:
            yield parse_allow_rule(text, {spec.name: spec.targets})
        except RuleError:
            continue


def _need(mode: Mode, missing: MissingPermission) -> Denied | ApprovalNeeded:
    if mode is not Mode.DENY:
        detail = missing.reason if missing.reason_detail is None else missing.reason_detail
        return ApprovalNeeded(missing.reason, missing.rules, detail, missing.code, missing.about)
    hint = " ".join(f"--allow '{_quote(rule)}'" for rule in missing.rules)
    tail = f"{hint} would allow it." if hint else "No rule may allow it."
    return Denied(f"{missing.reason} In deny mode nobody is asked. {tail}")


def _quote(rule: str) -> str:
    return rule.replace("'", "'\\''")
