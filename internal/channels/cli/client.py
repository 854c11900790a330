"""The host of a terminal: a gateway that runs, or this process. Both behave the same."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from internal.channels.cli.task_request import File, Ids

By = Literal["day", "session", "model"]
Role = Literal["talk", "operate", "owner"]


class GatewayError(Exception):
    """The host refuses, or cannot do it. Its text is a sentence for a person."""


class AgentDefaults(NamedTuple):
    """What a task gets that asks for nothing."""

    model: str
    profile: str
    profiles: Sequence[str]
    offline: bool


class SessionItem(NamedTuple):
    """A session as lists show it. `updated` is RFC 3339."""

    session_id: str
    title: str
    channel: str
    updated: str
    status: str | None
    tasks: int

    @property
    def shown(self) -> tuple[str, ...]:
        """Its columns in a list for people."""
        when, status = _minute(self.updated), self.status or ""
        return self.session_id, when, self.channel, status, self.title


class TaskItem(NamedTuple):
    """A task as lists show it. `created` is RFC 3339."""

    task_id: str
    session_id: str
    task: str
    channel: str
    model: str
    status: str
    stop_reason: str | None
    created: str

    @property
    def shown(self) -> tuple[str, ...]:
        """Its columns in a list for people."""
        when = _minute(self.created)
        return self.task_id, when, self.channel, self.status, self.task


class TaskState(NamedTuple):
    """A task and its newest run."""

    row: TaskItem
    run_id: str
    answer: str
    error: str


class TranscriptMessage(NamedTuple):
    """What was said in a session: by `user` or `assistant`, without tool calls."""

    role: str
    text: str
    created: str


class UsageItem(NamedTuple):
    """What was used under a key: a day, a session or a model. `cost` in US dollars when known."""

    key: str
    input_tokens: int
    output_tokens: int
    cost: float | None


class QuestionItem(NamedTuple):
    """A question as lists show it. `asked` and `expires` are RFC 3339.

    `view` is all of it, as `GET /api/questions/{id}` gives it.
    """

    question_id: str
    run_id: str
    task_id: str
    session_id: str
    channel: str
    kind: str
    title: str
    who: str
    status: str
    asked: str
    expires: str
    view: Mapping[str, Any]

    @property
    def shown(self) -> tuple[str, ...]:
        """Its columns in a list for people: what is asked, or which calls are to be allowed."""
        what = "; ".join(str(call["what"]) for call in self.view["calls"]) or self.title
        return self.question_id, _minute(self.asked), self.channel, self.status, self.kind, what


class IssuedCode(NamedTuple):
    """A code that gives a right once, until it expires (RFC 3339)."""

    code: str
    expires: str


class PersonItem(NamedTuple):
    """A person who was given a right. `created` is RFC 3339."""

    principal: str
    name: str
    role: str
    via: str
    created: str

    @property
    def shown(self) -> tuple[str, ...]:
        """Their columns in a list for people."""
        return self.role, _minute(self.created), self.via, self.name, self.principal


class RuleItem(NamedTuple):
    """A rule that a person wrote by an answer, and the place where it holds."""

    number: int
    place: str
    rule: str
    principal: str
    via: str
    question_id: str
    created: str

    @property
    def shown(self) -> tuple[str, ...]:
        """Its columns in a list for people."""
        return str(self.number), _minute(self.created), f"allow {self.rule}", self.place


class AuditItem(NamedTuple):
    """Who did what to which thing, through what. `at` is RFC 3339."""

    at: str
    principal: str
    via: str
    action: str
    target: str
    detail: str

    @property
    def shown(self) -> tuple[str, ...]:
        """Its columns in a list for people."""
        return _minute(self.at), self.action, self.principal, self.via, self.target, self.detail


class TaskRequest(NamedTuple):
    """A task for the host. `options` are those of `POST /api/tasks`."""

    task: str
    options: Mapping[str, Any]
    session_id: str | None = None
    profile: str | None = None
    files: Sequence[File] = ()


class StreamBatch(NamedTuple):
    """What a stream brings at once: stored and passing envelopes as JSON, in order.

    `known` is false while the host is away; `reset` says that it forgot what was before.
    """

    envelopes: Sequence[bytes] = ()
    is_connected: bool = True
    reset: bool = False


class GatewayClient(Protocol):
    """What does the work. Every method but `watch` raises HostError when it cannot."""

    async def about(self) -> AgentDefaults:
        """Return the model and the profiles."""
        ...

    async def submit(self, wish: TaskRequest) -> Ids:
        """Store a task and have it run."""
        ...

    async def steer(self, task_id: str, text: str) -> bool:
        """Give words to the run at work; False when they became the session's next task."""
        ...

    async def stop(self, task_id: str) -> None:
        """Store the wish that a task ends; one that has ended is no error."""
        ...

    async def head(self, session_id: str) -> str:
        """Return the place behind all that has happened in a session."""
        ...

    def watch(self, session_id: str, after: str) -> AsyncGenerator[StreamBatch]:
        """Yield what happens in a session behind a place, from its beginning for ""."""
        ...

    async def sessions(self, limit: int = 50) -> list[SessionItem]:
        """Return sessions, last active first."""
        ...

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session another title."""
        ...

    async def remove(self, session_id: str) -> None:
        """Delete a session with all that is its."""
        ...

    async def transcript(self, session_id: str) -> list[TranscriptMessage]:
        """Return all that was said in a session, oldest first."""
        ...

    async def tasks(self, session_id: str | None = None, limit: int = 50) -> list[TaskItem]:
        """Return tasks, newest first."""
        ...

    async def task(self, task_id: str) -> TaskState:
        """Return a task and how far it is."""
        ...

    async def costs(self, by: By, session_id: str | None = None) -> list[UsageItem]:
        """Return what was used, the newest or the dearest first."""
        ...

    async def questions(
        self, status: str | None = "open", session_id: str | None = None, limit: int = 50
    ) -> list[QuestionItem]:
        """Return questions, newest first: the open ones, those of another status, or all."""
        ...

    async def question(self, question_id: str) -> QuestionItem:
        """Return a question."""
        ...

    async def answer(self, question_id: str, given: Mapping[str, Any]) -> QuestionItem:
        """Answer a question; the first answer counts. `given` is an answer as JSON."""
        ...

    async def resume(self, task_id: str) -> Ids:
        """Go on where a failed or stopped task ended, as a new task of its session."""
        ...

    async def pair(self, role: Role) -> IssuedCode:
        """Make a code that gives a person of a channel a right, once."""
        ...

    async def people(self) -> list[PersonItem]:
        """Return who was given rights besides those of the settings, oldest first."""
        ...

    async def unpair(self, principal: str) -> None:
        """Take a person's right away."""
        ...

    async def rules(self) -> list[RuleItem]:
        """Return the rules that people wrote by answering, newest first."""
        ...

    async def remove_rule(self, number: int) -> None:
        """Delete a rule; what it allowed asks again."""
        ...

    async def audit_entries(self, limit: int = 50) -> list[AuditItem]:
        """Return who did what, newest first."""
        ...


def _minute(instant: str) -> str:
    return instant[:16].replace("T", " ")
