"""Gates: rules on the order of the model's tool calls, and the control tools that satisfy them.

Modes `adaptive` and `strict` have all three gates, `advisory` only the solo gate, `off` none. A
gate guides and never turns itself off: after two corrections in a row Larkspur makes the required
call in the model's place.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Protocol

import msgspec
from msgspec import Meta

from internal.agent.domain.delegation.requests import CreateTaskCall, SubagentCall
from internal.agent.domain.messages import ToolCall
from internal.agent.domain.permissions.targets import Risk, SandboxTarget
from internal.agent.domain.plans import MAX_STEP_CHARS, MAX_STEPS, Complexity, Plan
from internal.agent.domain.react.call_subject import call_subject
from internal.agent.domain.tasks import GateMode
from internal.agent.domain.text import truncate, truncate_line
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
    """Return the parsed call of a control tool, None if it is any other tool.

    Raises:
        msgspec.ValidationError: the arguments are not valid.
    """
    kind = _BY_NAME.get(name)
    return None if kind is None else msgspec.convert(arguments, kind, strict=False)


NotRunReason = Literal[
    "plan", "step", "alone", "gate", "plan_review", "question", "approvals", "end"
]
"""Why a call was not run.

There was no plan; its step was not open; another call of the reply must come alone; a further gate
corrected it; a person is asked about the plan first; another question is open; too many calls wait
for an answer; the run asked for its answer only.
"""


class Correction(msgspec.Struct, frozen=True):
    """The call is not run. `text` has instructions for the model, `reason` the reason for people.

    After `MAX_CORRECTIONS` in a row the call of `substitute` is made in the model's place.
    """

    text: str
    reason: NotRunReason = "gate"
    substitute: PlanCall | ClarifyCall | None = None


class GateContext(msgspec.Struct, frozen=True):
    """The input of a gate: the plan, the open step, all calls of the reply.

    `spec` is the tool of the call, `isolated` whether the sandbox keeps commands from everything
    but the folders of the session. `unplanned` is the part of the allowance without a plan that
    earlier calls have used. `task` is the text of the person.
    """

    plan: Plan | None
    open_step: str | None
    calls: Sequence[ToolCall]
    spec: ToolSpec | None = None
    isolated: bool = False
    unplanned: int = 0
    task: str = ""


class Gate(Protocol):
    """A rule on one call of a reply."""

    name: ClassVar[str]

    def check(self, context: GateContext, call: ToolCall, /) -> Correction | None:
        """Return a correction if the call breaks the rule."""
        ...


class SoloGate:
    """`plan`, `clarify` and `request_user` must be the only call of a reply.

    After `MAX_CORRECTIONS` the exclusive call of a reply is taken as a reply of its own, before the
    other calls; see `split_reply`.
    """

    name: ClassVar[str] = "solo"
    tools: ClassVar[frozenset[str]] = frozenset(
        {PlanCall.tool, ClarifyCall.tool, RequestUserCall.tool}
    )

    def check(self, context: GateContext, _call: ToolCall, /) -> Correction | None:
        """Correct every call of a reply that breaks the rule."""
        solo = next((each.name for each in context.calls if each.name in self.tools), None)
        if solo is not None and len(context.calls) > 1:
            text = f"Not run. Call {solo} alone, then continue with the other tools."
            return Correction(text, "alone")
        return None

    def split_reply(self, calls: Sequence[ToolCall]) -> tuple[Sequence[ToolCall], ...]:
        """Return the calls of a reply as two replies: the first exclusive call, and the others."""
        solo = next((call for call in calls if call.name in self.tools), None)
        if solo is None or len(calls) == 1:
            return (calls,)
        return ((solo,), [call for call in calls if call is not solo])


MAX_UNPLANNED = 2
"""The allowance of calls without a plan: two that only read, or one isolated command."""
MAX_STEP_OF_TASK_CHARS = 300
_EFFECTS: dict[Risk, str] = {
    "read": "it starts a task of its own",
    "write": "it changes something",
    "net": "it reaches the network",
    "exec": "it leaves the sandbox",
    "ui": "it acts",
}


def unplanned_cost(spec: ToolSpec, arguments: Mapping[str, Any], *, isolated: bool) -> int | None:
    """Return the cost of a call in the allowance without a plan, None if it always needs a plan.

    Subtasks need one: they act without a plan of their own.
    """
    if spec.risk == "read":
        return None if spec.name in {CreateTaskCall.tool, SubagentCall.tool} else 1
    wanted = (each.argument for each in spec.targets if isinstance(each, SandboxTarget))
    is_contained = isolated and spec.sandboxed and not any(map(arguments.get, wanted))
    return MAX_UNPLANNED if spec.risk == "exec" and is_contained else None


class PlanGate:
    """`plan` must precede any action beyond an allowance of `unplanned` calls."""

    name: ClassVar[str] = "plan"

    def __init__(self, unplanned: int = 0) -> None:
        self._unplanned = unplanned

    def check(self, context: GateContext, call: ToolCall, /) -> Correction | None:
        """Correct an action without a plan."""
        if context.plan is not None or call.name in _BY_NAME:
            return None
        start = f"Not run. Call plan first, alone, with your goal and steps; then call {call.name}"
        if not self._unplanned or context.spec is None:
            return Correction(f"{start} again.", "plan", _plan_of_task(context.task))
        spec = context.spec
        cost = unplanned_cost(spec, call.arguments, isolated=context.isolated)
        if cost is not None and context.unplanned + cost <= self._unplanned:
            return None
        why = "more than two calls that read, or one isolated command, need a plan"
        if cost is None:
            why = f"it needs a plan because {_EFFECTS[spec.risk]}"
        _, subject = call_subject(call, spec)
        about = "" if subject == call.name else f" ({subject})"
        return Correction(f"{start}{about} again: {why}.", "plan", _plan_of_task(context.task))


def _plan_of_task(task: str) -> PlanCall:
    """Return the plan that Larkspur makes: the task as one step."""
    lines = task.strip() or "-"
    return PlanCall(
        truncate(lines, MAX_STEP_CHARS), (truncate_line(lines, MAX_STEP_OF_TASK_CHARS),)
    )


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
        text = (
            f"Not run. Open the step first: call clarify alone with step_id “{step.id}”"
            f" ({step.description}), then call {call.name} again."
        )
        return Correction(text, "step", ClarifyCall(step.id, step.description, ""))


GATES: dict[GateMode, tuple[Gate, ...]] = {
    "adaptive": (SoloGate(), PlanGate(MAX_UNPLANNED), StepGate()),
    "strict": (SoloGate(), PlanGate(), StepGate()),
    "advisory": (SoloGate(),),
    "off": (),
}
"""The gates of each mode, in the order of their checks."""

MAX_CORRECTIONS = 2
"""Corrections in a row after which Larkspur makes the required call in the model's place."""
