"""The judgement of a reply: where it starts, what comes out, and the events that tell of it."""

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
"""So many calls fit into one approval question; the model is to call the others again."""

MAX_SHOWN_CHARS = 60_000
"""Characters of a call that are looked at to show it; an event carries less."""

MAX_SENTENCE_BYTES = 8000
"""Bytes of what the model and the event read of a call that is not run."""

NOBODY = (
    "Nobody can be asked in this run. Decide yourself, go on, and say in your answer what you"
    " assumed."
)


ONE_AT_A_TIME = "Not asked: one question at a time. Ask again when the first is answered."
UNAGREED = (
    "Not run: a person must agree to the plan before anything is done. Call plan alone, with your"
    " goal and steps."
)
UNREACHED = (
    "A person must agree to the plan, and nobody can be asked in this run: nothing may be done. Say"
    " so in your answer."
)


def byte_budget(calls: int) -> int:
    """Return how many bytes of an approval question each of so many calls may take."""
    return min(48_000 // min(max(calls, 1), MAX_APPROVAL_ITEMS), 24_000)


class ReviewState(msgspec.Struct, frozen=True):
    """The state of a Turn that a judgement starts from."""

    plan: Plan | None
    open_step: str | None
    approved: int
    """The version of the plan that a person agreed to; 0 for none."""
    reviewed: bool
    """Whether a plan of this run was put to a person: then all that follow are."""
    corrections: dict[str, int]
    released: frozenset[str]
    questions: int


class CallReview(msgspec.Struct):
    """What became of the calls. Those without a result and without a need are to be run."""

    plan: Plan | None
    open_step: str | None
    corrections: dict[str, int]
    released: frozenset[str]
    results: dict[str, ToolResult] = {}
    needs: dict[str, ApprovalItem] = {}
    question: Question | None = None
    events: list[Event] = []


def plan_updated(plan: Plan) -> PlanUpdated:
    """Return the event of a plan as it is now."""
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
    """Return the event of a call that may not run; `rules` together would allow it."""
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
    """Return a call as a person reads it: the command itself, or the tool with its arguments.

    What nobody could see stands escaped. Clipped first: escaping megabytes takes seconds.
    """
    return escape_invisible(truncate(call_text(call, spec), MAX_SHOWN_CHARS))


def call_text(call: ToolCall, spec: ToolSpec | None) -> str:
    """Return a call as it is: the command, or the tool with its arguments as JSON."""
    command = None if spec is None else spec.command(call.arguments)
    if command is not None:
        return command
    return f"{call.name} {json.dumps(call.arguments, ensure_ascii=False)}"
