"""The state and the result of a call review, and the events and texts about reviewed calls."""

import json

import msgspec

from internal.agent.domain.events.event import Event
from internal.agent.domain.events.types import PlanUpdated, ToolCompleted
from internal.agent.domain.messages import ToolCall, ToolResult
from internal.agent.domain.plans import Plan
from internal.agent.domain.questions import ApprovalItem, Question
from internal.agent.domain.text import escape_invisible, truncate, truncate_json
from internal.agent.domain.tools import ToolSpec

MAX_APPROVAL_ITEMS = 16
"""Calls in one approval question. The other calls are returned to the model for a later reply."""

MAX_SHOWN_CHARS = 60_000
"""Characters of a call that are processed for display; an event carries fewer."""

MAX_SENTENCE_BYTES = 8000
"""Bytes of the message about a call that is not run."""

NOBODY_TO_ASK = (
    "Nobody can be asked in this run. Decide yourself, go on, and say in your answer what you"
    " assumed."
)
ONE_AT_A_TIME = "Not asked: one question at a time. Ask again when the first is answered."
PLAN_NOT_APPROVED = (
    "Not run: a person must agree to the plan before anything is done. Call plan alone, with your"
    " goal and steps."
)
PLAN_NOT_REVIEWED = (
    "A person must agree to the plan, and nobody can be asked in this run: nothing may be done. Say"
    " so in your answer."
)


def byte_budget(calls: int) -> int:
    """Return how many bytes each call may take in an approval question of so many calls."""
    return min(48_000 // min(max(calls, 1), MAX_APPROVAL_ITEMS), 24_000)


class ReviewState(msgspec.Struct, frozen=True):
    """The part of a Turn's state that a review starts from."""

    plan: Plan | None
    open_step: str | None
    approved_plan: int
    """The version of the approved plan, 0 for none."""
    plan_reviewed: bool
    """True if a plan of this run was reviewed: every later one is reviewed as well."""
    corrections: dict[str, int]
    released_gates: frozenset[str]
    question_count: int


class CallReview(msgspec.Struct):
    """The result. A call without a result and without a pending approval may run."""

    plan: Plan | None
    open_step: str | None
    corrections: dict[str, int]
    released_gates: frozenset[str]
    results: dict[str, ToolResult] = {}
    pending_approvals: dict[str, ApprovalItem] = {}
    question: Question | None = None
    events: list[Event] = []


def plan_updated(plan: Plan) -> PlanUpdated:
    """Return the event for the current state of a plan."""
    return PlanUpdated(
        version=plan.version,
        goal=plan.goal,
        complexity=plan.complexity,
        steps=plan.steps,
        title=plan.title or msgspec.UNSET,
    )


def denied_event(
    call: ToolCall, spec: ToolSpec | None, sentence: str, rules: tuple[str, ...] = ()
) -> ToolCompleted:
    """Return the event of a denied call; `rules` together would allow it."""
    return ToolCompleted(
        call_id=call.call_id,
        tool_name=call.name,
        duration_ms=0,
        error=truncate_json(sentence, 2 * MAX_SENTENCE_BYTES),
        metadata={
            "denied": True,
            "what": truncate_json(display_call(call, spec), MAX_SENTENCE_BYTES),
            "rules": list(rules),
        },
    )


def display_call(call: ToolCall, spec: ToolSpec | None) -> str:
    """Return a call for display: the command, or the tool with its arguments.

    Invisible characters are escaped. Truncated first, because escaping megabytes takes seconds.
    """
    return escape_invisible(truncate(call_text(call, spec), MAX_SHOWN_CHARS))


def call_text(call: ToolCall, spec: ToolSpec | None) -> str:
    """Return the full text of a call: the command, or the tool with its arguments as JSON."""
    command = None if spec is None else spec.command(call.arguments)
    if command is not None:
        return command
    return f"{call.name} {json.dumps(call.arguments, ensure_ascii=False)}"
