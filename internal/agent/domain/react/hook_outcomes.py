"""Outcomes of hooks: the decisions of the operator's hooks about a call, before the rules apply."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.policy import Allowed, ApprovalNeeded, Denied, Verdict

HookDecision = Literal["pass", "ask", "refuse"]


class HookOutcome(msgspec.Struct, frozen=True):
    """The combined decision of all hooks about one call.

    `reason` is a sentence that names the hook, "" for a pass. `arguments` replace the arguments of
    the call; None leaves them. `notes` are sentences about changes and failures of hooks.
    """

    decision: HookDecision = "pass"
    reason: str = ""
    arguments: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()


NO_OUTCOME = HookOutcome()


def judge_outcome(
    outcome: HookOutcome,
    verdict: Verdict,
    evaluate: Callable[[dict[str, Any]], Verdict],
    *,
    mode: Mode,
) -> Verdict:
    """Return the verdict of the rules, made stricter by the hooks and never more lenient.

    Args:
        outcome: the decision of the hooks.
        verdict: the verdict of the rules on the call as the model made it.
        evaluate: returns the verdict of the rules on other arguments.
        mode: the mode of the run.
    """
    if isinstance(verdict, Denied):
        return verdict
    if outcome.decision == "refuse":
        return Denied(outcome.reason)
    if outcome.arguments is not None:
        verdict = _stricter(verdict, evaluate(outcome.arguments))
    return (
        _require_approval(verdict, outcome.reason, mode) if outcome.decision == "ask" else verdict
    )


def _stricter(original: Verdict, changed: Verdict) -> Verdict:
    """Return the verdict on changed arguments, or a question if the original call needed one."""
    if isinstance(original, ApprovalNeeded) and isinstance(changed, Allowed):
        reason = f"Before a hook changed the call: {original.reason}"
        return ApprovalNeeded(reason, reason_detail=reason)  # its rules are for the other call
    return changed


def _require_approval(verdict: Verdict, reason: str, mode: Mode) -> Verdict:
    """Return the verdict with a question; no rule may be offered, because the hook asks again."""
    if isinstance(verdict, Denied):
        return verdict
    if mode is Mode.DENY:
        return Denied(f"{reason} In deny mode nobody is asked.")
    if isinstance(verdict, Allowed):
        return ApprovalNeeded(reason, reason_detail=reason)
    is_owners = verdict.code == "owner"  # the other codes hide the reason of the hook
    return ApprovalNeeded(
        f"{reason} {verdict.reason}",
        reason_detail=f"{reason} {verdict.reason_detail}".strip(),
        code="owner" if is_owners else "",
        about=verdict.about if is_owners else "",
    )
