"""Gates: orchestrator rules over the model's tool calls, with the tools that satisfy them.

`strict` has all three gates, `advisory` the alone rule only, `off` none. A gate guides: after two
corrections in a row it lets go for the run.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeVar

import msgspec
from msgspec import Meta

from internal.agent.domain.messages import ToolCall
from internal.agent.domain.plans import MAX_STEPS, Complexity, Plan
from internal.agent.domain.tasks import GateMode
from internal.agent.domain.tools import ToolSpec

MAX_OPTIONS = 20

Short = Annotated[str, Meta(max_length=4000)]
Options = Annotated[
    tuple[Short, ...], Meta(description="Answers to choose from.", max_length=MAX_OPTIONS)
]

Multiple = Annotated[bool, Meta(description="True when several options may be chosen.")]


class PlanCall(msgspec.Struct, frozen=True):
    """Say what you are going to do, before the first action and whenever the plan changes.

    Call it alone. A new plan replaces the old one.
    """

    tool: ClassVar[str] = "plan"
    goal: Annotated[Short, Meta(description="What will be true when the task is done.")]
    steps: Annotated[
        tuple[Short, ...],
        Meta(description="The steps in order, each one line.", min_length=1, max_length=MAX_STEPS),
    ]
    complexity: Annotated[
        Complexity, Meta(description="`complex` when the steps need different kinds of work.")
    ] = "simple"
    title: Annotated[Short, Meta(description="A title for the conversation, a few words.")] = ""


class UpdatePlanCall(msgspec.Struct, frozen=True):
    """Set the status of a step of the plan, for example when it is completed."""

    tool: ClassVar[str] = "update_plan"
    step_id: Annotated[Short, Meta(description="The step's id: `1` is the first step.")]
    status: Annotated[
        Literal["in_progress", "completed", "failed", "skipped"],
        Meta(description="What became of the step."),
    ]


class ClarifyCall(msgspec.Struct, frozen=True):
    """Open a step of a complex plan before its first action, or ask the person about it.

    Call it alone.
    """

    tool: ClassVar[str] = "clarify"
    step_id: Annotated[Short, Meta(description="The step's id: `1` is the first step.")]
    goal: Annotated[Short, Meta(description="What this step achieves.")]
    success_criteria: Annotated[
        str | tuple[str, ...], Meta(description="How you will know that it is done.")
    ]
    needs_user_input: Annotated[
        bool, Meta(description="True only when you cannot go on without the person.")
    ] = False
    question: Annotated[Short, Meta(description="What the person is asked.")] = ""
    options: Options = ()
    multiple: Multiple = False


class RequestUserCall(msgspec.Struct, frozen=True):
    """Ask the person something that only they can answer, and wait for it. Call it alone."""

    tool: ClassVar[str] = "request_user"
    question: Annotated[Short, Meta(description="What the person is asked.", min_length=1)]
    options: Options = ()
    multiple: Multiple = False


ControlCall = PlanCall | UpdatePlanCall | ClarifyCall | RequestUserCall
CONTROL_CALLS: tuple[type[ControlCall], ...] = (
    PlanCall,
    UpdatePlanCall,
    ClarifyCall,
    RequestUserCall,
)
"""The tools that the Turn answers itself."""

Ui = TypeVar("Ui", PlanCall, UpdatePlanCall, ClarifyCall, RequestUserCall)


def _spec(call: type[ControlCall]) -> ToolSpec:
    schema = msgspec.json.schema_components([call], ref_template="#/$defs/{name}")[1]
    parameters = {key: value for key, value in schema[call.__name__].items() if key != "title"}
    description = " ".join((call.__doc__ or "").split())
    parameters.pop("description", None)
    return ToolSpec(call.tool, description, parameters, "ui", idempotent=True)


CONTROL_SPECS: tuple[ToolSpec, ...] = tuple(_spec(call) for call in CONTROL_CALLS)
_BY_NAME: dict[str, type[ControlCall]] = {call.tool: call for call in CONTROL_CALLS}


def parse_control_call(name: str, arguments: Mapping[str, Any]) -> ControlCall | None:
    """Return the call of a tool that the Turn answers itself, None for any other tool.

    Raises:
        msgspec.ValidationError: the arguments do not fit; the message says which.
    """
    kind = _BY_NAME.get(name)
    return None if kind is None else msgspec.convert(arguments, kind, strict=False)


class Correction(msgspec.Struct, frozen=True):
    """The call is not run; the text tells the model exactly what to do instead."""

    text: str


class GateContext(msgspec.Struct, frozen=True):
    """What a gate looks at: the plan, the step that is open, the whole reply."""

    plan: Plan | None
    open_step: str | None
    calls: Sequence[ToolCall]


class Gate(Protocol):
    """A rule over one call of a reply."""

    name: ClassVar[str]

    def check(self, situation: GateContext, call: ToolCall, /) -> Correction | None:
        """Return the correction for a call that breaks the rule."""
        ...


class SoloGate:
    """`plan`, `clarify` and `request_user` speak alone; else the whole reply is corrected."""

    name: ClassVar[str] = "solo"
    tools: ClassVar[frozenset[str]] = frozenset(
        {PlanCall.tool, ClarifyCall.tool, RequestUserCall.tool}
    )

    def check(self, situation: GateContext, _call: ToolCall, /) -> Correction | None:
        """Correct every call of a reply in which one of the three is not alone."""
        solo = next((each.name for each in situation.calls if each.name in self.tools), None)
        if solo is not None and len(situation.calls) > 1:
            return Correction(f"Not run. Call {solo} alone, then continue with the other tools.")
        return None


class PlanGate:
    """`plan` comes before any action."""

    name: ClassVar[str] = "plan"

    def check(self, situation: GateContext, call: ToolCall, /) -> Correction | None:
        """Correct an action without a plan."""
        if situation.plan is None and call.name not in _BY_NAME:
            return Correction(
                f"Not run. Call plan first, alone, with your goal and steps; then call {call.name}"
                " again."
            )
        return None


class StepGate:
    """In a complex plan `clarify` opens each step before its first action."""

    name: ClassVar[str] = "step"

    def check(self, situation: GateContext, call: ToolCall, /) -> Correction | None:
        """Correct an action while no step is open and one is still to be done.

        A step that `update_plan` set to work is not open: it has no success criteria.
        """
        plan = situation.plan
        if plan is None or plan.complexity == "simple" or call.name in _BY_NAME:
            return None
        if situation.open_step is not None:
            return None
        undone = ("in_progress", "pending")
        step = next((step for step in plan.steps if step.status in undone), None)
        if step is None:
            return None
        return Correction(
            f"Not run. Open the step first: call clarify alone with step_id “{step.id}”"
            f" ({step.description}), then call {call.name} again."
        )


GATES: dict[GateMode, tuple[Gate, ...]] = {
    "strict": (SoloGate(), PlanGate(), StepGate()),
    "advisory": (SoloGate(),),
    "off": (),
}
"""The gates of each mode, in the order in which they look at a call."""

MAX_CORRECTIONS = 2
"""So many corrections in a row by one gate, then it lets go for the run."""
