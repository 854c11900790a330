"""Routes for tasks."""

import msgspec

from internal.agent.app.files.worktree_changes import AppliedChanges
from internal.agent.app.runs.creation import Submission, Submitted
from internal.agent.app.task_commands import Steered
from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.ids import SessionId, TaskId
from internal.agent.domain.tasks import Feedback
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.routes.attachments import store_attachments
from internal.channels.web.schemas import (
    CreatedTask,
    CreateTaskQuery,
    CreateTaskRequest,
    EmptyRequest,
    FeedbackRequest,
    SteerRequest,
    StopTaskRequest,
    StopView,
    TasksPage,
    TasksQuery,
    TaskView,
    TaskWithRun,
    run_view,
    task_view,
    task_with_run,
)


async def create_task(request: ApiRequest[CreateTaskQuery, CreateTaskRequest]) -> CreatedTask:
    """Store a task and queue its run. The task is stored durably before the response.

    With `wait` the response comes when the run has ended or waits for a person, at the latest after
    so many seconds. A client that disconnects does not stop the run.
    """
    task, services = request.body, request.services
    submission = Submission(
        instruction=task.task,
        spec=build_run_spec(services.defaults, _options(task), request.principal, task.profile),
        channel=request.channel,
        session_id=None if task.session_id is None else SessionId(task.session_id),
        attachments=await store_attachments(
            services.gateway.files, task.attachments, request.principal.id
        ),
        idempotency_key=task.idempotency_key,
        one_shot=task.one_shot,
    )
    submitted = await services.gateway.submit(submission, request.principal)
    created = CreatedTask(*msgspec.structs.astuple(submitted))
    if not request.query.wait:
        return created
    _, run = await services.gateway.wait_for_run(submitted, request.principal, request.query.wait)
    return msgspec.structs.replace(created, status=run.status, run=run_view(run))


async def list_tasks(request: ApiRequest[TasksQuery, EmptyRequest]) -> TasksPage:
    """List tasks, newest first."""
    query, queries = request.query, request.services.gateway.queries
    tasks = await queries.tasks(
        request.principal,
        session_id=SessionId(query.session_id) if query.session_id else None,
        status=query.status or None,
        before=query.cursor or None,
        limit=query.limit + 1,
    )
    page = [task_view(task) for task in tasks[: query.limit]]
    return TasksPage(page, page[-1].task_id if len(tasks) > query.limit else None)


async def show_task(request: ApiRequest[EmptyRequest, EmptyRequest]) -> TaskWithRun:
    """Return a task with its newest run."""
    queries, task_id = request.services.gateway.queries, TaskId(request.path["task_id"])
    return task_with_run(*await queries.task_with_run(task_id, request.principal))


async def stop_task(request: ApiRequest[EmptyRequest, StopTaskRequest]) -> StopView:
    """Stop the run of a task. The request is stored durably before the response."""
    task_id, key = TaskId(request.path["task_id"]), request.body.idempotency_key
    status = await request.services.gateway.stop(
        task_id, request.principal, request.channel, idempotency_key=key
    )
    return StopView(task_id, status)


async def steer_task(request: ApiRequest[EmptyRequest, SteerRequest]) -> Steered:
    """Steer the active run of the task's session, or create its next task if there is none."""
    task_id, body = TaskId(request.path["task_id"]), request.body
    return await request.services.gateway.steer_task(
        task_id,
        body.text,
        request.principal,
        channel=request.channel,
        idempotency_key=body.idempotency_key,
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
        raise InvalidRequest("plan_review and options.plan_review differ. Set only one of them.")
    return msgspec.structs.replace(task.options, plan_review=task.plan_review)
