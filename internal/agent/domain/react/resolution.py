"""Resolution: the consequences of the answer to a question. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from internal.agent.domain.events.types import Event
from internal.agent.domain.messages import ToolCall, ToolResult
from internal.agent.domain.permissions.policy import call_hash
from internal.agent.domain.plans import Plan
from internal.agent.domain.questions import Answer, Question, refusal_of, refusal_reason
from internal.agent.domain.react.call_review import denied_event, plan_updated
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.react.steps import TurnOutcome
from internal.agent.domain.tasks import StopReason
from internal.agent.domain.text import replace_surrogates, truncate_json

MAX_WORDS_BYTES = 2_000
"""Maximum bytes of a person's comment on a refused call, in its event."""


class Resolution(NamedTuple):
    """The consequences of an answer. A pending call without a result may run.

    `approved_plan` is the version of the approved plan, 0 if no plan was approved. `next_plan`
    needs another review: a person edited it without approving it. `closing_reason` requests a final
    answer, `outcome` ends the run.
    """

    plan: Plan | None
    results: dict[str, ToolResult]
    events: Sequence[Event] = ()
    approved_plan: int = 0
    next_plan: Plan | None = None
    closing_reason: StopReason | None = None
    outcome: TurnOutcome | None = None


def resolve(
    question: Question,
    answer: Answer,
    *,
    plan: Plan | None,
    pending: Sequence[ToolCall],
    config: RunConfig,
) -> Resolution:
    """Return the consequences of an answer. `pending` are the calls that the question is about."""
    match question.kind:
        case "approval":
            return _resolve_approval(question, answer, plan=plan, pending=pending, config=config)
        case "clarify":
            refused = answer.decision in ("reject", "expired")
            fallback = "The person gave no answer." if refused else "Yes, go on."
            text = replace_surrogates(answer.text) if answer.text.strip() else fallback
            return Resolution(plan, _result(question, text, refused=refused))
        case "plan":
            if plan is None:
                raise TypeError("a question about a plan without a plan")
            return _resolve_plan(question, answer, plan)
        case "recovery":
            raise TypeError("a recovery question is not asked by a Turn")


def _resolve_approval(
    question: Question,
    answer: Answer,
    *,
    plan: Plan | None,
    pending: Sequence[ToolCall],
    config: RunConfig,
) -> Resolution:
    needs = {item.call_id: item for item in question.calls}
    results: dict[str, ToolResult] = {}
    events: list[Event] = []
    for call in pending:
        item = needs[call.call_id]
        digest = call_hash(call.name, call.arguments, config.workspace)
        sentence = refusal_reason(item, answer, digest)
        if sentence is not None:
            results[call.call_id] = ToolResult(
                call.call_id, replace_surrogates(sentence), failed=True
            )
            denied = denied_event(call, config.tool(call.name), sentence, item.rules)
            words = truncate_json(answer.text.strip(), MAX_WORDS_BYTES)
            why = {"refusal": refusal_of(item, answer, digest), "words": words}
            metadata = {**denied.metadata, **{name: each for name, each in why.items() if each}}
            events.append(msgspec.structs.replace(denied, metadata=metadata))
    return Resolution(plan, results, events)


def _resolve_plan(question: Question, answer: Answer, plan: Plan) -> Resolution:
    words = replace_surrogates(answer.text).strip()
    match answer.decision:
        case "edit" if answer.edit is not None:
            plan = plan.edited(answer.edit)
            return Resolution(plan, {}, [plan_updated(plan)], next_plan=plan)
        case "approve" | "edit":
            events: list[Event] = []
            if answer.edit is not None:
                plan = plan.edited(answer.edit)
                events.append(plan_updated(plan))
            return Resolution(
                plan, _result(question, _approval_text(plan, words)), events, plan.version
            )
        case "text":
            return Resolution(plan, _result(question, _feedback_text(plan, words)))
        case "expired":
            text = "Nobody agreed to the plan in time: that is a no."
            return Resolution(
                plan, _result(question, text, refused=True), closing_reason="rejected"
            )
        case "reject":
            text = f"The person rejected the plan{f': {words}' if words else ''}."
            outcome = TurnOutcome("rejected", "", words, by=answer.by, via=answer.via)
            return Resolution(plan, _result(question, text, refused=True), outcome=outcome)


def _result(question: Question, text: str, *, refused: bool = False) -> dict[str, ToolResult]:
    return {question.call_id: ToolResult(question.call_id, text, refused)}


def _approval_text(plan: Plan, words: str) -> str:
    """Return the result for an approved plan, which a person may have edited."""
    added = f"\nThey say: {words}" if words else ""
    return (
        f"The person agrees to plan {plan.version}: {plan.goal}\nGo on with it; the steps and their"
        f" ids:\n{plan.listed}{added}"
    )


def _feedback_text(plan: Plan, words: str) -> str:
    """Return requested changes in the format of the system prompt (seed 003, 2)."""
    return (
        "<plan_feedback>\n"
        f"<goal>{plan.goal}</goal>\n"
        f"<plan>\n{plan.listed}\n</plan>\n"
        f"<user_feedback>{words}</user_feedback>\n"
        "<instruction>Change the plan as the person says and call plan again, alone. Nothing is"
        " done before they agree.</instruction>\n"
        "</plan_feedback>"
    )
