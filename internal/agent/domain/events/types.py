"""Events: one small struct for each thing that can happen in a run, and the roster of all.

The name of an event stands once, in its class and so in the envelope; optionals are UNSET and
leave no trace in the JSON. `docs/events.md`, `docs/events.schema.json` and the page's types are
generated from this roster.
"""

from typing import Any, ClassVar, Literal

from msgspec import UNSET, UnsetType, field

from internal.agent.domain.events.event import Event, NodeKind
from internal.agent.domain.plans import Complexity, Plan, PlanStep
from internal.agent.domain.questions import ApprovalItem, Audience, Decision, Grant, QuestionKind
from internal.agent.domain.tasks import Attachment, Channel, Status, StopReason
from internal.agent.domain.usage import Usage


class QuestionAsked(Event, frozen=True, kw_only=True):
    """The run pauses until a person answers. `who` may answer: operators, or the asker as well."""

    name: ClassVar[str] = "workflow.question.asked"
    question_id: str
    kind: QuestionKind
    title: str
    body: str
    options: tuple[str, ...]
    expires_at: str
    calls: tuple[ApprovalItem, ...] = ()
    multiple: bool = False
    plan: Plan | UnsetType = UNSET
    who: Audience = "operators"

    def node(self) -> tuple[str, NodeKind]:
        """The question."""
        return self.question_id, "question"


class QuestionAnswered(Event, frozen=True, kw_only=True):
    """The single accepted answer to a question. `answered_name` is what people call them."""

    name: ClassVar[str] = "workflow.question.answered"
    question_id: str
    decision: Decision
    answered_by: str
    answered_via: str
    answered_name: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    items: dict[str, bool] | UnsetType = UNSET
    grant: Grant | UnsetType = UNSET
    rules: tuple[str, ...] | UnsetType = UNSET

    def node(self) -> tuple[str, NodeKind]:
        """The question."""
        return self.question_id, "question"


class DiagnosticError(Event, frozen=True, kw_only=True):
    """Something went wrong, or a gate corrected the model, and the run went on."""

    name: ClassVar[str] = "workflow.diagnostic.error"
    inner: ClassVar[bool] = True
    phase: str
    error: str
    recoverable: bool = True
    call_id: str | UnsetType = UNSET

    def node(self) -> tuple[str, NodeKind]:
        """What the diagnosis is about."""
        return self.phase, "diagnostic"


class ContextCompression(Event, frozen=True, kw_only=True):
    """Older exchanges were left out of what the model is sent. Tokens are estimates."""

    name: ClassVar[str] = "workflow.diagnostic.context_compression"
    inner: ClassVar[bool] = True
    messages_before: int
    messages_after: int
    tokens_before: int
    tokens_after: int
    budget_tokens: int
    reason: Literal["window", "provider_refused"]

    def node(self) -> tuple[str, NodeKind]:
        """The context."""
        return "context", "diagnostic"


class ContextSnapshot(Event, frozen=True, kw_only=True):
    """What a run began with: counts and a hash, never the messages themselves."""

    name: ClassVar[str] = "workflow.diagnostic.context_snapshot"
    inner: ClassVar[bool] = True
    messages: int
    tools: int
    estimated_tokens: int
    sha256: str

    def node(self) -> tuple[str, NodeKind]:
        """The context."""
        return "context", "diagnostic"


class InputReceived(Event, frozen=True, kw_only=True):
    """A person's words reached the session: a new task, or steering for the run at work."""

    name: ClassVar[str] = "workflow.input.received"
    task: str
    channel: Channel
    sender: str
    attachments: tuple[Attachment, ...] = ()
    steer: bool | UnsetType = UNSET


class LifecycleUpdated(Event, frozen=True, kw_only=True):
    """The run's status changed."""

    name: ClassVar[str] = "workflow.lifecycle.updated"
    status: Status
    phase: str
    stop_reason: StopReason | UnsetType = UNSET


class NodeStarted(Event, frozen=True, kw_only=True):
    """A stage, an iteration or a plan's step began. A second one of an id starts it over."""

    name: ClassVar[str] = "workflow.node.started"
    node_id: str
    kind: NodeKind = "step"
    step_index: int | UnsetType = UNSET
    step_description: str | UnsetType = UNSET
    iteration: int | UnsetType = UNSET

    def node(self) -> tuple[str, NodeKind]:
        """The stage, iteration or step itself."""
        return self.node_id, self.kind


class NodeCompleted(Event, frozen=True, kw_only=True):
    """A stage, an iteration or a step is done."""

    name: ClassVar[str] = "workflow.node.completed"
    node_id: str
    kind: NodeKind = "step"
    duration_ms: int
    tokens_used: int | UnsetType = UNSET
    tools_run: int | UnsetType = UNSET

    def node(self) -> tuple[str, NodeKind]:
        """The stage, iteration or step itself."""
        return self.node_id, self.kind


class NodeFailed(Event, frozen=True, kw_only=True):
    """A stage, an iteration or a reply failed. `recoverable`: the run goes on or can resume."""

    name: ClassVar[str] = "workflow.node.failed"
    node_id: str
    kind: NodeKind = "step"
    phase: str
    error: str
    recoverable: bool

    def node(self) -> tuple[str, NodeKind]:
        """The node that failed."""
        return self.node_id, self.kind


class OutputDelta(Event, frozen=True, kw_only=True):
    """The next words of a reply. `k` counts the pieces of the node, `n` are joined in this one."""

    name: ClassVar[str] = "workflow.node.output.delta"
    durable: ClassVar[bool] = False
    node_id: str
    k: int
    n: int
    text: str
    reasoning: bool | UnsetType = UNSET

    def node(self) -> tuple[str, NodeKind]:
        """The reply."""
        return self.node_id, "generation"


class Partial(Event, frozen=True, kw_only=True):
    """All words of an open node so far: sets text and `k`, up or down.

    `k: 0, text: ""` says that the model's connection broke and the reply starts over.
    """

    name: ClassVar[str] = "partial"
    durable: ClassVar[bool] = False
    node_id: str
    k: int
    text: str

    def node(self) -> tuple[str, NodeKind]:
        """The reply or the running tool."""
        return self.node_id, "generation"


class OutputSummary(Event, frozen=True, kw_only=True):
    """A reply is complete; `content` is its visible text."""

    name: ClassVar[str] = "workflow.node.output.summary"
    node_id: str
    iteration: int
    content: str
    tool_call_count: int
    llm_duration_ms: int
    llm_request_id: str
    llm_model: str
    usage: Usage

    def node(self) -> tuple[str, NodeKind]:
        """The reply."""
        return self.node_id, "generation"


class ToolStarted(Event, frozen=True, kw_only=True):
    """A tool call is about to run: stored before its first effect.

    Arguments that are too long are clipped, and attached whole.
    """

    name: ClassVar[str] = "workflow.tool.started"
    call_id: str
    tool_name: str
    arguments: dict[str, Any]
    iteration: int
    risk: str
    attachments: tuple[Attachment, ...] = ()

    def node(self) -> tuple[str, NodeKind]:
        """The call."""
        return self.call_id, "tool"


class ToolProgress(Event, frozen=True, kw_only=True):
    """The next output of a running tool, counted as in a delta; `node_id` is the call's id."""

    name: ClassVar[str] = "workflow.tool.progress"
    durable: ClassVar[bool] = False
    node_id: str
    k: int
    n: int
    text: str

    def node(self) -> tuple[str, NodeKind]:
        """The call."""
        return self.node_id, "tool"


class ToolCompleted(Event, frozen=True, kw_only=True):
    """A tool returned, or was never run. A failed call carries `error` and no `result`."""

    name: ClassVar[str] = "workflow.tool.completed"
    call_id: str
    tool_name: str
    duration_ms: int
    result: str = ""
    error: str | UnsetType = UNSET
    attachments: tuple[Attachment, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)

    def node(self) -> tuple[str, NodeKind]:
        """The call."""
        return self.call_id, "tool"


class PlanUpdated(Event, frozen=True, kw_only=True):
    """A new version of the plan, or a step of it moved."""

    name: ClassVar[str] = "workflow.plan.updated"
    version: int
    goal: str
    complexity: Complexity
    steps: tuple[PlanStep, ...]
    title: str | UnsetType = UNSET

    def node(self) -> tuple[str, NodeKind]:
        """The plan in this version."""
        return f"plan:{self.version}", "plan"


class ResultFinal(Event, frozen=True, kw_only=True):
    """The run's end, completed or failed. `cost` in US dollars, absent without a known price.

    `error_code` names a failure of the model: model_key_refused, model_busy, model_unreachable,
    model_rejected, context_too_long.
    """

    name: ClassVar[str] = "workflow.result.final"
    terminal: ClassVar[bool] = True
    final_answer: str
    stop_reason: StopReason
    total_iterations: int
    usage: Usage
    duration_ms: int
    cost: float | UnsetType = UNSET
    error: str | UnsetType = UNSET
    error_code: str | UnsetType = UNSET
    attachments: tuple[Attachment, ...] = ()

    def node(self) -> tuple[str, NodeKind]:
        """The result."""
        return "result", "result"


class ResultCancelled(Event, frozen=True, kw_only=True):
    """The run's end by a person's will."""

    name: ClassVar[str] = "workflow.result.cancelled"
    terminal: ClassVar[bool] = True
    reason: str
    requested_by: str
    requested_via: str

    def node(self) -> tuple[str, NodeKind]:
        """The result."""
        return "result", "result"


EVENTS: tuple[type[Event], ...] = (
    InputReceived,
    LifecycleUpdated,
    NodeStarted,
    NodeCompleted,
    NodeFailed,
    OutputDelta,
    Partial,
    OutputSummary,
    ToolStarted,
    ToolProgress,
    ToolCompleted,
    PlanUpdated,
    QuestionAsked,
    QuestionAnswered,
    ResultFinal,
    ResultCancelled,
    DiagnosticError,
    ContextCompression,
    ContextSnapshot,
)
"""Every event that an envelope can carry."""
