"""Gates: rules on the order of the model's tool calls, and the control tools that satisfy them.

Mode `strict` has all three gates, `advisory` only the solo gate, `off` none. A gate only guides: it
switches off for the rest of the run after two corrections in a row.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Protocol

import msgspec
from msgspec import Meta

from internal.agent.domain.messages import ToolCall
from internal.agent.domain.plans import MAX_STEPS, Complexity, Plan
from internal.agent.domain.tasks import GateMode
from internal.agent.domain.tools import ToolSpec
from internal.i18n.language import Language
from internal.normal_forms.json_schema import schema_components

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
    tool_title: ClassVar[dict[Language, str]] = {"en": "Make a plan", "zh": "制定计划"}
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
    tool_title: ClassVar[dict[Language, str]] = {"en": "Update the plan", "zh": "更新计划"}
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
    tool_title: ClassVar[dict[Language, str]] = {"en": "Ask a question", "zh": "提出问题"}
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
    tool_title: ClassVar[dict[Language, str]] = {"en": "Ask for help", "zh": "请求协助"}
    question: Annotated[Short, Meta(description="What the person is asked.", min_length=1)]
    options: Options = ()
    multiple: Multiple = False


class FindToolsCall(msgspec.Struct, frozen=True):
    """Find tools of MCP servers by what they do; returns names, descriptions and arguments.

    An empty query lists the servers with the names of their tools.
    """

    tool: ClassVar[str] = "find_tools"
    tool_title: ClassVar[dict[Language, str]] = {"en": "Find tools", "zh": "查找工具"}
    query: Annotated[
        Short, Meta(description="Words for what the tool does, such as `create issue`.")
    ] = ""
    limit: Annotated[int, Meta(description="Return at most this many tools.", ge=1, le=5)] = 5


class UseToolCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Call a tool of an MCP server that is not listed here; `find_tools` returns its arguments."""

    tool: ClassVar[str] = "use_tool"
    tool_title: ClassVar[dict[Language, str]] = {"en": "Call a tool", "zh": "调用工具"}
    name: Annotated[Short, Meta(description="The name of the tool: `mcp__SERVER__TOOL`.")]
    arguments: Annotated[dict[str, Any], Meta(description="The arguments of the tool.")] = {}


ControlCall = (
    PlanCall | UpdatePlanCall | ClarifyCall | RequestUserCall | FindToolsCall | UseToolCall
)
CONTROL_CALLS: tuple[type[ControlCall], ...] = (
    PlanCall,
    UpdatePlanCall,
    ClarifyCall,
    RequestUserCall,
)
"""The tools that the Turn handles itself."""
DEFERRED_TOOL_CALLS: tuple[type[ControlCall], ...] = (FindToolsCall, UseToolCall)
"""Those of runs with deferred tools."""


def _spec(call: type[ControlCall]) -> ToolSpec:
    schema = schema_components([call], ref_template="#/$defs/{name}")[1]
    parameters = {key: value for key, value in schema[call.__name__].items() if key != "title"}
    description = " ".join((call.__doc__ or "").split())
    parameters.pop("description", None)
    return ToolSpec(
        call.tool, description, parameters, "ui", idempotent=True, title=call.tool_title
    )


CONTROL_SPECS: tuple[ToolSpec, ...] = tuple(_spec(call) for call in CONTROL_CALLS)
DEFERRED_TOOL_SPECS: tuple[ToolSpec, ...] = tuple(_spec(call) for call in DEFERRED_TOOL_CALLS)
_BY_NAME: dict[str, type[ControlCall]] = {
    call.tool: call for call in (*CONTROL_CALLS, *DEFERRED_TOOL_CALLS)
}


def parse_control_call(name: str, arguments: Mapping[str, Any]) -> ControlCall | None:
    """Return the parsed call of a control tool, None for any other tool.

    Raises:
        msgspec.ValidationError: the arguments are not valid.
    """
    kind = _BY_NAME.get(name)
    return None if kind is None else msgspec.convert(arguments, kind, strict=False)


class Correction(msgspec.Struct, frozen=True):
    """The call is not run. `text` tells the model what to do instead."""

    text: str


class GateContext(msgspec.Struct, frozen=True):
    """The input of a gate: the plan, the open step, all calls of the reply."""

    plan: Plan | None
    open_step: str | None
    calls: Sequence[ToolCall]


class Gate(Protocol):
    """A rule on one call of a reply."""

    name: ClassVar[str]

    def check(self, context: GateContext, call: ToolCall, /) -> Correction | None:
        """Return a correction if the call breaks the rule."""
        ...


class SoloGate:
    """`plan`, `clarify` and `request_user` must be the only call of a reply."""

    name: ClassVar[str] = "solo"
    tools: ClassVar[frozenset[str]] = frozenset(
        {PlanCall.tool, ClarifyCall.tool, RequestUserCall.tool}
    )

    def check(self, context: GateContext, _call: ToolCall, /) -> Correction | None:
        """Correct every call of a reply that breaks the rule."""
        solo = next((each.name for each in context.calls if each.name in self.tools), None)
        if solo is not None and len(context.calls) > 1:
            return Correction(f"Not run. Call {solo} alone, then continue with the other tools.")
        return None


class PlanGate:
    """`plan` must precede any action."""

    name: ClassVar[str] = "plan"

    def check(self, context: GateContext, call: ToolCall, /) -> Correction | None:
        """Correct an action without a plan."""
        if context.plan is None and call.name not in _BY_NAME:
            return Correction(
                f"Not run. Call plan first, alone, with your goal and steps; then call {call.name}"
                " again."
            )
        return None


class StepGate:
    """In a complex plan, `clarify` must open each step before its first action."""

    name: ClassVar[str] = "step"

    def check(self, context: GateContext, call: ToolCall, /) -> Correction | None:
        """Correct an action while no step is open and steps are left.

        `update_plan` does not open a step, because it sets no success criteria.
        """
        plan = context.plan
        if plan is None or plan.complexity == "simple" or call.name in _BY_NAME:
            return None
        if context.open_step is not None:
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
"""The gates of each mode, in the order of their checks."""

MAX_CORRECTIONS = 2
"""Corrections in a row after which a gate switches off for the run."""
