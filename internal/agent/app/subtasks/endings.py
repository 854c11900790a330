"""Endings: the effects of the end of a task on its creator and on runs that wait for it."""

import msgspec

from internal.agent.app.runs.creation import Submission, TaskIds, create_task
from internal.agent.app.subtasks.results import load_results
from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.delegation.reports import (
    REPORT_INSTRUCTION,
    TASK_ENDS_CHANNEL,
    TASKS_CHANNEL,
    report_prompt,
)
from internal.agent.domain.events.envelope import EventRecord, RunIds
from internal.agent.domain.events.types import LifecycleUpdated
from internal.agent.domain.ids import RunId, TaskId
from internal.agent.domain.tasks import ENDED, Run, RunSpec, Task
from internal.agent.store.database import Read, Write
from internal.agent.store.stores import Stores

MAX_REPORT_ITERATIONS = 6


def wake_run(stores: Stores, run_id: RunId, *, now: str) -> Write[list[EventRecord]]:
    """Queue a run that waits for tasks, ahead of others; no effect on any other run."""
    run = yield from stores.runs.get(run_id)
    if run is None or not run.awaits_tasks:
        return []
    queued = LifecycleUpdated(status="queued", phase="tasks")
    events = yield from stores.events.append_idle(RunIds.of(run), (queued,), now)
    yield from queue_awaiting(stores, run, now=now)
    return events


def queue_awaiting(stores: Stores, run: Run, *, now: str) -> Write[None]:
    """Queue a run that waits for tasks, without an event."""
    yield from stores.subtasks.clear_waits(run.id)
    yield from stores.runs.queue_waiting(run.id, now)
    yield from stores.tasks.set_status(run.task_id, "queued", None, now=now)


def wake_waiting_runs(stores: Stores, task_id: TaskId, *, now: str) -> Write[list[EventRecord]]:
    """Queue the runs whose waits are over, now that a task has ended."""
    events: list[EventRecord] = []
    for run_id in (yield from stores.subtasks.list_waiting_for(task_id)):
        if (yield from stores.subtasks.has_settled_wait(run_id)):
            events += yield from wake_run(stores, run_id, now=now)
    return events


def has_message(stores: Stores, run_id: RunId) -> Read[bool]:
    """Return True if a run has not read a message of a person or of its creator."""
    messages = yield from stores.inbox.list_undelivered(run_id)
    return any(message.channel != TASK_ENDS_CHANNEL for message in messages)


def tell_end(
    stores: Stores, run: Run, task: Task, *, ids: TaskIds, now: str
) -> Write[list[EventRecord]]:
    """Tell the end of a subtask's run to its creator.

    If that has ended, the nearest task above it that has not is told; if there is none, the
    subtasks of the creator are reported to the person, as the setting `tasks.report` says.
    """
    above = run
    while above.parent_run_id is not None:
        parent = yield from stores.runs.get(above.parent_run_id)
        if parent is None:
            return []
        if parent.status not in ENDED:
            yield from _send_end(stores, task, parent, now=now)
            return []
        above = parent
    if run.parent_run_id is None:
        return []
    return (yield from report_ended(stores, run.parent_run_id, ids=ids, now=now))


def _send_end(stores: Stores, task: Task, run: Run, *, now: str) -> Write[None]:
    """Put the end of a task into the inbox of a run, unless a call of it waits for the task."""
    if run.id in (yield from stores.subtasks.list_waiting_for(task.id)):
        return
    message = InboundMessage(
        channel=TASK_ENDS_CHANNEL,
        app=run.id,
        message_id=task.id,
        chat_id="",
        principal=task.origin.principal,
        raw=msgspec.json.encode({"text": f"{task.id} has ended."}).decode(),
        received=now,
    )
    yield from stores.inbox.assign(message, task.session_id, run.id, steer=True)


def report_ended(
    stores: Stores, run_id: RunId, *, ids: TaskIds, now: str
) -> Write[list[EventRecord]]:
    """Create a task that reports the subtasks of an ended run, if they are to be reported now."""
    unreported = yield from stores.subtasks.list_unreported(run_id)
    creator = yield from stores.runs.get(run_id)
    if not unreported or creator is None:
        return []
    root_id = creator.task_id if creator.subtask is None else creator.subtask.root_task_id
    root = yield from stores.tasks.get(root_id)
    if root is None:
        return []
    mode = root.spec.report
    if mode == "group" and (yield from _has_unfinished(stores, run_id)):
        return []
    yield from stores.subtasks.mark_reported(unreported)
    if mode == "silent":
        return []
    results = yield from load_results(stores, unreported)
    submission = Submission(
        instruction=REPORT_INSTRUCTION,
        prompt=report_prompt(results),
        spec=_report_spec(root.spec),
        channel=TASKS_CHANNEL,
        session_id=root.session_id,
        owner=creator.owner if creator.terminal else "",
        reports=tuple(unreported),
    )
    created = yield from create_task(
        stores, submission, root.session_id, ids=ids, origin=root.origin, now=now
    )
    return created.events


def _has_unfinished(stores: Stores, run_id: RunId) -> Read[bool]:
    runs = yield from stores.subtasks.list_of_run(run_id)
    return any(run.status not in ENDED for run in runs)


def _report_spec(spec: RunSpec) -> RunSpec:
    """Return how a report runs: as the task whose subtasks it reports, but short."""
    limits = msgspec.structs.replace(
        spec.limits, max_iterations=min(spec.limits.max_iterations, MAX_REPORT_ITERATIONS)
    )
    return msgspec.structs.replace(
        spec, limits=limits, gates="advisory", plan_review="off", delegates=False
    )
