"""Hooks make a verdict stricter and never more lenient."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.policy import Allowed, ApprovalNeeded, Denied, Verdict
from internal.agent.domain.react.hook_outcomes import HookOutcome, judge_outcome

NEEDED = ApprovalNeeded("A rule is missing.", ("shell(ls)",), "missing", "no_rule", "ls")
VERDICTS: tuple[Verdict, ...] = (Allowed(), NEEDED, Denied("The rules deny it."))
CHANGED = {"command": "other"}


def judged(
    outcome: HookOutcome, verdict: Verdict, changed: Verdict | None = None, mode: Mode = Mode.ASK
) -> Verdict:
    def evaluate(arguments: dict[str, Any]) -> Verdict:
        assert arguments == CHANGED
        assert changed is not None
        return changed

    return judge_outcome(outcome, verdict, evaluate, mode=mode)


def strictness(verdict: Verdict) -> int:
    return [Allowed, ApprovalNeeded, Denied].index(type(verdict))


@given(
    st.sampled_from(["pass", "ask", "refuse"]),
    st.booleans(),
    st.sampled_from(VERDICTS),
    st.sampled_from(VERDICTS),
    st.sampled_from(Mode),
)
def test_no_outcome_is_more_lenient_than_the_rules(
    decision: Any, changes: bool, verdict: Verdict, changed: Verdict, mode: Mode
) -> None:
    outcome = HookOutcome(decision, "why", CHANGED if changes else None)
    found = judged(outcome, verdict, changed, mode)
    assert strictness(found) >= strictness(verdict)
    assert strictness(found) >= {"pass": 0, "ask": 1, "refuse": 2}[decision]
    if changes and decision != "refuse" and not isinstance(verdict, Denied):
        assert strictness(found) >= strictness(changed)


def test_what_only_the_owner_may_approve_stays_the_owners() -> None:
    needed = ApprovalNeeded("It is trusted.", (), "", "owner", "moth")
    found = judged(HookOutcome("ask", "why"), needed)
    assert isinstance(found, ApprovalNeeded)
    assert (found.code, found.about) == ("owner", "moth")


@pytest.mark.parametrize("verdict", VERDICTS)
def test_a_pass_leaves_the_verdict(verdict: Verdict) -> None:
    assert judged(HookOutcome(), verdict) == verdict


def test_a_refusal_has_the_reason_of_the_hook() -> None:
    assert judged(HookOutcome("refuse", "no"), Allowed()) == Denied("no")
    assert judged(HookOutcome("refuse", "no"), VERDICTS[2]) == VERDICTS[2]


def test_no_rule_is_offered_for_a_question_of_a_hook() -> None:
    assert judged(HookOutcome("ask", "Sure?"), Allowed()) == ApprovalNeeded("Sure?", (), "Sure?")
    both = judged(HookOutcome("ask", "Sure?"), NEEDED)
    assert both == ApprovalNeeded("Sure? A rule is missing.", (), "Sure? missing")


def test_no_rule_of_the_original_call_is_offered_for_a_changed_one() -> None:
    found = judged(HookOutcome(arguments=CHANGED), NEEDED, Allowed())
    assert isinstance(found, ApprovalNeeded)
    assert found.rules == ()
    assert found.reason == "Before a hook changed the call: A rule is missing."


def test_in_deny_mode_a_question_of_a_hook_is_a_no() -> None:
    found = judged(HookOutcome("ask", "Sure?"), Allowed(), mode=Mode.DENY)
    assert found == Denied("Sure? In deny mode nobody is asked.")
