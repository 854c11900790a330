"""Request and response bodies of the HTTP API, documented in docs/http.md."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from internal.agent.app.events.subscription import parse_cursor
from internal.agent.app.runs.creation import MAX_INSTRUCTION_CHARACTERS, Submitted
from internal.agent.app.runs.visibility import Writing, WrittenAfter
from internal.agent.app.task_options import TaskDefaults, TaskOptions
from internal.agent.app.waiting_messages import WaitingMessage
from internal.agent.domain.ids import MAX_ID_CHARS, RunId, SessionId, TaskId
from internal.agent.domain.messages import Thinking
from internal.agent.domain.own_commands import MAX_OWN_COMMANDS, OwnCommand, split_commands
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.network import NetworkKind, NetworkSetting, network_kind
from internal.agent.domain.plans import PlanReview
from internal.agent.domain.principals import Principal, Right
from internal.agent.domain.react.history import StoredMessage
from internal.agent.domain.tasks import (
    Attachment,
    Channel,
    Feedback,
    Profile,
    Rating,
    Run,
    Session,
    SessionSummary,
    Status,
    StopReason,
    Task,
    TaskGroup,
    TaskKind,
)
from internal.agent.domain.unwritten_messages import UnwrittenKind, unwritten_kind
from internal.agent.domain.usage import RunLimits, Usage
from internal.channels.web.services import HealthStatus

Limit = Annotated[int, Meta(ge=1, le=500)]
Name = Annotated[str, Meta(min_length=1, max_length=255)]
_SPACE = r"[\s\x1c-\x1f\x85]"
"""Blanks that Python strips; `\\s` of a JSON schema omits some of them."""
_INSTRUCTION = {"minLength": 1, "maxLength": MAX_INSTRUCTION_CHARACTERS}
OwnCommands = Annotated[tuple[OwnCommand, ...], Meta(max_length=MAX_OWN_COMMANDS)]
Instruction = Annotated[
    str, Meta(extra_json_schema={**_INSTRUCTION, "not": {"pattern": rf"^{_SPACE}*$"}})
]
"""Checked by the gateway, for every channel and with messages for people."""
_END = r"(?!\n)$"  # $ alone also matches before a line break at the end
_NAME = "[A-Za-z0-9!#$&^_.+-]{1,64}"
MEDIA_TYPE_PATTERN = f"^{_NAME}/{_NAME}{_END}"
MediaType = Annotated[str, Meta(pattern=MEDIA_TYPE_PATTERN)]
Sha256 = Annotated[str, Meta(pattern=f"^[0-9a-f]{{64}}{_END}")]
AttachmentUri = Annotated[str, Meta(pattern=f"^attachment:[0-9a-f]{{64}}{_END}")]
Number = Annotated[str, Meta(pattern=f"^[0-9]{{1,18}}{_END}")]
"""Of the range of a 64-bit integer."""
EventId = Annotated[str, Meta(pattern=f"^[0-9a-z]{{1,16}}-[0-9]{{1,18}}{_END}")]
BeforeEvent = Annotated[str, Meta(pattern=f"^(end|[0-9a-z]{{1,16}}-[0-9]{{1,18}}){_END}")]
_BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
Data = Annotated[bytes, Meta(extra_json_schema={"format": "byte", "pattern": _BASE64})]
"""Decoded by msgspec, which rejects text that does not match the pattern in the schema."""
Title = Annotated[str, Meta(pattern=rf"[^{_SPACE[1:-1]}]", max_length=200)]
Flag = Literal["true", "false"]
Key = Annotated[str, Meta(min_length=1, max_length=200)]
Id = Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS)]
HostText = Annotated[str, Meta(max_length=63)]
MAX_WATCHED_SESSIONS = 100
WatchedSessions = Annotated[str, Meta(pattern=f"^[^,]*(,[^,]*){{0,{MAX_WATCHED_SESSIONS - 1}}}$")]


class RequestModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all request bodies and query strings; unknown fields are rejected."""


class EmptyRequest(RequestModel, frozen=True):
    """An empty body, or no query parameters."""


class CreateAttachmentRequest(RequestModel, frozen=True):
    """A file to store. `data` is base64."""

    name: Name
    media_type: MediaType
    data: Data


class AttachmentInput(RequestModel, frozen=True):
    """An attachment of a task: either `data` in base64 or the `uri` of a stored file."""

    name: Name
    media_type: MediaType
    data: Data | None = None
    uri: AttachmentUri | None = None


class CreateTaskRequest(RequestModel, frozen=True):
    """A task to create; without `session_id` in a new session.

    `plan_review` overrides which plans need approval. A session of `one_shot` tasks alone is one
    that lists may leave out. `commands` are those that the person ran before: the model reads them
    behind the task, people see each as a row.
    """

    task: Instruction
    session_id: Id | None = None
    profile: Name | None = None
    attachments: Annotated[tuple[AttachmentInput, ...], Meta(max_length=50)] = ()
    plan_review: PlanReview | None = None
    idempotency_key: Key | None = None
    options: TaskOptions = TaskOptions()
    one_shot: bool = False
    commands: OwnCommands = ()


MAX_WAIT_SECONDS = 300


class CreateTaskQuery(RequestModel, frozen=True):
    """For how many seconds the response waits for the end of the run, or for a question."""

    wait: Annotated[int, Meta(ge=0, le=MAX_WAIT_SECONDS)] = 0


def read_writing(seen: str | None) -> Writing:
    """Return when a text was written, by the newest event that was shown then.

    Raises:
        InvalidRequest: `seen` is not the id of an event.
    """
    return None if seen is None else WrittenAfter(parse_cursor(seen))


class SteerRequest(RequestModel, frozen=True):
    """A message for the active run.

    `seen` is the id of the newest event that was shown when it was written, null for now. It does
    not steer a run that began later. `commands` as for a task.
    """

    text: Instruction
    idempotency_key: Key | None = None
    seen: EventId | None = None
    commands: OwnCommands = ()


class StopTaskRequest(RequestModel, frozen=True):
    """A stop. The body may be omitted."""

    idempotency_key: Key | None = None


class FeedbackRequest(RequestModel, frozen=True):
    """What a person thinks of an answer. Without rating and comment the feedback is removed."""

    rating: Rating | None
    comment: Annotated[str, Meta(max_length=2_000)] = ""


class CreateSessionRequest(RequestModel, frozen=True):
    """A session to create."""

    title: Title | None = None


class ForkSessionRequest(RequestModel, frozen=True):
    """Where to branch: before a run of the session or, with `after`, after it; else at the end."""

    run_id: Id | None = None
    after: bool = False
    title: Title | None = None


class MoveSessionRequest(RequestModel, frozen=True):
    """The host that executes the next tasks of a session; "" for any."""

    host: HostText = ""


class MovedSessionView(msgspec.Struct, frozen=True):
    """The host on which the files of a moved session stay, and when its archive was saved.

    Both are "" if there is none. `saved` is RFC 3339.
    """

    previous: str
    saved: str


class UpdateSessionRequest(RequestModel, frozen=True):
    """Changes of a session; what is omitted stays. `read` false marks it as unread."""

    title: Title | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET
    archived: bool | UnsetType = UNSET
    read: bool | UnsetType = UNSET


class SessionsQuery(RequestModel, frozen=True):
    """Filters and page of a list of sessions. `q` is searched in titles, tasks and answers.

    `cursor` is `next` of the previous page; a page of a search may be short and have a next one.
    """

    q: Annotated[str, Meta(pattern=r"\S", max_length=200)] | UnsetType = UNSET
    channel: Channel | UnsetType = UNSET
    archived: Flag | UnsetType = UNSET
    pinned: Flag | UnsetType = UNSET
    one_shots: Flag | UnsetType = UNSET
    limit: Limit = 50
    cursor: Id | UnsetType = UNSET


class TasksQuery(RequestModel, frozen=True):
    """Filters and page of a list of tasks. `cursor` is `next` of the previous page.

    `group` contains tasks that wait for a person, others that have not ended, or ended ones.
    Subtasks are left out unless `subtasks` is true or `parent` is the task that created them.
    """

    session_id: Id | UnsetType = UNSET
    status: Status | UnsetType = UNSET
    group: TaskGroup | UnsetType = UNSET
    parent: Id | UnsetType = UNSET
    subtasks: Flag | UnsetType = UNSET
    limit: Limit = 50
    cursor: Id | UnsetType = UNSET


class PageQuery(RequestModel, frozen=True):
    """A page of a list. `cursor` is `next` of the previous page."""

    limit: Limit = 50
    cursor: Id | UnsetType = UNSET


class MessagesQuery(RequestModel, frozen=True):
    """A page of messages. `cursor` is `next` of the previous page."""

    limit: Limit = 50
    cursor: Number | UnsetType = UNSET


class EventsQuery(RequestModel, frozen=True):
    """Events after the ID `after` or before the ID `before`, of the comma-separated `types`.

    Before `end` are the newest events.
    """

    after: EventId | UnsetType = UNSET
    before: BeforeEvent | UnsetType = UNSET
    limit: Limit = 500
    types: str | UnsetType = UNSET


class StreamQuery(RequestModel, frozen=True):
    """The sessions of a stream: `session_id`, or `sessions` separated by commas, or `*`.

    `unnamed` sends events without an `event` line, which browsers hand to `onmessage`.
    """

    session_id: Id | UnsetType = UNSET
    sessions: WatchedSessions | UnsetType = UNSET
    replay: Literal["session", "full", "none"] = "session"
    after: EventId | UnsetType = UNSET
    debug: Literal["0", "1", "false", "true"] = "false"
    unnamed: Literal["0", "1", "false", "true"] = "false"


class RunView(msgspec.Struct, frozen=True):
    """The newest run of a task. `usage` and `cost` include all subtasks below it.

    `cost` is in US dollars, as far as prices are known.
    """

    run_id: RunId
    status: Status
    stop_reason: StopReason | None
    attempt: int
    answer: str
    usage: Usage
    cost: float | None
    error: str


class TaskView(msgspec.Struct, frozen=True):
    """A task. `feedback` is what a person thinks of its answer, null for nothing."""

    task_id: TaskId
    session_id: SessionId
    kind: TaskKind
    task: str
    channel: Channel
    profile: str
    model: str
    status: Status
    stop_reason: StopReason | None
    created: str
    attachments: tuple[Attachment, ...]
    feedback: Feedback | None


class CreatedTask(Submitted, frozen=True):
    """A task that was created; with `wait`, also its run at the time of the response."""

    run: RunView | UnsetType = UNSET


class StopView(msgspec.Struct, frozen=True):
    """The status after a stop: `running` ends within 2 s, `cancelled` has ended."""

    task_id: TaskId
    status: Status


class SessionView(msgspec.Struct, frozen=True):
    """A session. `workspace` is the folder of its newest task, "" for a folder of its own.

    `permission_mode` is the mode of its newest task, null without one, and `plan_review` which of
    its plans were reviewed. `forked_from` is the session that it was branched from, "" for none.
    """

    session_id: SessionId
    title: str
    channel: Channel
    created: str
    updated: str
    pinned: bool
    archived: bool
    unread: bool
    one_shot: bool
    workspace: str
    forked_from: str
    permission_mode: Mode | None
    plan_review: PlanReview


class SessionListItem(SessionView, frozen=True):
    """A session in a list, with the state of its newest task and its number of tasks.

    `calls_not_run` counts the last calls of that task if they were not run. `found` is the text
    around what a search found, "" without a search.
    """

    status: Status | None
    tasks: int
    stop_reason: StopReason | None
    calls_not_run: int
    found: str


class SessionsPage(msgspec.Struct, frozen=True):
    """Sessions, pinned ones first, then by activity. `next` is null on the last page."""

    sessions: list[SessionListItem]
    next: str | None


class MessageView(msgspec.Struct, frozen=True):
    """A message of a session without the model's thinking. Each part has a `type`.

    `unwritten` says why nobody wrote a message of the user: a person resumed a task, or tasks in
    the background are reported to the model.
    """

    number: int
    run_id: RunId
    role: Literal["user", "assistant"]
    created: str
    parts: list[dict[str, Any]]
    unwritten: UnwrittenKind


class MessagesPage(msgspec.Struct, frozen=True):
    """Messages, oldest first. `next` is the cursor of older ones, null on the first page.

    `waiting` are the messages that no model has read: they steer a run or start the next task, or
    were given back by a run that was stopped or failed. They are on every page.
    """

    messages: list[MessageView]
    next: str | None
    waiting: list[WaitingMessage]


class EditWaitingRequest(RequestModel, frozen=True):
    """The new text of a message that waits."""

    text: Instruction


class EventItem(msgspec.Struct, frozen=True):
    """A stored event with its ID; the envelope is the same as on the stream."""

    id: str
    event: msgspec.Raw


class EventsPage(msgspec.Struct, frozen=True):
    """Events, oldest first. `head` and `earliest` are IDs.

    `next` is the `after` of the next page, null on the last one. `previous` is the `before` of the
    page before a page that was asked for with `before`, null on the first one.
    """

    events: list[EventItem]
    next: str | None
    previous: str | None
    head: str
    earliest: str


class ProfileView(msgspec.Struct, frozen=True):
    """A profile. `tools` is null if all tools are available; other nulls are left to the settings.

    `permission_mode` is the widest mode of its tasks. `delegates`: its subtasks may create tasks.
    """

    name: str
    description: str
    role: str
    goal: str
    tone: str
    instructions: str
    tools: tuple[str, ...] | None
    skills: tuple[str, ...] | None
    model: str | None
    permission_mode: Mode | None
    network: NetworkSetting | None
    plan_review: PlanReview | None
    max_iterations: int | None
    max_cost: float | None
    timeout_seconds: float | None
    language: str
    keywords: tuple[str, ...]
    delegates: bool


class ProfileProblemView(msgspec.Struct, frozen=True):
    """A profile, and why it cannot be used or what may be wrong with it."""

    name: str
    problem: str


class ProfilesView(msgspec.Struct, frozen=True):
    """All profiles, the one used by default, and the limits of a run.

    `problems` are those of profiles that cannot be used, `warnings` those of others. Both are empty
    for everybody but the owner.
    """

    profiles: list[ProfileView]
    default: str
    limits: RunLimits
    problems: list[ProfileProblemView]
    warnings: list[ProfileProblemView]


class MeView(msgspec.Struct, frozen=True):
    """The authenticated principal, and the default provider, model and permission mode.

    `isolated`: commands run in a sandbox; `network` is what they reach there without approval.
    `is_priced`: the price of the model is known; without it no limit in US dollars applies.
    """

    id: str
    name: str
    roles: list[Right]
    provider: str
    model: str
    permission_mode: Mode
    isolated: bool
    network: NetworkKind
    is_priced: bool


class HealthSummary(msgspec.Struct, frozen=True):
    """The health that unauthenticated clients see."""

    status: HealthStatus


def profiles_view(principal: Principal, defaults: TaskDefaults) -> ProfilesView:
    """Return the view of the profiles."""
    is_owner = principal.may("owner")
    problems = defaults.profile_problems() if is_owner else {}
    warnings = defaults.profile_warnings() if is_owner else {}
    return ProfilesView(
        [_profile_view(one) for _, one in sorted(defaults.profiles.items())],
        defaults.profile,
        defaults.limits,
        [ProfileProblemView(name, problem) for name, problem in sorted(problems.items())],
        [ProfileProblemView(name, warning) for name, warning in sorted(warnings.items())],
    )


def _profile_view(profile: Profile) -> ProfileView:
    fields = msgspec.structs.asdict(profile)
    return ProfileView(instructions=fields.pop("prompt"), **fields)


def me_view(principal: Principal, defaults: TaskDefaults) -> MeView:
    """Return the view of a principal with the defaults of tasks."""
    return MeView(
        principal.id,
        principal.name,
        sorted(principal.roles),
        defaults.provider,
        defaults.model,
        defaults.policy.mode,
        defaults.isolated,
        network_kind(defaults.policy.allow),
        defaults.is_priced,
    )


def task_view(task: Task) -> TaskView:
    """Return the view of a task in lists."""
    return TaskView(**task_fields(task))


def run_view(run: Run) -> RunView:
    """Return the view of a run."""
    return RunView(
        run.id,
        run.status,
        run.stop_reason,
        run.attempt,
        run.answer,
        run.usage,
        run.cost,
        run.error,
    )


def task_fields(task: Task) -> dict[str, Any]:
    """Return the fields of the view of a task."""
    spec = task.spec
    return {
        "task_id": task.id,
        "session_id": task.session_id,
        "kind": task.kind,
        "task": task.instruction,
        "channel": task.origin.channel,
        "profile": spec.profile.name,
        "model": spec.model,
        "status": task.status,
        "stop_reason": task.stop_reason,
        "created": task.created,
        "attachments": tuple(each for each in task.attachments if each.is_stored),
        "feedback": task.feedback,
    }


def session_view(session: Session) -> SessionView:
    """Return the view of a session."""
    return SessionView(*_session_values(session))


def session_list_item(summary: SessionSummary) -> SessionListItem:
    """Return the view of a session in lists."""
    of_newest_task = (summary.status, summary.tasks, summary.stop_reason, summary.calls_not_run)
    values = (*_session_values(summary.session), *of_newest_task, summary.found)
    return SessionListItem(*values)


def _session_values(session: Session) -> tuple[Any, ...]:
    """Return the values of the fields of `SessionView`."""
    return (
        session.id,
        session.title,
        session.channel,
        session.created,
        session.updated,
        session.pinned,
        session.archived,
        session.unread,
        session.one_shot,
        session.workspace,
        session.forked_from,
        session.permission_mode,
        session.plan_review,
    )


def message_view(row: StoredMessage) -> MessageView:
    """Return the view of a message, without thinking and provider-specific parts.

    Commands that a person ran before it are separate parts.
    """
    message = row.message
    parts = [part for part in message.parts if not isinstance(part, Thinking)]
    content, ran = msgspec.to_builtins(parts), []
    for part in content:
        part.pop("opaque", None)
        part.pop("wire_id", None)
        if message.role == "user" and part["type"] == "text":
            part["text"], commands = split_commands(part["text"])
            ran += [{"type": "command", **msgspec.to_builtins(each)} for each in commands]
    content = [*content, *ran]
    unwritten = unwritten_kind(message)
    return MessageView(row.number, row.run_id, message.role, row.created, content, unwritten)
