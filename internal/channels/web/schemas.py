"""The shapes of the HTTP API: what clients send and what they are answered. docs/http.md."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from internal.agent.app.task_options import TaskOptions
from internal.agent.domain.ids import MAX_ID_CHARS, RunId, SessionId, TaskId
from internal.agent.domain.plans import PlanReview
from internal.agent.domain.principals import Principal, Right
from internal.agent.domain.tasks import (
    Attachment,
    Channel,
    Status,
    StopReason,
    TaskKind,
)
from internal.agent.domain.usage import Usage

Limit = Annotated[int, Meta(ge=1, le=500)]
Name = Annotated[str, Meta(min_length=1, max_length=255)]
MediaType = Annotated[str, Meta(pattern=r"^[A-Za-z0-9!#$&^_.+-]{1,64}/[A-Za-z0-9!#$&^_.+-]{1,64}$")]
Title = Annotated[str, Meta(min_length=1, max_length=200)]
Key = Annotated[str, Meta(min_length=1, max_length=200)]
Id = Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS)]


class Given(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a client sends: a field that is not named here is refused."""


class Nothing(Given, frozen=True):
    """No body, or no parameters."""


class GivenFile(Given, frozen=True):
    """A file to keep. `data` is base64."""

    name: Name
    media_type: MediaType
    data: bytes


class GivenAttachment(Given, frozen=True):
    """A file of a task: its `data` in base64, or the `uri` under which it is kept already."""

    name: Name
    media_type: MediaType
    data: bytes | None = None
    uri: str | None = None


class NewTask(Given, frozen=True):
    """A task; without `session_id` it opens a session.

    `plan_review` says which plans wait for a yes; without it the settings do.
    """

    task: str
    session_id: Id | None = None
    profile: Name | None = None
    attachments: Annotated[tuple[GivenAttachment, ...], Meta(max_length=50)] = ()
    plan_review: PlanReview | None = None
    idempotency_key: Key | None = None
    options: TaskOptions = TaskOptions()


class Words(Given, frozen=True):
    """Words for the run at work."""

    text: str


class NewSession(Given, frozen=True):
    """A session to begin."""

    title: Title | None = None


class SessionChange(Given, frozen=True):
    """What is to change of a session."""

    title: Title


class TasksQuery(Given, frozen=True):
    """Which tasks. `cursor` is `next` of the page before."""

    session_id: Id | None = None
    status: Status | None = None
    limit: Limit = 50
    cursor: Id | None = None


class PageQuery(Given, frozen=True):
    """Which page. `cursor` is `next` of the page before."""

    limit: Limit = 50
    cursor: Id | None = None


class EventsQuery(Given, frozen=True):
    """Which events: those behind the wire id `after`, of the `types` named with commas between."""

    after: str | None = None
    limit: Limit = 500
    types: str | None = None


class StreamQuery(Given, frozen=True):
    """What a stream shows: one session, or several with commas between, or `*`."""

    session_id: Id | None = None
    sessions: str | None = None
    replay: Literal["session", "full", "none"] = "session"
    after: str | None = None
    debug: bool = False


class RunView(msgspec.Struct, frozen=True):
    """A task's newest run. `cost` in US dollars when known."""

    run_id: RunId
    status: Status
    stop_reason: StopReason | None
    attempt: int
    answer: str
    usage: Usage
    cost: float | None
    error: str


class TaskView(msgspec.Struct, frozen=True):
    """A task."""

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


class TaskWithRun(TaskView, frozen=True):
    """A task and how far it is."""

    run: RunView


class TasksPage(msgspec.Struct, frozen=True):
    """Tasks, newest first. `next` is None at the end."""

    tasks: list[TaskView]
    next: str | None


class StopView(msgspec.Struct, frozen=True):
    """What became of a stop: `running` will end within 2 s, `cancelled` has ended."""

    task_id: TaskId
    status: Status


class SessionView(msgspec.Struct, frozen=True):
    """A session."""

    session_id: SessionId
    title: str
    channel: Channel
    created: str
    updated: str


class SessionRow(SessionView, frozen=True):
    """A session in a list: the status of its newest task, and how many it has."""

    status: Status | None
    tasks: int


class SessionsPage(msgspec.Struct, frozen=True):
    """Sessions, last active first. `next` is None at the end."""

    sessions: list[SessionRow]
    next: str | None


class MessageView(msgspec.Struct, frozen=True):
    """A message of a conversation, without the model's thinking. `parts` carry their `type`."""

    number: int
    run_id: RunId
    role: Literal["user", "assistant"]
    created: str
    parts: list[dict[str, Any]]


class MessagesPage(msgspec.Struct, frozen=True):
    """Messages, oldest first. `next` leads to older ones, None at the beginning."""

    messages: list[MessageView]
    next: str | None


class EventRow(msgspec.Struct, frozen=True):
    """A durable event under its wire id, the same envelope as on the stream."""

    id: str
    event: msgspec.Raw


class EventsPage(msgspec.Struct, frozen=True):
    """Events, oldest first. `next` is None at the end of the log; `head` and `earliest` are ids."""

    events: list[EventRow]
    next: str | None
    head: str
    earliest: str


class ProfileView(msgspec.Struct, frozen=True):
    """Who the agent can be. `tools` None: all of them."""

    name: str
    role: str
    goal: str
    tone: str
    tools: tuple[str, ...] | None
    model: str | None


class ProfilesView(msgspec.Struct, frozen=True):
    """The profiles, and which one a task gets that names none."""

    profiles: list[ProfileView]
    default: str


class MeView(msgspec.Struct, frozen=True):
    """Who asks, and which model answers unless a task names another."""

    id: str
    name: str
    roles: list[Right]
    provider: str
    model: str


class BriefHealth(msgspec.Struct, frozen=True):
    """All that somebody without a credential is told."""

    status: Literal["ok", "failing"]


def view_of_principal(principal: Principal, provider: str, model: str) -> MeView:
    """Return who asks, and the model that answers."""
    return MeView(principal.id, principal.name, sorted(principal.roles), provider, model)
