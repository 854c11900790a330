"""Routes of tasks."""

import msgspec

from internal.agent.app.runs.creation import Submission, Submitted
from internal.agent.app.task_commands import Steered
from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.domain.errors import InvalidRequest, NotFound
from internal.agent.domain.ids import SessionId, TaskId
from internal.channels.web.endpoints import Call
from internal.channels.web.routes.attachments import kept
from internal.channels.web.schemas import (
    NewTask,
    Nothing,
    StopView,
    TasksPage,
    TasksQuery,
    TaskWithRun,
    Words,
)
from internal.channels.web.views import view_of_task, view_with_run


async def create_task(call: Call[Nothing, NewTask]) -> Submitted:
    """Store a task and queue its run; it is on disk when this answers."""
    given, door = call.body, call.door
    submission = Submission(
        instruction=given.task,
        brief=build_run_spec(door.defaults, _options(given), call.principal, given.profile),
        channel=call.channel,
        session_id=None if given.session_id is None else SessionId(given.session_id),
        attachments=await kept(door.attachments, given.attachments),
        idempotency_key=given.idempotency_key,
    )
    return await door.gateway.submit(submission, call.principal)


async def list_tasks(call: Call[TasksQuery, Nothing]) -> TasksPage:
    """Return a page of tasks, newest first."""
    query, queries = call.query, call.door.gateway.queries
    if query.cursor is not None:
        try:
            await queries.task(TaskId(query.cursor), call.principal)
        except NotFound as error:
            raise InvalidRequest(f"There is no page {query.cursor[:80]}.") from error
    tasks = await queries.tasks(
        call.principal,
        session_id=None if query.session_id is None else SessionId(query.session_id),
        status=query.status,
        before=query.cursor,
        limit=query.limit + 1,
    )
    page = [view_of_task(task) for task in tasks[: query.limit]]
    return TasksPage(page, page[-1].task_id if len(tasks) > query.limit else None)


async def show_task(call: Call[Nothing, Nothing]) -> TaskWithRun:
    """Return a task and its newest run."""
    queries, task_id = call.door.gateway.queries, TaskId(call.path["task_id"])
    run = await queries.run_of(task_id, call.principal)
    # read behind the run: what has ended there has ended here
    return view_with_run(await queries.task(task_id, call.principal), run)


async def stop_task(call: Call[Nothing, Nothing]) -> StopView:
    """Stop a task's run; the request is on disk when this answers."""
    task_id = TaskId(call.path["task_id"])
    status = await call.door.gateway.stop(task_id, call.principal, call.channel)
    return StopView(task_id, status)


async def steer_task(call: Call[Nothing, Words]) -> Steered:
    """Give words to the run at work in the task's session, or make them its next task."""
    task_id = TaskId(call.path["task_id"])
    return await call.door.gateway.steer_task(task_id, call.body.text, call.principal, call.channel)


async def resume_task(call: Call[Nothing, Nothing]) -> Submitted:
    """Go on where a failed or stopped task ended, as a new task of its session."""
    return await call.door.gateway.resume(
        TaskId(call.path["task_id"]), call.principal, call.channel
    )


def _options(given: NewTask) -> TaskOptions:
    if given.plan_review is None:
        return given.options
    if given.options.plan_review not in {None, given.plan_review}:
        raise InvalidRequest("plan_review is given twice, and not the same: leave one out.")
    return msgspec.structs.replace(given.options, plan_review=given.plan_review)
