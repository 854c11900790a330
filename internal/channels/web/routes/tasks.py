"""Routes for tasks."""

from typing import Any

import msgspec

from internal.agent.app.files.worktree_changes import AppliedChanges
from internal.agent.app.idempotency import scoped_key
from internal.agent.app.queries import TaskListItem, TaskTree
from internal.agent.app.runs.creation import Submission, Submitted
from internal.agent.app.task_commands import Steered
from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.domain.delegation.subtask import Subtask, WorkspaceChoice
from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.own_commands import add_commands
from internal.agent.domain.tasks import Feedback, Run, Status, StopReason, Task, TaskFilter
from internal.agent.domain.usage import Usage
from internal.channels.web.delivery import Delivery, errors_of_created_run
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.routes.artifacts import ArtifactView, artifact_view
from internal.channels.web.routes.attachments import store_attachments
from internal.channels.web.schemas import (
    CreatedTask,
    CreateTaskQuery,
    CreateTaskRequest,
    EmptyRequest,
    FeedbackRequest,
    RunView,
    SteerRequest,
    StopTaskRequest,
    StopView,
    TasksQuery,
    TaskView,
    read_writing,
    run_view,
    task_fields,
    task_view,
)

MAX_PREVIEW_CHARACTERS = 500


class TaskListView(TaskView, frozen=True):
    """A task in a list. `path` is the place of a subtask, such as `task 2 · analyst`, else "".

    `number` and `role` are the parts of the place, 0 and "" for a task that no run created.
    `parent` is the beginning of the instruction of the task that created it, "" for none. `files`
    is the number of files that it made. `cost` is that of the task and all subtasks below it, in US
    dollars, as far as prices are known. `reports` are the ended
    subtasks that it reports to the person; nobody wrote the instruction of such a task.
    `calls_not_run` counts the last calls of its run if they were not run: it is completed without
    them.
    """

    parent_task_id: TaskId | None
    parent: str
    path: str
    reports: tuple[TaskId, ...]
    files: int
    cost: float | None
    started_at: str | None
    completed_at: str | None
    calls_not_run: int
    number: int
    role: str


class TasksPage(msgspec.Struct, frozen=True):
    """Tasks, newest first. `next` is null on the last page."""

    tasks: list[TaskListView]
    next: str | None


class AgentProfileView(msgspec.Struct, frozen=True):
    """The agent of a task."""

    name: str
    role: str
    goal: str
    tone: str


class SubtaskView(msgspec.Struct, frozen=True):
    """A subtask. `number` counts those of the outermost task from 1; `total` is how many they were.

    `path` is what people read, such as `task 2 · analyst`. `instruction` and `result` are the first
    500 characters. `usage` and `cost` are those of the subtask and all below it; the cost is in US
    dollars, as far as prices are known.
    """

    task_id: TaskId
    parent_task_id: TaskId | None
    run_id: RunId
    number: int
    total: int
    role: str
    path: str
    status: Status
    stop_reason: StopReason | None
    instruction: str
    result: str | None
    error: str | None
    cost: float | None
    usage: Usage
    depends_on: tuple[TaskId, ...]
    workspace: WorkspaceChoice
    started_at: str | None
    completed_at: str | None
    created_at: str


class TaskDetails(TaskView, frozen=True):
    """A task with its newest run, all subtasks below it and the files that they made.

    `skill_ids` null is every skill. `artifacts` are the newest versions, oldest first.
    `total_cost` is the known cost of the task and its subtasks in US dollars. `calls_not_run`
    counts the last calls of the run if they were not run: it is completed without them.
    """

    run: RunView
    id: TaskId
    team_id: str
    instruction: str
    agent_profile: AgentProfileView
    skill_ids: tuple[str, ...] | None
    result: str | None
    error: str | None
    started_at: str | None
    completed_at: str | None
    created_at: str
    parent_task_id: TaskId | None
    depends_on: tuple[TaskId, ...]
    children: list[SubtaskView]
    artifacts: list[ArtifactView]
    total_cost: float
    calls_not_run: int


async def create_task(request: ApiRequest[CreateTaskQuery, CreateTaskRequest]) -> CreatedTask:
    """Store a task and queue its run. The task is stored durably before the response.

    With `wait` the response comes when the run has ended or waits for a person, at the latest after
    so many seconds. A client that disconnects meanwhile does not stop the run, unless its header
    `x-larkspur-stop-on-disconnect` is `true`.
    """
    task, services = request.body, request.services
    delivery = Delivery(request)
    submission = Submission(
        instruction=task.task,
        spec=build_run_spec(services.defaults, _options(task), request.principal, task.profile),
        channel=request.channel,
        session_id=None if task.session_id is None else SessionId(task.session_id),
        attachments=await store_attachments(
            services.gateway.files, task.attachments, request.principal.id
        ),
        idempotency_key=scoped_key("tasks", task.idempotency_key),
        one_shot=task.one_shot,
        prompt=add_commands(task.task, task.commands) if task.commands else "",
    )
    submitted = await services.gateway.submit(submission, request.principal)
    created = CreatedTask(*msgspec.structs.astuple(submitted))
    if not request.query.wait:
        return created
    with errors_of_created_run(), delivery:
        run = await delivery.settled_run(submitted, _settled_run(request, submitted))
    return msgspec.structs.replace(created, status=run.status, run=run_view(run))


async def _settled_run(
    request: ApiRequest[CreateTaskQuery, CreateTaskRequest], submitted: Submitted
) -> Run:
    """Return the run of a new task once it is settled, or the client has waited long enough."""
    gateway, seconds = request.services.gateway, request.query.wait
    _, run = await gateway.wait_for_run(submitted, request.principal, seconds)
    return run


async def list_tasks(request: ApiRequest[TasksQuery, EmptyRequest]) -> TasksPage:
    """List tasks, newest first."""
    query, queries = request.query, request.services.gateway.queries
    wanted = TaskFilter(
        session_id=SessionId(query.session_id) if query.session_id else None,
        status=query.status or None,
        group=query.group or None,
        parent=TaskId(query.parent) if query.parent else None,
        subtasks=query.subtasks == "true",
    )
    items = await queries.task_list(
        request.principal, wanted, before=query.cursor or None, limit=query.limit + 1
    )
    page = [_list_view(item) for item in items[: query.limit]]
    return TasksPage(page, page[-1].task_id if len(items) > query.limit else None)


async def show_task(request: ApiRequest[EmptyRequest, EmptyRequest]) -> TaskDetails:
    """Return a task with its newest run, all subtasks below it and the files that they made."""
    queries, task_id = request.services.gateway.queries, TaskId(request.path["task_id"])
    return _details(await queries.task_tree(task_id, request.principal))


async def stop_task(request: ApiRequest[EmptyRequest, StopTaskRequest]) -> StopView:
    """Stop the run of a task. The request is stored durably before the response."""
    task_id, key = TaskId(request.path["task_id"]), request.body.idempotency_key
    status = await request.services.gateway.stop(
        task_id, request.principal, request.channel, idempotency_key=key
    )
    return StopView(task_id, status)


async def move_task_to_background(request: ApiRequest[EmptyRequest, EmptyRequest]) -> TaskView:
    """Let an unfinished task go on beside its session, whose next task can start at once."""
    task_id = TaskId(request.path["task_id"])
    return task_view(await request.services.gateway.move_to_background(task_id, request.principal))


async def steer_task(request: ApiRequest[EmptyRequest, SteerRequest]) -> Steered:
    """Steer the active run of the task's session, or create its next task if there is none.

    A subtask and a task in the background have a run of their own, which is steered.
    """
    task_id, body = TaskId(request.path["task_id"]), request.body
    return await request.services.gateway.steer_task(
        task_id,
        body.text,
        request.principal,
        channel=request.channel,
        idempotency_key=body.idempotency_key,
        writing=read_writing(body.seen),
        prompt=add_commands(body.text, body.commands) if body.commands else "",
    )


async def rate_task(request: ApiRequest[EmptyRequest, FeedbackRequest]) -> TaskView:
    """Replace or remove the feedback on the answer of an ended task."""
    task_id, body = TaskId(request.path["task_id"]), request.body
    feedback = Feedback(body.rating, body.comment)
    return task_view(await request.services.gateway.rate_task(task_id, feedback, request.principal))


async def resume_task(request: ApiRequest[EmptyRequest, EmptyRequest]) -> Submitted:
    """Resume a failed or stopped task as a new task of its session."""
    return await request.services.gateway.resume(
        TaskId(request.path["task_id"]), request.principal, request.channel
    )


async def apply_changes(request: ApiRequest[EmptyRequest, EmptyRequest]) -> AppliedChanges:
    """Apply what an ended subtask changed in its worktree to the folder of its creator."""
    task_id = TaskId(request.path["task_id"])
    return await request.services.gateway.worktrees.apply(
        task_id, request.principal, request.channel
    )


def _options(task: CreateTaskRequest) -> TaskOptions:
    if task.plan_review is None:
        return task.options
    if task.options.plan_review not in {None, task.plan_review}:
        raise InvalidRequest(
            "plan_review and options.plan_review differ. Set only one of them.",
            reason_code="plan_review_differs",
        )
    return msgspec.structs.replace(task.options, plan_review=task.plan_review)


def _list_view(item: TaskListItem) -> TaskListView:
    task, summary, spending = item
    place = summary.subtask
    return TaskListView(
        **task_fields(task),
        parent_task_id=task.parent_task_id,
        parent=summary.parent,
        path="" if place is None else place.path,
        reports=task.reports,
        files=summary.files,
        cost=spending.cost,
        calls_not_run=summary.calls_not_run,
        number=0 if place is None else place.number,
        role="" if place is None else place.role,
        **_times(summary.started, summary.ended),
    )


def _details(tree: TaskTree) -> TaskDetails:
    task, run = tree.task, tree.run
    profile = task.spec.profile
    return TaskDetails(
        **task_fields(task),
        run=run_view(run),
        id=task.id,
        team_id=task.team_id,
        instruction=task.instruction,
        agent_profile=AgentProfileView(profile.name, profile.role, profile.goal, profile.tone),
        skill_ids=task.spec.skills,
        result=run.answer or None,
        error=run.error or None,
        **_times(run.started, run.ended),
        created_at=task.created,
        parent_task_id=task.parent_task_id,
        depends_on=task.depends_on,
        children=[
            _subtask_view(each, own, own.subtask)
            for each, own in tree.subtasks
            if own.subtask is not None
        ],
        artifacts=[artifact_view(each) for each in tree.artifacts],
        total_cost=tree.run.cost or 0.0,
        calls_not_run=tree.calls_not_run,
    )


def _subtask_view(task: Task, run: Run, place: Subtask) -> SubtaskView:
    return SubtaskView(
        task_id=task.id,
        parent_task_id=task.parent_task_id,
        run_id=run.id,
        number=place.number,
        total=place.total,
        role=place.role,
        path=place.path,
        status=run.status,
        stop_reason=run.stop_reason,
        instruction=task.instruction[:MAX_PREVIEW_CHARACTERS],
        result=run.answer[:MAX_PREVIEW_CHARACTERS] or None,
        error=run.error or None,
        cost=run.cost,
        usage=run.usage,
        depends_on=task.depends_on,
        workspace=place.workspace,
        created_at=task.created,
        **_times(run.started, run.ended),
    )


def _times(started: str, ended: str) -> dict[str, Any]:
    return {"started_at": started or None, "completed_at": ended or None}
