"""Arguments and results of the tools. The docstring of the arguments describes the tool."""

from typing import Annotated

import msgspec
from msgspec import Meta

from internal.agent.app.runs.creation import MAX_INSTRUCTION_CHARACTERS
from internal.agent.domain.ids import MAX_ID_CHARS, ArtifactId, QuestionId, RunId, SessionId, TaskId
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.questions import QuestionKind
from internal.agent.domain.tasks import Channel, Status, StopReason

MAX_TASKS = 20
MAX_WAIT_SECONDS = 50
"""Less than the minute after which most clients end a call."""
MAX_FOUND_SESSIONS = 20
MAX_QUESTION_CHARACTERS = 4_000
MAX_OPTIONS = 10

_Id = Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS)]
_TaskId = Annotated[_Id, Meta(description="The task_id that create_task or ask_person returned.")]
_Key = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        description="A call that is repeated with the same key is carried out once.",
    ),
]
_Option = Annotated[str, Meta(min_length=1, max_length=200)]


class ToolArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of the arguments of all tools; unknown ones are rejected."""


class CreateTaskArguments(ToolArguments, frozen=True):
    """Give the agent a task, which it does in the background. Returns the ids at once."""

    instruction: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAX_INSTRUCTION_CHARACTERS,
            description="What the agent should do. It sees nothing else of your conversation.",
        ),
    ]
    profile: (
        Annotated[
            str, Meta(min_length=1, max_length=255, description="A profile other than the default.")
        ]
        | None
    ) = None
    session_id: (
        Annotated[_Id, Meta(description="Continue this session instead of a new one.")] | None
    ) = None
    workspace: (
        Annotated[
            str,
            Meta(
                pattern=r"^/[^\x00]*$",
                max_length=4096,
                description="Absolute path of the folder to work in; without it a new one.",
            ),
        ]
        | None
    ) = None
    permission_mode: (
        Annotated[Mode, Meta(description="What may run without asking a person.")] | None
    ) = None
    idempotency_key: _Key | None = None


class TaskStatusArguments(ToolArguments, frozen=True):
    """Return the status of tasks, and the open question of each that waits for a person."""

    task_ids: Annotated[tuple[_TaskId, ...], Meta(min_length=1, max_length=MAX_TASKS)]


class TaskResultArguments(ToolArguments, frozen=True):
    """Wait until a task has ended or asks a person; return its answer and its files."""

    task_id: _TaskId
    wait_seconds: Annotated[
        int,
        Meta(
            ge=0,
            le=MAX_WAIT_SECONDS,
            description="How long to wait; afterwards the state so far is returned.",
        ),
    ] = 0


class TaskMessageArguments(ToolArguments, frozen=True):
    """Send the agent a message about a running task; after its end it becomes the next task."""

    task_id: _TaskId
    text: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAX_INSTRUCTION_CHARACTERS,
            description="What the agent should know or change.",
        ),
    ]
    idempotency_key: _Key | None = None


class AskPersonArguments(ToolArguments, frozen=True):
    """Ask the person who runs Larkspur, on the page and in the terminal.

    Returns a task at once; once they have answered, its answer in task_result is what they said.
    """

    question: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAX_QUESTION_CHARACTERS,
            description="The question, complete by itself.",
        ),
    ]
    options: Annotated[
        tuple[_Option, ...],
        Meta(max_length=MAX_OPTIONS, description="Answers to choose from; other text is possible."),
    ] = ()
    idempotency_key: _Key | None = None


class SearchSessionsArguments(ToolArguments, frozen=True):
    """Find earlier conversations by a text in their title, tasks or answers."""

    query: Annotated[str, Meta(pattern=r"\S", max_length=200, description="A part of the text.")]
    limit: Annotated[int, Meta(ge=1, le=MAX_FOUND_SESSIONS)] = 10


class WaitingQuestion(msgspec.Struct, frozen=True):
    """A question that only a person can answer; `title` names the subtask that asks, if any.

    `expires` is RFC 3339.
    """

    question_id: QuestionId
    kind: QuestionKind
    title: str
    body: str
    options: tuple[str, ...]
    expires: str


class TaskProgress(msgspec.Struct, frozen=True):
    """The state of a task. `question` is null unless it waits for a person."""

    task_id: TaskId
    session_id: SessionId
    run_id: RunId
    status: Status
    stop_reason: StopReason | None
    question: WaitingQuestion | None


class TasksProgress(msgspec.Struct, frozen=True):
    """The state of several tasks, in the order of the call."""

    tasks: list[TaskProgress]


class ResultFile(msgspec.Struct, frozen=True):
    """A file that a task made, `size` in bytes. The URL needs the same token as this server."""

    artifact_id: ArtifactId
    name: str
    media_type: str
    size: int
    url: str


class TaskOutcome(TaskProgress, frozen=True):
    """The state of a task with its answer, "" if it has none yet, and its newest files.

    `error` says why a task failed, else "".
    """

    answer: str
    error: str
    files: list[ResultFile]


class FoundSession(msgspec.Struct, frozen=True):
    """A session. `found` is the text around what was searched; `updated` is RFC 3339."""

    session_id: SessionId
    title: str
    channel: Channel
    updated: str
    status: Status | None
    found: str


class FoundSessions(msgspec.Struct, frozen=True):
    """Sessions, the last active first."""

    sessions: list[FoundSession]
