"""The tools: functions over the gateway, under the rights of the caller."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from internal.agent.app.gateway import Gateway
from internal.agent.app.idempotency import scoped_key
from internal.agent.app.queries import Queries
from internal.agent.app.runs.creation import Submission, Submitted
from internal.agent.app.task_commands import Steered
from internal.agent.app.task_options import TaskDefaults, TaskOptions, build_run_spec
from internal.agent.domain.artifacts import ArtifactFilter
from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.ids import SessionId, TaskId
from internal.agent.domain.principals import Principal
from internal.agent.domain.tasks import Run, SessionListFilter, Task
from internal.agent.domain.text import mark_untrusted, truncate
from internal.channels.mcp.schemas import (
    AskPersonArguments,
    CreateTaskArguments,
    FoundSession,
    FoundSessions,
    ResultFile,
    SearchSessionsArguments,
    TaskMessageArguments,
    TaskOutcome,
    TaskProgress,
    TaskResultArguments,
    TasksProgress,
    TaskStatusArguments,
    ToolArguments,
    WaitingQuestion,
)
from internal.normal_forms.json_schema import schema_components
from internal.normal_forms.optional_fields import without_default_nulls

CHANNEL: Final = "mcp"
"""The channel of tasks that MCP clients submit."""
MAX_ANSWER_CHARACTERS = 50_000
MAX_FILES = 50
PROGRESS_SECONDS = 5.0
"""Interval between progress notifications to a waiting client."""
MAX_OPEN_QUESTIONS = 50

ASK_PROMPT = (
    "A program asks the person a question. Call request_user with the question between the marks"
    " and with its options, word for word. Then answer with what the person said, word for word and"
    " nothing else. Do not answer the question yourself.\n\n"
)

ReportProgress = Callable[[float, float], Awaitable[None]]
"""Receives the seconds that a call has waited, and the seconds that it waits at most."""


async def _report_to_nobody(_seconds: float, _total: float) -> None:
    """Do nothing."""


class McpToolCall(msgspec.Struct, frozen=True):
    """The caller of a tool and the dependencies of the tool.

    Attributes:
        origin: The address of this gateway for the client, such as `http://127.0.0.1:8420`.
    """

    gateway: Gateway
    defaults: TaskDefaults
    principal: Principal
    origin: str
    report_progress: ReportProgress = _report_to_nobody


async def create_task(call: McpToolCall, given: CreateTaskArguments) -> Submitted:
    """Store a task and queue its run."""
    options = TaskOptions(workspace=given.workspace, permission_mode=given.permission_mode)
    submission = Submission(
        given.instruction,
        build_run_spec(call.defaults, options, call.principal, given.profile),
        CHANNEL,
        None if given.session_id is None else SessionId(given.session_id),
        idempotency_key=scoped_key("create_task", given.idempotency_key),
    )
    return await call.gateway.submit(submission, call.principal)


async def task_status(call: McpToolCall, given: TaskStatusArguments) -> TasksProgress:
    """Return the state of tasks.

    Raises:
        NotFound: one of them does not exist or belongs to another person.
    """
    tasks = []
    for task_id in given.task_ids:
        task, run = await call.gateway.queries.task_with_run(TaskId(task_id), call.principal)
        tasks.append(await _progress(call, task, run))
    return TasksProgress(tasks)


async def task_result(call: McpToolCall, given: TaskResultArguments) -> TaskOutcome:
    """Return the state of a task, its answer and its files; wait for its end."""
    queries, left = call.gateway.queries, float(given.wait_seconds)
    task, run = await queries.task_with_run(TaskId(given.task_id), call.principal)
    watched = Submitted(task.id, run.id, task.session_id, run.status)
    while left > 0 and not run.is_settled:
        seconds = min(left, PROGRESS_SECONDS)
        task, run = await call.gateway.wait_for_run(watched, call.principal, seconds)
        left -= seconds
        await call.report_progress(given.wait_seconds - left, given.wait_seconds)
    progress = await _progress(call, task, run)
    return TaskOutcome(
        **msgspec.structs.asdict(progress),
        answer=truncate(run.answer, MAX_ANSWER_CHARACTERS),
        error=run.error,
        files=await _files(queries, call, task),
    )


async def task_message(call: McpToolCall, given: TaskMessageArguments) -> Steered:
    """Steer the active run of a task's session, or create its next task."""
    return await call.gateway.steer_task(
        TaskId(given.task_id),
        given.text,
        call.principal,
        channel=CHANNEL,
        idempotency_key=given.idempotency_key,
    )


async def ask_person(call: McpToolCall, given: AskPersonArguments) -> Submitted:
    """Create a task that only asks; the agent has no tool but the one that asks a person."""
    spec = build_run_spec(call.defaults, TaskOptions(), call.principal)
    options = "".join(f"\n{number}. {text}" for number, text in enumerate(given.options, 1))
    choices = f"\n\nOptions:{options}" if options else ""
    submission = Submission(
        given.question,
        msgspec.structs.replace(
            spec, profile=msgspec.structs.replace(spec.profile, tools=()), gates="off", skills=()
        ),
        CHANNEL,
        idempotency_key=scoped_key("ask_person", given.idempotency_key),
        prompt=ASK_PROMPT + mark_untrusted("MCP client", given.question + choices),
    )
    return await call.gateway.submit(submission, call.principal)


async def search_sessions(call: McpToolCall, given: SearchSessionsArguments) -> FoundSessions:
    """Return the sessions that contain a text."""
    page = await call.gateway.queries.sessions(
        call.principal, SessionListFilter(given.query), limit=given.limit
    )
    return FoundSessions(
        [
            FoundSession(
                one.session.id,
                one.session.title,
                one.session.channel,
                one.session.updated,
                one.status,
                one.found,
            )
            for one in page.sessions
        ]
    )


class McpTool(msgspec.Struct, frozen=True):
    """A tool that clients see. `name` is that of the function."""

    function: Callable[[McpToolCall, Any], Awaitable[msgspec.Struct]]
    arguments: type[ToolArguments]
    result: type[msgspec.Struct]
    reads_only: bool = False

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self.function.__name__

    @property
    def description(self) -> str:
        """Description of the tool for the client's model."""
        return " ".join((self.arguments.__doc__ or "").split())


TOOLS: tuple[McpTool, ...] = (
    McpTool(create_task, CreateTaskArguments, Submitted),
    McpTool(task_status, TaskStatusArguments, TasksProgress, reads_only=True),
    McpTool(task_result, TaskResultArguments, TaskOutcome, reads_only=True),
    McpTool(task_message, TaskMessageArguments, Steered),
    McpTool(ask_person, AskPersonArguments, Submitted),
    McpTool(search_sessions, SearchSessionsArguments, FoundSessions, reads_only=True),
)


def object_schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema of a struct, an object at its root."""
    (_,), parts = schema_components([kind], ref_template="#/$defs/{name}")
    root = parts.pop(kind.__name__)
    schema = {key: value for key, value in root.items() if key not in {"title", "description"}}
    return {**schema, "$defs": parts} if parts else schema


async def call_tool(
    tool: McpTool, arguments: Mapping[str, Any], call: McpToolCall
) -> msgspec.Struct:
    """Check the arguments and call a tool.

    Raises:
        InvalidRequest: the arguments are not valid; the message names one.
        LarkspurError: the tool failed.
    """
    try:
        plain = without_default_nulls(arguments, tool.arguments)
        given = msgspec.convert(plain, tool.arguments)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"Invalid arguments: {error}.") from error
    return await tool.function(call, given)


async def _progress(call: McpToolCall, task: Task, run: Run) -> TaskProgress:
    question = await _open_question(call, task) if run.status == "waiting" else None
    return TaskProgress(task.id, task.session_id, run.id, run.status, run.stop_reason, question)


async def _open_question(call: McpToolCall, task: Task) -> WaitingQuestion | None:
    """Return the open question of a task or its subtasks; None if there is none now."""
    tree = await call.gateway.queries.task_tree(task.id, call.principal)
    tasks = {task.id, *(item.task.id for item in tree.subtasks)}
    found = await call.gateway.queries.questions(
        call.principal, session_id=task.session_id, limit=MAX_OPEN_QUESTIONS
    )
    for record, _ in found:
        if record.task_id in tasks:
            question = record.question
            asks = f"{question.asked_by}: " if question.asked_by else ""
            return WaitingQuestion(
                question.id,
                question.kind,
                asks + question.title,
                truncate(question.body),
                question.options,
                record.expires,
            )
    return None


async def _files(queries: Queries, call: McpToolCall, task: Task) -> list[ResultFile]:
    found = await queries.artifacts(
        call.principal, ArtifactFilter(task_id=task.id), limit=MAX_FILES
    )
    return [
        ResultFile(
            one.id,
            one.name,
            one.media_type,
            one.size,
            f"{call.origin}/api/artifacts/{one.id}/content",
        )
        for one in found
    ]
