"""Sessions, tasks, runs and the profile of the agent in a run."""

from typing import Literal, NamedTuple

import msgspec

from internal.agent.domain.delegation.subtask import ReportMode, Subtask
from internal.agent.domain.errors import RunStopped
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.network import NetworkSetting
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.permissions.targets import rule_names
from internal.agent.domain.plans import PlanReview
from internal.agent.domain.principals import Principal
from internal.agent.domain.usage import RunLimits, Usage

DEFAULT_ROLE = "a careful assistant that does real work with its tools"


class Profile(msgspec.Struct, frozen=True, omit_defaults=True):
    """The role of the agent, stored with each task.

    `description` and `keywords` describe its purpose for people. `prompt` are its instructions.
    `tools` None grants every tool, otherwise only the named ones. `permission_mode` is the widest
    mode of its tasks. `skills` None lets it load every skill. `delegates`: as a subtask it may
    create tasks as well. Other values that are None come from the settings. As JSON it has no
    members with a default value.
    """

    name: str = "default"
    description: str = ""
    role: str = DEFAULT_ROLE
    goal: str = ""
    tone: str = ""
    prompt: str = ""
    tools: tuple[str, ...] | None = None
    skills: tuple[str, ...] | None = None
    model: str | None = None
    permission_mode: Mode | None = None
    network: NetworkSetting | None = None
    plan_review: PlanReview | None = None
    max_iterations: int | None = None
    max_cost: float | None = None
    timeout_seconds: float | None = None
    language: str = ""
    keywords: tuple[str, ...] = ()
    delegates: bool = False

    def grants(self, tool: str) -> bool:
        """Return True if the profile offers this tool to the model."""
        return self.tools is None or not rule_names(tool).isdisjoint(self.tools)

    def narrow_mode(self, mode: Mode) -> Mode:
        """Return a mode, or the widest one of the profile if that is narrower."""
        ceiling = self.permission_mode
        return mode if ceiling is None or not self.exceeds(mode) else ceiling

    def exceeds(self, mode: Mode) -> bool:
        """Return True if a mode is wider than the profile allows."""
        ceiling = self.permission_mode
        return ceiling is not None and mode.exceeds(ceiling)


Channel = str
"""The name of a channel: `cli`, `web`, `mcp`, or one of `internal/channels/registry.py`."""
TaskKind = Literal["chat", "background"]
Status = Literal["queued", "running", "waiting", "completed", "failed", "cancelled"]
StopReason = Literal[
    "final_answer",
    "max_iterations",
    "max_output",
    "timeout",
    "budget_exceeded",
    "interrupted",
    "error",
    "blocked",
    "user_stop",
    "rejected",
    "await_user_input",
    "await_tasks",
]
TaskGroup = Literal["needs_me", "running", "done"]
GateMode = Literal["adaptive", "strict", "advisory", "off"]

ENDED: frozenset[Status] = frozenset({"completed", "failed", "cancelled"})

STATUS_BY_STOP_REASON: dict[StopReason, Status] = {
    "final_answer": "completed",
    "max_iterations": "completed",
    "max_output": "completed",
    "timeout": "failed",
    "budget_exceeded": "failed",
    "interrupted": "failed",
    "error": "failed",
    "blocked": "failed",
    "user_stop": "cancelled",
    "rejected": "cancelled",
    "await_user_input": "waiting",
    "await_tasks": "waiting",
}
"""The status that a stop reason leads to (product.md, the table of statuses)."""


class Attachment(msgspec.Struct, frozen=True):
    """A stored file: content-addressed, `size` in bytes.

    Without `sha256` and `size` it is a file that a chat service still has, at `uri`.
    """

    name: str
    media_type: str
    uri: str
    sha256: str
    size: int

    @property
    def is_stored(self) -> bool:
        """Return True unless the file is still to be fetched."""
        return bool(self.sha256)


class Origin(msgspec.Struct, frozen=True):
    """The source of a task, as its channel needs it to reply.

    `thread_id` is the thread of the message, "" outside threads. `direct`: a chat of two.
    """

    channel: Channel
    principal: str
    app: str = ""
    chat_id: str = ""
    message_id: str = ""
    direct: bool = False
    thread_id: str = ""

    @property
    def chat(self) -> str:
        """The name of the chat across channels, "" without a chat."""
        return chat_name(self.channel, self.app, self.chat_id) if self.chat_id else ""

    @property
    def is_private(self) -> bool:
        """True if nobody else but the owner reads the questions of its tasks."""
        return self.direct or not self.chat_id

    @property
    def rule_scope(self) -> str:
        """The scope of permission rules for tasks from this source."""
        return rule_scope(self.chat, self.principal)


def chat_name(channel: str, app: str, chat_id: str) -> str:
    """Return the name of a chat across channels, such as `lark:cli_a1:oc_b2`."""
    return f"{channel}:{app}:{chat_id}"


def rule_scope(chat: str, principal: str) -> str:
    """Return the scope of permission rules: the chat, else the person."""
    return chat or f"principal:{principal}"


class Share(NamedTuple):
    """The share of the running runs that a run takes: at most `max_running` of the `person`.

    "" is the owner, who has no limit.
    """

    person: str
    max_running: int


NO_SHARE = Share("", 0)


class RunSpec(msgspec.Struct, frozen=True):
    """Configuration of a task. Fixed when the task is submitted and stored with it.

    `people`: people may be asked questions. `approvals`: also for approval of calls; without it, a
    call that needs approval is denied. A question is open for `question_ttl_minutes`. `skills` are
    the names of the skills that it may load; None for all. With `own_folder` it works in a new
    folder, apart from the session's. `delegates`: it may create tasks; `report` determines how
    their ends are reported if it has ended before. `any_model`: its person may choose a model.
    `time_zone` is the person's time zone, "" if unknown. `instructions` come from the program that
    submits the task.
    """

    profile: Profile = Profile()
    policy: Policy = Policy()
    limits: RunLimits = RunLimits()
    gates: GateMode = "adaptive"
    workspace: str = ""
    provider: str = ""
    model: str = ""
    people: bool = False
    approvals: bool = True
    plan_review: PlanReview = "off"
    question_ttl_minutes: int = 1440
    skills: tuple[str, ...] | None = None
    own_folder: bool = False
    delegates: bool = True
    report: ReportMode = "group"
    any_model: bool = False
    time_zone: str = ""
    instructions: str = ""

    def share_of(self, principal: str) -> Share:
        """Return the share that a run of a principal takes."""
        most = self.limits.max_running
        return NO_SHARE if most is None else Share(principal, most)


Rating = Literal["up", "down"]


class Feedback(msgspec.Struct, frozen=True):
    """What a person thinks of the answer to a task. `by` is the principal, `at` the time."""

    rating: Rating | None
    comment: str = ""
    by: str = ""
    at: str = ""


class Task(msgspec.Struct, frozen=True):
    """A unit of work. Tasks of the same `lane` run one after the other.

    `instruction` is the text of the person. `prompt` is the text for the model: the instruction
    with its writer and its references; "" is the instruction alone. A subtask has a parent, and
    starts when the tasks `depends_on` are completed. `reports` are the ended subtasks that the task
    reports to the person.
    """

    id: TaskId
    session_id: SessionId
    kind: TaskKind
    lane: str
    instruction: str
    origin: Origin
    spec: RunSpec
    status: Status
    created: str
    attachments: tuple[Attachment, ...] = ()
    parent_task_id: TaskId | None = None
    stop_reason: StopReason | None = None
    team_id: str = "default"
    prompt: str = ""
    feedback: Feedback | None = None
    depends_on: tuple[TaskId, ...] = ()
    reports: tuple[TaskId, ...] = ()

    @property
    def is_subtask(self) -> bool:
        """Whether a run created it. Its messages do not belong to the conversation."""
        return self.parent_task_id is not None

    @property
    def model_text(self) -> str:
        """The text for the model."""
        return self.prompt or self.instruction


def may_control(principal: Principal, task: Task) -> bool:
    """Return True if a person may steer, interrupt and stop the runs of a task."""
    return principal.may("operate") or principal.id == task.origin.principal


class TaskFilter(msgspec.Struct, frozen=True):
    """Conditions of a task list; None is no condition.

    `group` is a group for people: tasks that wait for a person, others that have not ended, or
    ended ones. `parent` is the task that created them. Without `subtasks`, tasks of runs are left
    out, unless `parent` names their creator.
    """

    session_id: SessionId | None = None
    status: Status | None = None
    group: TaskGroup | None = None
    parent: TaskId | None = None
    subtasks: bool = False


class TaskSummary(NamedTuple):
    """List entry for the newest run of a task.

    `parent` is the beginning of the instruction of the task that created it, "" without one;
    `files` is the number of files that it made. `calls_not_run` counts its last calls if they were
    not run.
    """

    run_id: RunId = RunId("")
    started: str = ""
    ended: str = ""
    subtask: Subtask | None = None
    parent: str = ""
    files: int = 0
    calls_not_run: int = 0


class StopRequest(msgspec.Struct, frozen=True):
    """A request to stop a run, stored with it until the running process acts on it."""

    by: str
    via: str
    reason: str = ""

    def to_error(self) -> RunStopped:
        """Return the exception that ends the run."""
        return RunStopped(self.by, self.via, self.reason)


MAX_CRASHES = 3
"""A run whose process dies this often in the same iteration waits for a person, or fails."""

STEADY_SECONDS = 10.0
"""How long a process must have worked before the last attempt with what others have died of.

So it does not count against a run or a message that processes are killed again and again.
"""


class TaskWait(msgspec.Struct, frozen=True):
    """A call that waits until tasks have ended: all of them, or with `any_of` the first.

    `until` (RFC 3339) is when it goes on regardless. `is_over` once its run was woken: the call
    runs again, and may wait again for what is missing.
    """

    tasks: tuple[TaskId, ...]
    until: str
    any_of: bool = False
    is_over: bool = False


class Run(msgspec.Struct, frozen=True):
    """One execution of a task. `fence` is the epoch in which it may write.

    `attempt` counts the starts since the run last made progress, `crashes` the starts among them
    that ended because the process died. `terminal`: it belongs to the terminal process `owner`, and
    no other process may claim it. `used_seconds` is its running time, without waiting. `subtask` is
    the place of a run that another one created. `started` and `ended` are RFC 3339, "" for not yet.
    """

    id: RunId
    task_id: TaskId
    session_id: SessionId
    lane: str
    status: Status
    fence: int
    last_seq: int
    attempt: int = 0
    crashes: int = 0
    parent_run_id: RunId | None = None
    stop_reason: StopReason | None = None
    stop: StopRequest | None = None
    owner: str = ""
    terminal: bool = False
    usage: Usage = Usage()
    cost: float | None = None
    answer: str = ""
    error: str = ""
    used_seconds: float = 0.0
    subtask: Subtask | None = None
    started: str = ""
    ended: str = ""

    @property
    def place(self) -> str:
        """Its place among subtasks, such as `task 2 · analyst`; "" for a task that none created."""
        return "" if self.subtask is None else self.subtask.path

    @property
    def awaits_tasks(self) -> bool:
        """Whether it waits for tasks that it created, not for a person."""
        return self.status == "waiting" and self.stop_reason == "await_tasks"

    @property
    def is_settled(self) -> bool:
        """Whether it has ended or waits for a person."""
        return self.status not in {"queued", "running"} and not self.awaits_tasks


class ClaimedTask(NamedTuple):
    """A task whose run was claimed for this process in the transaction that stored it.

    The run has no checkpoint, and its stage `prepare` is announced. The first task of a session
    `opens_session`.
    """

    run: Run
    task: Task
    opens_session: bool = False


class Session(msgspec.Struct, frozen=True):
    """A conversation. `owner` is the principal that it belongs to.

    `scope` is the context of the conversation, such as a chat; the newest session of a scope is the
    current one. "" for an independent session. `one_shot` is True while all its tasks were
    submitted by `larkspur -p`. `ended` is the end of its newest ended run, `seen` the last time
    that somebody read it; "" for never. `workspace` is the folder of its newest task,
    `permission_mode` its mode and `plan_review` its selection of reviewed plans; a branch begins
    with the values of its origin. `forked_from` is the session that it was branched from, "" if it
    is not a branch.
    """

    id: SessionId
    title: str
    channel: Channel
    owner: str
    created: str
    updated: str
    scope: str = ""
    pinned: bool = False
    archived: bool = False
    one_shot: bool = False
    ended: str = ""
    seen: str = ""
    workspace: str = ""
    forked_from: str = ""
    permission_mode: Mode | None = None
    plan_review: PlanReview = "off"

    @property
    def unread(self) -> bool:
        """Whether a run ended after the session was last read."""
        return self.ended > self.seen


class SessionSummary(msgspec.Struct, frozen=True):
    """A session in a list, with the state of its newest task.

    `found` is where its text contains the text of a search, else "".
    """

    session: Session
    status: Status | None
    tasks: int
    stop_reason: StopReason | None = None
    calls_not_run: int = 0
    found: str = ""


class SessionListFilter(msgspec.Struct, frozen=True):
    """Which sessions a list contains; None and "" for no condition.

    `text` is searched in titles, tasks and answers.
    """

    text: str = ""
    channel: Channel | None = None
    archived: bool | None = None
    pinned: bool | None = None
    one_shot: bool | None = None


class SessionList(NamedTuple):
    """A page of sessions. The next page starts after the session `next`, None at the end."""

    sessions: list[SessionSummary]
    next: SessionId | None


class SessionMarks(msgspec.Struct, frozen=True):
    """Changes of how a session is listed; None changes nothing. `read` False marks it unread."""

    pinned: bool | None = None
    archived: bool | None = None
    read: bool | None = None
