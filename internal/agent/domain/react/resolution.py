"""Ruling: what the answer to a question means for the calls that wait for it. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from internal.agent.domain.events.event import Event
from internal.agent.domain.messages import ToolCall, ToolResult
from internal.agent.domain.permissions.policy import call_hash
from internal.agent.domain.plans import Plan
from internal.agent.domain.questions import Answer, Question, refusal_reason
from internal.agent.domain.react.review_state import denied_event, plan_updated
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.react.steps import TurnOutcome
from internal.agent.domain.tasks import StopReason
from internal.agent.domain.text import replace_surrogates


class Resolution(NamedTuple):
    """What follows from an answer. A call in need without a result here may run.

    `approved` is the version of the plan that a person agreed to, 0 for none. `again` is asked
    next: a plan that a person edited without agreeing to it yet. `closing` asks for last words,
    `outcome` ends the run.
    """

    plan: Plan | None
    results: dict[str, ToolResult]
    events: Sequence[Event] = ()
    approved: int = 0
    again: Plan | None = None
    closing: StopReason | None = None
    outcome: TurnOutcome | None = None


def resolve(
    question: Question,
    answer: Answer,
    plan: Plan | None,
    asked: Sequence[ToolCall],
    config: RunConfig,
) -> Resolution:
    """Rule on an answer. `asked` are the calls in need, as they are now."""
    match question.kind:
        case "approval":
            return _on_calls(question, answer, plan, asked, config)
        case "clarify":
            refused = answer.decision in ("reject", "expired")
            said = "The person gave no answer." if refused else "Yes, go on."
            text = replace_surrogates(answer.text) if answer.text.strip() else said
            return Resolution(plan, _result(question, text, refused=refused))
        case "plan":
            if plan is None:
                raise TypeError("a question about a plan without a plan")
            return _on_plan(question, answer, plan)


def _on_calls(
    question: Question,
    answer: Answer,
    plan: Plan | None,
    asked: Sequence[ToolCall],
    config: RunConfig,
) -> Resolution:
    needs = {asking.call_id: asking for asking in question.calls}
    results: dict[str, ToolResult] = {}
    events: list[Event] = []
    for call in asked:
        asking = needs[call.call_id]
        sentence = refusal_reason(
            asking, answer, call_hash(call.name, call.arguments, config.workspace)
        )
        if sentence is not None:
            results[call.call_id] = ToolResult(
                call.call_id, replace_surrogates(sentence), failed=True
            )
            events.append(denied_event(call, config.tool(call.name), sentence, asking.rules))
    return Resolution(plan, results, events)


def _on_plan(question: Question, answer: Answer, plan: Plan) -> Resolution:
    words = replace_surrogates(answer.text).strip()
    match answer.decision:
        case "edit" if answer.edit is not None:
            plan = plan.edited(answer.edit)
            return Resolution(plan, {}, [plan_updated(plan)], again=plan)
        case "approve" | "edit":
            events: list[Event] = []
            if answer.edit is not None:
                plan = plan.edited(answer.edit)
                events.append(plan_updated(plan))
            return Resolution(plan, _result(question, _agreed(plan, words)), events, plan.version)
        case "text":
            return Resolution(plan, _result(question, _feedback(plan, words)))
        case "expired":
            text = "Nobody agreed to the plan in time: that is a no."
            return Resolution(plan, _result(question, text, refused=True), closing="rejected")
        case "reject":
            text = f"The person rejected the plan{f': {words}' if words else ''}."
            outcome = TurnOutcome("rejected", "", words, by=answer.by, via=answer.via)
            return Resolution(plan, _result(question, text, refused=True), outcome=outcome)


def _result(question: Question, text: str, *, refused: bool = False) -> dict[str, ToolResult]:
    return {question.call_id: ToolResult(question.call_id, text, refused)}


def _agreed(plan: Plan, words: str) -> str:
    """Return the word of a yes, with the plan as it is to be done: it may not be the model's."""
    added = f"\nThey say: {words}" if words else ""
    return (
        f"The person agrees to plan {plan.version}: {plan.goal}\nGo on with it; the steps and their"
        f" ids:\n{plan.listed}{added}"
    )


def _feedback(plan: Plan, words: str) -> str:
    """Return what a person wants changed, as the block that the model knows (seed 003, 2)."""
    return (
        "<plan_feedback>\n"
        f"<goal>{plan.goal}</goal>\n"
        f"<plan>\n{plan.listed}\n</plan>\n"
        f"<user_feedback>{words}</user_feedback>\n"
        "<instruction>Change the plan as the person says and call plan again, alone. Nothing is"
        " done before they agree.</instruction>\n"
        "</plan_feedback>"
    )
