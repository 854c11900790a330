"""Records of the gateway's HTTP API as the terminal reads them. Standard library only."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from internal.channels.cli.input_files import InputFile
from internal.i18n.runs import RunMessages
from internal.normal_forms.time_zones import format_minute

UsageKey = Literal["day", "session", "model"]
GrantedRole = Literal["talk", "operate", "owner"]


LOCAL_PRINCIPAL = "local"
"""The principal of the terminal: the owner, who is "you"."""


def describe_state(status: str, stop_reason: str | None, calls_not_run: int) -> str:
    """Return the state of a task in a list: the exception to its status, or its status."""
    if exception := RunMessages("en").exception(status, stop_reason, calls_not_run):
        return exception
    return f"{status} ({stop_reason})" if stop_reason in {"await_tasks", "blocked"} else status


class RunCommand(NamedTuple):
    """A command that the person ran, the end of its output, and its exit code."""

    command: str
    output: str
    exit_code: int


class TaskRequest(NamedTuple):
    """A task to submit. `options` are the given options of `POST /api/tasks`."""

    task: str
    options: Mapping[str, Any]
    session_id: str | None = None
    profile: str | None = None
    files: Sequence[InputFile] = ()
    one_shot: bool = False
    commands: Sequence[RunCommand] = ()


class AgentDefaults(NamedTuple):
    """Default options of a task. `max_cost` is in US dollars.

    `isolated`: commands run in a sandbox; `network` is their access there: off, registries, hosts
    or open. `is_priced`: the price of the model is known, so that `max_cost` applies; otherwise
    `max_tokens` does.
    """

    model: str
    profile: str
    profiles: Sequence[str]
    offline: bool
    max_iterations: int
    max_cost: float | None
    timeout_seconds: float
    mode: str
    isolated: bool
    network: str
    max_tokens: int | None = None
    is_priced: bool = True


class BackgroundCommandItem(NamedTuple):
    """A background command of a session. `ended` is RFC 3339, None while it runs."""

    command_id: str
    command: str
    ended: str | None
    exit_code: int | None
    address: str


class BackgroundOutput(NamedTuple):
    """The last output of a background command; `end` describes its end, "" while it runs."""

    text: str
    missing_bytes: int
    end: str


class SessionMove(NamedTuple):
    """A session that was moved: the host where its files stay, and when its archive was saved.

    Both are "" if there is none. `saved` is RFC 3339.
    """

    previous: str
    saved: str


class SessionItem(NamedTuple):
    """A session in a list. `updated` is RFC 3339."""

    session_id: str
    title: str
    channel: str
    updated: str
    status: str | None
    tasks: int
    stop_reason: str | None
    calls_not_run: int

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns of a text listing."""
        when = format_minute(self.updated)
        state = describe_state(self.status or "", self.stop_reason, self.calls_not_run)
        return self.session_id, when, self.channel, state, self.title


class TaskItem(NamedTuple):
    """A task in a list. `created` is RFC 3339."""

    task_id: str
    session_id: str
    task: str
    channel: str
    model: str
    status: str
    stop_reason: str | None
    created: str
    calls_not_run: int

    @property
    def state(self) -> str:
        """Its status, or the exception to it."""
        return describe_state(self.status, self.stop_reason, self.calls_not_run)

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns of a text listing."""
        return self.task_id, format_minute(self.created), self.channel, self.state, self.task


class AppliedFiles(NamedTuple):
    """The folder in which files were changed, and their paths in it."""

    folder: str
    paths: tuple[str, ...]


class TaskState(NamedTuple):
    """A task with its newest run."""

    item: TaskItem
    profile: str
    run_id: str
    answer: str
    error: str


class ListedSubtask(NamedTuple):
    """A task that a run created. Times are RFC 3339; `cost` is in US dollars, if known."""

    task_id: str
    parent_task_id: str
    path: str
    status: str
    stop_reason: str | None
    task: str
    cost: float | None
    started_at: str | None
    completed_at: str | None
    calls_not_run: int

    @property
    def state(self) -> str:
        """Its status, or the exception to it."""
        return describe_state(self.status, self.stop_reason, self.calls_not_run)

    @property
    def number(self) -> int:
        """Its place among the subtasks of the outermost task, the one in `path`."""
        return int(self.path.split()[1])


class ListedTaskTree(NamedTuple):
    """A task and all subtasks below it. `cost` is that of all together, in US dollars."""

    item: TaskItem
    started_at: str | None
    completed_at: str | None
    cost: float
    subtasks: Sequence[ListedSubtask]


class WaitingItem(NamedTuple):
    """A message that no model has read: it waits, or was given back by the run of `task_id`."""

    number: int
    is_given_back: bool
    task_id: str
    text: str


class TranscriptMessage(NamedTuple):
    """A message of a session by `user` or `assistant`, without tool calls.

    `unwritten` is `resumed` or `report` for a message of the user that nobody wrote, else "".
    """

    role: str
    text: str
    created: str
    unwritten: str = ""


class UsageItem(NamedTuple):
    """Tokens and cost of one day, session or model. `cost` is in US dollars, None if unknown."""

    key: str
    input_tokens: int
    output_tokens: int
    cost: float | None


class QuestionItem(NamedTuple):
    """A question in a list. `asked` and `expires` are RFC 3339.

    `view` is the whole record as `GET /api/questions/{id}` returns it.
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
    def cells(self) -> tuple[str, ...]:
        """The columns of a text listing: the calls to approve, or else the title."""
        what = "; ".join(str(call["what"]) for call in self.view["calls"]) or self.title
        when = format_minute(self.asked)
        return self.question_id, when, self.channel, self.status, self.kind, what


class IssuedCode(NamedTuple):
    """A pairing code. It grants its role once, until it expires (RFC 3339)."""

    code: str
    expires: str


class PersonItem(NamedTuple):
    """A person with a granted role. `created` is RFC 3339."""

    principal: str
    name: str
    role: str
    via: str
    created: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns of a text listing."""
        return self.role, format_minute(self.created), self.via, self.name, self.principal


class RuleItem(NamedTuple):
    """A permission rule written by an answer, and the `place` where it applies."""

    number: int
    place: str
    rule: str
    principal: str
    via: str
    question_id: str
    created: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns of a text listing."""
        return str(self.number), format_minute(self.created), f"allow {self.rule}", self.place


class DeadLetterItem(NamedTuple):
    """A message or run that was given up. `given_up_at` is RFC 3339; see `GET /api/dead-letters`.

    `about` is the person's message, `text` the unsent text, "" if it is a question.
    """

    id: str
    kind: str
    channel: str
    chat_id: str
    about: str
    reason: str
    attempts: int
    given_up_at: str
    principal: str
    text: str
    run_id: str
    question_id: str
    may_have_been_sent: bool

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns of a text listing, without the reason, which is long."""
        outcome = {"incoming": "not processed", "outgoing": "not sent"}.get(self.kind, "failed")
        if self.may_have_been_sent:
            outcome = "may have been sent"
        place = self.chat_id or self.channel
        return self.id, format_minute(self.given_up_at), place, outcome, self.about or self.text


class RatedTaskItem(NamedTuple):
    """Feedback on the answer of a task. `by` is the principal, `at` RFC 3339."""

    task_id: str
    session_id: str
    instruction: str
    rating: str | None
    comment: str
    by: str
    at: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns of a text listing."""
        when, rating = format_minute(self.at), self.rating or "-"
        return when, rating, self.task_id, self.by, self.comment, self.instruction


class AuditItem(NamedTuple):
    """An audit entry: an action of a person on a target. `at` is RFC 3339."""

    at: str
    principal: str
    via: str
    action: str
    target: str
    detail: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns of a text listing."""
        when = format_minute(self.at)
        return when, self.action, self.principal, self.via, self.target, self.detail


class ArtifactItem(NamedTuple):
    """A file that a run made. `created` is RFC 3339."""

    artifact_id: str
    session_id: str
    name: str
    version: int
    type: str
    media_type: str
    size: int
    sha256: str
    caption: str
    created: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns of a text listing."""
        when, size = format_minute(self.created), format_size(self.size)
        return self.artifact_id, when, self.type, size, self.name


class ChangedFileItem(NamedTuple):
    """A file of the workspace that a run changed. `added` and `removed` are lines, if known."""

    change_id: str
    path: str
    kind: str
    added: int | None
    removed: int | None
    is_undone: bool


class UnusedFilesCount(NamedTuple):
    """The number of unused stored files, and their size in bytes."""

    files: int
    size: int


class StreamRow(NamedTuple):
    """An event envelope as JSON, with its wire id or "" for an event that is not stored."""

    id: str
    envelope: bytes


class StreamBatch(NamedTuple):
    """Events of a session that arrived together, in order.

    `is_connected` is False while the gateway cannot be reached. `reset` means that the event log
    was replaced: read the position again with `GatewayClient.head`.
    """

    rows: Sequence[StreamRow] = ()
    is_connected: bool = True
    reset: bool = False

    @property
    def envelopes(self) -> list[bytes]:
        """The envelopes as JSON."""
        return [row.envelope for row in self.rows]


def age(instant: str, now: datetime) -> tuple[str, int]:
    """Return how long ago an RFC 3339 instant was, as a unit and a number of it."""
    seconds = max((now - datetime.fromisoformat(instant)).total_seconds(), 0)
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= length:
            return unit, int(seconds // length)
    return "now", 0


def format_size(count: int) -> str:
    """Return a number of bytes in a readable unit, as the other channels show it."""
    if count < _KIB:
        return f"{count} bytes"
    if count < _KIB * _KIB:
        return f"{count / _KIB:.1f} KB"
    return f"{count / _KIB / _KIB:.1f} MB"


_KIB = 1024
