"""The events of a run: the base class, one struct for each event, and the list of all of them.

Optional fields are UNSET and omitted from the JSON. `docs/events.md`, `docs/events.schema.json` and
the types of the page are generated from this list.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, UnsetType, field

from internal.agent.domain.artifacts import ManifestEntry
from internal.agent.domain.events.displays import EVERYWHERE, NOWHERE, Display, shown_on
from internal.agent.domain.ids import RunId, TaskId
from internal.agent.domain.left_out import LeftOut
from internal.agent.domain.own_commands import OwnCommand
from internal.agent.domain.plans import Author, Complexity, Plan, PlanStep
from internal.agent.domain.questions import ApprovalItem, Audience, Decision, Grant, QuestionKind
from internal.agent.domain.tasks import Attachment, Channel, Status, StopReason
from internal.agent.domain.usage import ContextUse, Usage

NodeKind = Literal[
    "step",
    "iteration",
    "plan",
    "tool",
    "subflow",
    "result",
    "diagnostic",
    "generation",
    "artifact",
    "question",
]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a run. A `durable` event is numbered and stored before delivery."""

    name: ClassVar[str]
    durable: ClassVar[bool] = True
    terminal: ClassVar[bool] = False
    inner: ClassVar[bool] = False
    """Sent on a stream only with `debug=1`."""
    shown: ClassVar[frozenset[Display]]
    """The displays that show the event, or use it for their content."""
    told: ClassVar[Mapping[Display, str]] = {}
    """Its notification on displays that do not receive it."""

    def node(self) -> tuple[str, NodeKind] | None:
        """Return the id and the kind of the node of the event, None without a node."""
        return None


class QuestionAsked(Event, frozen=True, kw_only=True):
    """The run pauses until a person answers. `who`: operators only, or also the asker.

    `reason_code` says why a run cannot continue by itself: an `error_code`, or `crashed`.
    `asked_by` is the place of the subtask that asks, such as `task 2 · analyst`; `asker_number`
    and `asker_role` are its parts, 0 and "" for the task itself and in events of earlier versions.
    """

    name: ClassVar[str] = "workflow.question.asked"
    shown: ClassVar[frozenset[Display]] = EVERYWHERE
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
    reason_code: str = ""
    asked_by: str = ""
    asker_number: int = 0
    asker_role: str = ""

    def node(self) -> tuple[str, NodeKind]:
        """The question."""
        return self.question_id, "question"


class QuestionAnswered(Event, frozen=True, kw_only=True):
    """The single accepted answer to a question. `answered_name` is a display name."""

    name: ClassVar[str] = "workflow.question.answered"
    shown: ClassVar[frozenset[Display]] = shown_on("page", "terminal", "one_shot")
    told: ClassVar[Mapping[Display, str]] = {"chat": "the card of the question"}
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


class Notice(Event, frozen=True, kw_only=True):
    """A sentence for people about the files of the run or of its session.

    `about` is a file of the message that cannot be used, files that are on a host which is away, or
    files that are not kept.
    """

    name: ClassVar[str] = "workflow.notice"
    shown: ClassVar[frozenset[Display]] = EVERYWHERE
    about: Literal["input_files", "host", "kept_files"]
    text: str


class DiagnosticError(Event, frozen=True, kw_only=True):
    """An error or a correction by a gate; the run continues."""

    name: ClassVar[str] = "workflow.diagnostic.error"
    shown: ClassVar[frozenset[Display]] = NOWHERE
    inner: ClassVar[bool] = True
    phase: str
    error: str
    recoverable: bool = True
    call_id: str | UnsetType = UNSET

    def node(self) -> tuple[str, NodeKind]:
        """The phase of the error."""
        return self.phase, "diagnostic"


class FilteredTool(msgspec.Struct, frozen=True):
    """A tool that the run does not have. `reason` is "profile", or why it is withheld."""

    name: str
    reason: str


class ToolFiltering(Event, frozen=True, kw_only=True):
    """The tools that exist and that the run does not have.

    `filtered` are the first ones, `count` is the number of all.
    """

    name: ClassVar[str] = "workflow.diagnostic.tool_filtering"
    shown: ClassVar[frozenset[Display]] = NOWHERE
    inner: ClassVar[bool] = True
    count: int
    filtered: tuple[FilteredTool, ...]

    def node(self) -> tuple[str, NodeKind]:
        """The preparation of the run."""
        return "prepare", "diagnostic"


class ContextCompression(Event, frozen=True, kw_only=True):
    """Older exchanges were left out of the request. Tokens are estimates."""

    name: ClassVar[str] = "workflow.diagnostic.context_compression"
    shown: ClassVar[frozenset[Display]] = NOWHERE
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
    """The size and hash of the initial context, without the messages."""

    name: ClassVar[str] = "workflow.diagnostic.context_snapshot"
    shown: ClassVar[frozenset[Display]] = NOWHERE
    inner: ClassVar[bool] = True
    messages: int
    tools: int
    estimated_tokens: int
    sha256: str

    def node(self) -> tuple[str, NodeKind]:
        """The context."""
        return "context", "diagnostic"


class InputReceived(Event, frozen=True, kw_only=True):
    """A message from a person: a new task, or steering of the current run.

    `resumed`: the person wrote nothing, but let a task that ended go on; `task` is its message.
    `commands` are those that the person ran before in the terminal and that the model reads with
    the message.
    """

    name: ClassVar[str] = "workflow.input.received"
    shown: ClassVar[frozenset[Display]] = shown_on("page", "terminal", "chat")
    task: str
    channel: Channel
    sender: str
    attachments: tuple[Attachment, ...] = ()
    steer: bool | UnsetType = UNSET
    resumed: bool | UnsetType = UNSET
    commands: tuple[OwnCommand, ...] | UnsetType = UNSET


class InputWaiting(Event, frozen=True, kw_only=True):
    """What became of a message that steers the run and that no model has read yet.

    It waits for the next step, was edited or taken back by its writer, or was given back because
    the run was stopped or failed: then it starts nothing. `task` is its text.
    `GET /api/sessions/{session_id}/messages` has those that wait or were given back. A message that
    is delivered comes as `workflow.input.received`.
    """

    name: ClassVar[str] = "workflow.input.waiting"
    shown: ClassVar[frozenset[Display]] = shown_on("page", "terminal")
    told: ClassVar[Mapping[Display, str]] = {"chat": "given back: a message with the words"}
    durable: ClassVar[bool] = False
    number: int
    state: Literal["waiting", "edited", "taken_back", "given_back"]
    task: str


class InputEdited(Event, frozen=True, kw_only=True):
    """A person edited the message of a task before its run began."""

    name: ClassVar[str] = "workflow.input.edited"
    shown: ClassVar[frozenset[Display]] = shown_on("page")
    task: str
    attachments: tuple[Attachment, ...] = ()


class InputFilesFetched(Event, frozen=True, kw_only=True):
    """The files of the message that a run starts with were fetched from its chat service."""

    name: ClassVar[str] = "workflow.input.files_fetched"
    shown: ClassVar[frozenset[Display]] = shown_on("page")
    attachments: tuple[Attachment, ...]


class PeopleMentioned(Event, frozen=True, kw_only=True):
    """People whom the reply of the run notifies, besides those who wrote to it.

    `people` are principals, `names` their display names in the same order.
    """

    name: ClassVar[str] = "workflow.people.mentioned"
    shown: ClassVar[frozenset[Display]] = shown_on("chat")
    people: tuple[str, ...]
    names: tuple[str, ...]


class LifecycleUpdated(Event, frozen=True, kw_only=True):
    """The run's status changed."""

    name: ClassVar[str] = "workflow.lifecycle.updated"
    shown: ClassVar[frozenset[Display]] = EVERYWHERE
    status: Status
    phase: str
    stop_reason: StopReason | UnsetType = UNSET


class NodeStarted(Event, frozen=True, kw_only=True):
    """A stage, an iteration or a step started. A repeated id restarts it."""

    name: ClassVar[str] = "workflow.node.started"
    shown: ClassVar[frozenset[Display]] = shown_on("page")
    node_id: str
    kind: NodeKind = "step"
    step_index: int | UnsetType = UNSET
    step_description: str | UnsetType = UNSET
    iteration: int | UnsetType = UNSET

    def node(self) -> tuple[str, NodeKind]:
        """The stage, iteration or step itself."""
        return self.node_id, self.kind


class NodeCompleted(Event, frozen=True, kw_only=True):
    """A stage, an iteration or a step is complete."""

    name: ClassVar[str] = "workflow.node.completed"
    shown: ClassVar[frozenset[Display]] = shown_on()
    node_id: str
    kind: NodeKind = "step"
    duration_ms: int
    tokens_used: int | UnsetType = UNSET
    tools_run: int | UnsetType = UNSET

    def node(self) -> tuple[str, NodeKind]:
        """The stage, iteration or step itself."""
        return self.node_id, self.kind


class NodeFailed(Event, frozen=True, kw_only=True):
    """A stage, an iteration or a reply failed. `recoverable`: the run continues or can resume."""

    name: ClassVar[str] = "workflow.node.failed"
    shown: ClassVar[frozenset[Display]] = shown_on("page")
    node_id: str
    kind: NodeKind = "step"
    phase: str
    error: str
    recoverable: bool

    def node(self) -> tuple[str, NodeKind]:
        """The node that failed."""
        return self.node_id, self.kind


class ModelRetry(Event, frozen=True, kw_only=True):
    """The model cannot answer now; it is asked again after `seconds`.

    `reason`: it is overloaded, its provider limits how often it is asked, it is still being loaded,
    or it cannot be reached. `attempt` counts the attempts of this reply: 2 is the first repetition.
    `attempts` is the last one if nothing changes, 0 if it is not known. `cause` is the error.
    """

    name: ClassVar[str] = "workflow.node.retry"
    shown: ClassVar[frozenset[Display]] = EVERYWHERE
    node_id: str
    reason: Literal["overloaded", "rate_limited", "loading", "unreachable"]
    seconds: int
    attempt: int
    attempts: int = 0
    cause: str = ""

    def node(self) -> tuple[str, NodeKind]:
        """The reply."""
        return self.node_id, "generation"


class PartsLeftOut(Event, frozen=True, kw_only=True):
    """The model was asked without parts that its server does not take, or its reply lost some.

    `what` are pictures, pictures that made the request too large, all tools, the tool `tool_name`,
    or what a content filter refused: results of tools, or the conversation before the run.
    `reply_pictures` are pictures of the reply that cannot be kept as files.
    """

    name: ClassVar[str] = "workflow.node.left_out"
    shown: ClassVar[frozenset[Display]] = EVERYWHERE
    node_id: str
    what: LeftOut
    count: int
    tool_name: str = ""

    def node(self) -> tuple[str, NodeKind]:
        """The reply."""
        return self.node_id, "generation"


class OutputDelta(Event, frozen=True, kw_only=True):
    """The next text of a reply. `k` counts the pieces of the node, `n` are joined in this one."""

    name: ClassVar[str] = "workflow.node.output.delta"
    shown: ClassVar[frozenset[Display]] = shown_on("page", "terminal")
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
    """The whole text of an open node so far. It sets the text and `k`.

    `k: 0, text: ""`: the connection to the model broke and the reply restarts.
    """

    name: ClassVar[str] = "partial"
    shown: ClassVar[frozenset[Display]] = shown_on("page", "terminal", "chat")
    durable: ClassVar[bool] = False
    node_id: str
    k: int
    text: str

    def node(self) -> tuple[str, NodeKind]:
        """The reply or the running tool."""
        return self.node_id, "generation"


class OutputSummary(Event, frozen=True, kw_only=True):
    """A reply is complete; `content` is its visible text.

    `thinking` is the reasoning before it, as far as the provider shows it, and `thinking_ms` how
    long it took. `context` is what the request held, with estimates; `usage` has the provider's
    count. `call_ids` are the first 64 calls of a reply with several, in the order in which they are
    shown: they start, and are refused, in any order.
    """

    name: ClassVar[str] = "workflow.node.output.summary"
    shown: ClassVar[frozenset[Display]] = EVERYWHERE
    node_id: str
    iteration: int
    content: str
    tool_call_count: int
    llm_duration_ms: int
    llm_request_id: str
    llm_model: str
    usage: Usage
    thinking: str = ""
    thinking_ms: int = 0
    context: ContextUse | UnsetType = UNSET
    call_ids: tuple[str, ...] | UnsetType = UNSET

    def node(self) -> tuple[str, NodeKind]:
        """The reply."""
        return self.node_id, "generation"


class ToolStarted(Event, frozen=True, kw_only=True):
    """A tool call starts. Stored before its first effect.

    Long arguments are truncated, and attached in full. `title` is what people read in place of the
    name of a tool of an MCP server.
    """

    name: ClassVar[str] = "workflow.tool.started"
    shown: ClassVar[frozenset[Display]] = shown_on("page", "terminal", "chat")
    call_id: str
    tool_name: str
    arguments: dict[str, Any]
    iteration: int
    risk: str
    attachments: tuple[Attachment, ...] = ()
    title: str | UnsetType = UNSET

    def node(self) -> tuple[str, NodeKind]:
        """The call."""
        return self.call_id, "tool"


class ToolProgress(Event, frozen=True, kw_only=True):
    """The next output of a running tool, counted as in a delta. `node_id` is the call id.

    A chat shows the last line of what the tool of an MCP server reports.
    """

    name: ClassVar[str] = "workflow.tool.progress"
    shown: ClassVar[frozenset[Display]] = shown_on("page", "terminal", "chat")
    durable: ClassVar[bool] = False
    node_id: str
    k: int
    n: int
    text: str

    def node(self) -> tuple[str, NodeKind]:
        """The call."""
        return self.node_id, "tool"


class ToolCompleted(Event, frozen=True, kw_only=True):
    """A tool call ended or was not run. A failed call has `error` and no `result`.

    For a call that was returned to the model, `metadata` has `not_run`, the reason: plan, step,
    alone or gate for a gate, else plan_review, question, approvals or end. It and a denied call
    have `what`, the call for display, `subject`, its file, command or host, and `title`, as in the
    event of a start.
    """

    name: ClassVar[str] = "workflow.tool.completed"
    shown: ClassVar[frozenset[Display]] = EVERYWHERE
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


class ArtifactManifest(Event, frozen=True, kw_only=True):
    """Files that a call made for people: new ones, or new versions. `source_tool` made them.

    `omitted` counts further new files of the call, which are not kept. The files of one call may
    come in several events; those found at the end of a run have the call id "".
    """

    name: ClassVar[str] = "workflow.artifact.manifest"
    shown: ClassVar[frozenset[Display]] = shown_on("page", "terminal", "one_shot")
    told: ClassVar[Mapping[Display, str]] = {"chat": "messages with the files"}
    artifacts: tuple[ManifestEntry, ...]
    call_id: str
    source_tool: str
    omitted: int = 0

    def node(self) -> tuple[str, NodeKind]:
        """The files of the call."""
        return f"artifacts:{self.call_id}", "artifact"


class ChangedFile(msgspec.Struct, frozen=True):
    """A file of the workspace that a run changed. `added` and `removed` are lines, if known."""

    path: str
    kind: Literal["created", "changed", "deleted"]
    added: int | UnsetType = UNSET
    removed: int | UnsetType = UNSET


class FilesChanged(Event, frozen=True, kw_only=True):
    """Files of the workspace that the run made, changed or deleted, by a tool or a command.

    It comes before the run ends or waits, and replaces the one before it. `total` counts the files,
    also those that are not named. `is_complete` is false if the workspace was too large to look at
    all of it.
    """

    name: ClassVar[str] = "workflow.files.changed"
    shown: ClassVar[frozenset[Display]] = shown_on("page", "terminal", "chat")
    files: tuple[ChangedFile, ...]
    total: int
    is_complete: bool = True


class TaskDispatched(Event, frozen=True, kw_only=True):
    """A subtask was created. `number` counts the subtasks of the outermost task.

    `profile` is the name of its profile and `role` what people read. `instruction` may be
    truncated.
    """

    name: ClassVar[str] = "background.task.dispatched"
    shown: ClassVar[frozenset[Display]] = shown_on("page", "terminal", "one_shot")
    task_id: TaskId
    call_id: str
    number: int
    total: int
    instruction: str
    profile: str
    role: str
    depends_on: tuple[TaskId, ...] = ()

    def node(self) -> tuple[str, NodeKind]:
        """The subtask."""
        return self.task_id, "subflow"


class TaskCompleted(Event, frozen=True, kw_only=True):
    """The run that created a subtask learned of its end, or the run that reports it.

    `preview` is the beginning of its answer or error.
    """

    name: ClassVar[str] = "background.task.completed"
    shown: ClassVar[frozenset[Display]] = shown_on()
    told: ClassVar[Mapping[Display, str]] = {
        "page": "the end of the lane",
        "terminal": "the end of its row",
        "chat": "its line",
    }
    task_id: TaskId
    number: int
    status: Status
    stop_reason: StopReason | None
    preview: str

    def node(self) -> tuple[str, NodeKind]:
        """The subtask."""
        return self.task_id, "subflow"


class SubflowProgress(Event, frozen=True, kw_only=True):
    """What a subtask does; an event of its own run, at most one in two seconds.

    `completed` counts the subtasks of the outermost task that have ended, `tokens` and `tool_calls`
    those of this one so far. `preview` is what it does now.
    """

    name: ClassVar[str] = "workflow.subflow.progress"
    shown: ClassVar[frozenset[Display]] = shown_on("page", "terminal", "chat")
    subtask_index: int
    total_subtasks: int
    completed: int
    tokens: int
    tool_calls: int
    preview: str

    def node(self) -> tuple[str, NodeKind]:
        """The subtask among its siblings."""
        return f"subtask:{self.subtask_index}", "subflow"


class SubflowCompleted(Event, frozen=True, kw_only=True):
    """All subtasks of a call have ended, `success` of them completed."""

    name: ClassVar[str] = "workflow.subflow.completed"
    shown: ClassVar[frozenset[Display]] = shown_on()
    call_id: str
    success: int
    failed: int

    def node(self) -> tuple[str, NodeKind]:
        """The call."""
        return self.call_id, "subflow"


class PlanUpdated(Event, frozen=True, kw_only=True):
    """A new version of the plan, or a new status of a step.

    `made_by` is larkspur for a plan of one step that a gate made from the task.
    """

    name: ClassVar[str] = "workflow.plan.updated"
    shown: ClassVar[frozenset[Display]] = shown_on("page", "terminal", "chat")
    version: int
    goal: str
    complexity: Complexity
    steps: tuple[PlanStep, ...]
    title: str | UnsetType = UNSET
    made_by: Author = "agent"

    def node(self) -> tuple[str, NodeKind]:
        """The plan in this version."""
        return f"plan:{self.version}", "plan"


class RunTotal(msgspec.Struct, frozen=True):
    """What a run and all subtasks below it have used; `usage` and `cost` as in the end of a run."""

    run_id: RunId
    usage: Usage
    cost: float | UnsetType = UNSET


class ResultFinal(Event, frozen=True, kw_only=True):
    """The end of the run, completed or failed.

    `usage` and `cost` are those of the run and all subtasks below it so far. `cost` covers models
    with a known price, in US dollars; absent if there is none. `duration_ms` is the time from the
    start of the run to its end, all waiting included. `subtasks` counts those below it. The end of
    a subtask has in `above` the new totals of the runs above it, which may have ended before.
    `error_code` is checkpoint_unreadable, internal_error or daily_limit_exceeded, or identifies an
    error of the model: model_key_refused, model_no_credit, model_quota_used_up, model_not_found,
    model_region_refused, model_unavailable, model_busy, model_rate_limited, model_loading,
    model_unreachable, model_wrong_address, model_rejected, model_message_filtered,
    model_picture_refused, model_document_refused, model_audio_refused, model_without_tools,
    model_tool_refused, model_refused, model_answer_filtered, model_empty, model_repeats,
    context_too_long, request_too_large.
    `model` is the model that wrote the answer in place of `instead_of`, which could not
    (`llm.fallbacks`). `calls_not_run` counts the calls of the last reply with calls that were not
    run.
    """

    name: ClassVar[str] = "workflow.result.final"
    shown: ClassVar[frozenset[Display]] = EVERYWHERE
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
    model: str | UnsetType = UNSET
    instead_of: str | UnsetType = UNSET
    calls_not_run: int | UnsetType = UNSET
    subtasks: int = 0
    above: tuple[RunTotal, ...] = ()

    def node(self) -> tuple[str, NodeKind]:
        """The result."""
        return "result", "result"


class ResultCancelled(Event, frozen=True, kw_only=True):
    """The end of the run because a person stopped it. What it used is as in an end of its own.

    `requested_name` is the display name of that person. `reason_code` says the reason to channels
    in other languages: stopped, plan_rejected, recalled, left_chat, interrupted,
    interrupted_by_other or creator; it is "" in events of earlier versions.
    """

    name: ClassVar[str] = "workflow.result.cancelled"
    shown: ClassVar[frozenset[Display]] = EVERYWHERE
    terminal: ClassVar[bool] = True
    reason: str
    requested_by: str
    requested_via: str
    requested_name: str | UnsetType = UNSET
    usage: Usage = Usage()
    duration_ms: int = 0
    cost: float | UnsetType = UNSET
    subtasks: int = 0
    above: tuple[RunTotal, ...] = ()
    reason_code: str = ""

    def node(self) -> tuple[str, NodeKind]:
        """The result."""
        return "result", "result"


class SessionTitled(Event, frozen=True, kw_only=True):
    """A model gave the session of the run a title. It may come after the end of the run."""

    name: ClassVar[str] = "workflow.session.titled"
    shown: ClassVar[frozenset[Display]] = shown_on("page")
    durable: ClassVar[bool] = False
    title: str


class FeedbackGiven(Event, frozen=True, kw_only=True):
    """A person rated the answer of the run, or took that back. It comes after the end of the run.

    `rating` is `up`, `down` or null, `by` the principal. Without rating and comment there is no
    feedback any more. `GET /api/tasks/{task_id}` returns the stored feedback.
    """

    name: ClassVar[str] = "workflow.feedback.given"
    shown: ClassVar[frozenset[Display]] = shown_on()
    told: ClassVar[Mapping[Display, str]] = {"page": "read with the task", "chat": "reactions"}
    durable: ClassVar[bool] = False
    rating: Literal["up", "down"] | None
    comment: str
    by: str


EVENTS: tuple[type[Event], ...] = (
    InputReceived,
    InputWaiting,
    InputEdited,
    InputFilesFetched,
    PeopleMentioned,
    LifecycleUpdated,
    NodeStarted,
    NodeCompleted,
    NodeFailed,
    ModelRetry,
    PartsLeftOut,
    OutputDelta,
    Partial,
    OutputSummary,
    ToolStarted,
    ToolProgress,
    ToolCompleted,
    ArtifactManifest,
    FilesChanged,
    TaskDispatched,
    TaskCompleted,
    SubflowProgress,
    SubflowCompleted,
    PlanUpdated,
    QuestionAsked,
    QuestionAnswered,
    ResultFinal,
    ResultCancelled,
    SessionTitled,
    FeedbackGiven,
    Notice,
    DiagnosticError,
    ToolFiltering,
    ContextCompression,
    ContextSnapshot,
)
"""Every event."""
