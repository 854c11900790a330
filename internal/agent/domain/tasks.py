"""Sessions, tasks and runs: the durable facts of what is to be done, by whom, and how far it is."""

from typing import Literal

import msgspec

from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.plans import PlanReview
from internal.agent.domain.profiles import Profile
from internal.agent.domain.usage import RunLimits, Usage

Channel = str
"""The name of a channel: `cli`, `web`, or one of `internal/channels/registry.py`."""
TaskKind = Literal["chat", "background"]
Status = Literal["queued", "running", "waiting", "completed", "failed", "cancelled"]
StopReason = Literal[
    "final_answer",
    "max_iterations",
    "timeout",
    "budget_exceeded",
    "interrupted",
    "error",
    "user_stop",
    "rejected",
    "await_user_input",
]
GateMode = Literal["strict", "advisory", "off"]

ENDED: frozenset[Status] = frozenset({"completed", "failed", "cancelled"})

STATUS_BY_STOP_REASON: dict[StopReason, Status] = {
    "final_answer": "completed",
    "max_iterations": "completed",
    "timeout": "failed",
    "budget_exceeded": "failed",
    "interrupted": "failed",
    "error": "failed",
    "user_stop": "cancelled",
    "rejected": "cancelled",
    "await_user_input": "waiting",
}
"""The status that a stop reason leads to (product.md, the table of statuses)."""


class Attachment(msgspec.Struct, frozen=True):
    """A stored file: content-addressed, `size` in bytes."""

    name: str
    media_type: str
    uri: str
    sha256: str
    size: int


class Origin(msgspec.Struct, frozen=True):
    """Where a task came from: what a channel needs to answer it. `direct`: a chat of two."""

    channel: Channel
    principal: str
    app: str = ""
    chat_id: str = ""
    message_id: str = ""
    direct: bool = False

    @property
    def chat(self) -> str:
        """The chat's name over all channels, "" without a chat."""
        return chat_name(self.channel, self.app, self.chat_id) if self.chat_id else ""

    @property
    def grants(self) -> str:
        """The name under which rules are kept that people wrote for such tasks."""
        return grant_scope(self.chat, self.principal)


def chat_name(channel: str, app: str, chat_id: str) -> str:
    """Return the name of a chat over all channels, such as `lark:cli_a1:oc_b2`."""
    return f"{channel}:{app}:{chat_id}"


def grant_scope(chat: str, principal: str) -> str:
    """Return the name under which rules are kept: of the chat, else of who gave the task."""
    return chat or f"principal:{principal}"


class RunSpec(msgspec.Struct, frozen=True):
    """How a task is to be done: fixed when it is submitted, stored with it by value.

    `people`: questions may be opened to people; `approvals`: also those about calls, which are a no
    without. A question is open for `question_ttl_minutes`.
    """

    profile: Profile = Profile()
    policy: Policy = Policy()
    limits: RunLimits = RunLimits()
    gates: GateMode = "strict"
    workspace: str = ""
    provider: str = ""
    model: str = ""
    people: bool = False
    approvals: bool = True
    plan_review: PlanReview = "off"
    question_ttl_minutes: int = 1440


class Task(msgspec.Struct, frozen=True):
    """A durable unit of work. `lane` names what it may not run beside."""

    id: TaskId
    session_id: SessionId
    kind: TaskKind
    lane: str
    instruction: str
    origin: Origin
    brief: RunSpec
    status: Status
    created: str
    attachments: tuple[Attachment, ...] = ()
    parent_task_id: TaskId | None = None
    stop_reason: StopReason | None = None
    team_id: str = "default"


class StopRequest(msgspec.Struct, frozen=True):
    """Somebody wants the run stopped; kept on its row until the running process honours it."""

    by: str
    via: str
    reason: str = ""


class Run(msgspec.Struct, frozen=True):
    """One pass of the coordinator. `fence` is the epoch under which it may write.

    `terminal`: it belongs to the terminal process `owner`. Nobody else takes it, queued or lost.
    """

    id: RunId
    task_id: TaskId
    session_id: SessionId
    lane: str
    status: Status
    fence: int
    last_seq: int
    attempt: int = 0
    parent_run_id: RunId | None = None
    stop_reason: StopReason | None = None
    stop: StopRequest | None = None
    owner: str = ""
    terminal: bool = False
    usage: Usage = Usage()
    cost: float | None = None
    answer: str = ""
    error: str = ""


class Session(msgspec.Struct, frozen=True):
    """A conversation. `owner` is the principal that it belongs to.

    `scope` is what it is the conversation of, such as a chat: the newest session of a scope is the
    one at hand. "" for a conversation of its own.
    """

    id: SessionId
    title: str
    channel: Channel
    owner: str
    created: str
    updated: str
    scope: str = ""


class SessionSummary(msgspec.Struct, frozen=True):
    """A session as lists show it."""

    session: Session
    status: Status | None
    tasks: int
