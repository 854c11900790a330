"""Who must agree before a tool call runs: nobody, a person, or no one can.

`evaluate_call` is pure: it maps the policy, the tool, its risk and its arguments to a verdict.
"""

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

import msgspec

from internal.agent.domain.permissions.matchers import MissingPermission, RuledCall
from internal.agent.domain.permissions.rules import Rule, RuleError, parse_allow_rule, parse_rule

__all__ = [
    "Allowed",
    "ApprovalNeeded",
    "Denied",
    "Mode",
    "Policy",
    "Risk",
    "Rule",
    "RuleError",
    "Verdict",
    "call_hash",
    "evaluate_call",
    "parse_allow_rule",
    "parse_rule",
]

Risk = Literal["read", "write", "exec", "net", "ui"]


class Mode(StrEnum):
    """What happens to a call that no rule decides; docs/permissions.md has the table."""

    ASK = "ask"
    PLAN = "plan"
    ACCEPT_EDITS = "accept-edits"
    DENY = "deny"
    FULL = "full"


_PASSES: dict[Mode, frozenset[Risk]] = {
    Mode.ASK: frozenset({"read", "ui"}),
    Mode.PLAN: frozenset({"read", "ui"}),
    Mode.ACCEPT_EDITS: frozenset({"read", "ui", "write"}),
    Mode.DENY: frozenset({"read", "ui"}),
    Mode.FULL: frozenset({"read", "ui", "write", "exec", "net"}),
}


class Policy(msgspec.Struct, frozen=True):
    """The permissions of a run, stored in its Turn. A deny rule wins over all else, in every mode.

    Raises:
        RuleError: A rule cannot be read or may not allow anything. (From stored bytes, msgspec
            reports it as a ValidationError.)
    """

    mode: Mode = Mode.ASK
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for text in self.allow:
            parse_allow_rule(text)
        for text in self.deny:
            parse_rule(text)


class Allowed(msgspec.Struct, frozen=True, tag="allowed"):
    """The call may run: by `rule`, or by the mode alone (None)."""

    rule: str | None = None


class Denied(msgspec.Struct, frozen=True, tag="denied"):
    """The call may not run, whoever agrees. `reason` is a sentence for the model and the person."""

    reason: str


class ApprovalNeeded(msgspec.Struct, frozen=True, tag="needed"):
    """A person must agree. `rules` together would allow this call; empty if none may be offered.

    `reason_detail` is what of the reason is news to a person who sees the call.
    """

    reason: str
    rules: tuple[str, ...] = ()
    reason_detail: str = ""

    @property
    def rule(self) -> str:
        """The rules as one text, joined with " and "; "" if none may be offered."""
        return " and ".join(self.rules)


Verdict = Allowed | Denied | ApprovalNeeded


def evaluate_call(policy: Policy, tool: str, risk: Risk, arguments: Mapping[str, Any]) -> Verdict:
    """Decide about one call. Never raises, whatever the arguments hold."""
    call = RuledCall(tool, arguments)
    vague = ""
    for rule in map(parse_rule, policy.deny):
        denied = call.denied(rule)
        if denied:
            return Denied(f"{call.shown} is denied by the rule {rule.text}.")
        if denied is None:
            vague = vague or rule.text
    if policy.mode is Mode.PLAN and risk not in _PASSES[Mode.PLAN]:
        return Denied(f"plan mode: nothing is changed or run, so {tool} is not available.")
    if vague:
        reason = f"{call.shown} cannot be checked against the deny rule {vague}."
        return _need(policy.mode, MissingPermission(reason))
    if risk in _PASSES[policy.mode]:
        return Allowed()
    missing = call.missing([parse_allow_rule(text) for text in policy.allow])
    return (
        _need(policy.mode, missing) if isinstance(missing, MissingPermission) else Allowed(missing)
    )


def call_hash(tool: str, arguments: Mapping[str, Any], workspace: str) -> str:
    """The identity of a call that an answer is bound to: SHA-256 in hex, whatever the key order.

    The arguments are JSON values; an object that is none counts by its `repr`.
    """
    text = json.dumps([tool, dict(arguments), workspace], sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


def _need(mode: Mode, missing: MissingPermission) -> Denied | ApprovalNeeded:
    if mode is not Mode.DENY:
        reason_detail = missing.reason if missing.reason_detail is None else missing.reason_detail
        return ApprovalNeeded(missing.reason, missing.rules, reason_detail)
    hint = " ".join(f"--allow '{_quoted(rule)}'" for rule in missing.rules)
    tail = f"{hint} would allow it." if hint else "No rule may allow it."
    return Denied(f"{missing.reason} In deny mode nobody is asked. {tail}")


def _quoted(rule: str) -> str:
    return rule.replace("'", "'\\''")
