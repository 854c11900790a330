"""Creation: the subtasks of one call, stored in one transaction."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from internal.agent.app.files.session_files import use_attachments
from internal.agent.domain.delegation.reports import subtask_prompt
from internal.agent.domain.delegation.subtask import (
    MAX_SUBTASKS,
    PREVIEW_CHARACTERS,
    Subtask,
    WorkspaceChoice,
)
from internal.agent.domain.errors import Conflict, NotFound
from internal.agent.domain.events.envelope import EventRecord, RunIds
from internal.agent.domain.events.types import InputReceived, LifecycleUpdated
from internal.agent.domain.ids import RunId, TaskId
from internal.agent.domain.tasks import ENDED, Attachment, Run, RunSpec, Task
from internal.agent.domain.text import replace_surrogates, truncate_json, truncate_line
from internal.agent.store.database import Read, Write
from internal.agent.store.stores import Stores


class SubtaskIds(NamedTuple):
    """New ids of a task and its run, generated before the transaction."""

    task_id: TaskId
    run_id: RunId


class SubtaskSubmission(NamedTuple):
    """A subtask as a call asks for it.

    `depends_on` names tasks by id or number, or by their `place` in a call that creates several.
    """

    ids: SubtaskIds
    instruction: str
    spec: RunSpec
    role: str
    workspace: WorkspaceChoice
    depends_on: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    place: str = ""


class CallOfRun(NamedTuple):
    """The call that creates subtasks, with at most `max_parallel` of them running at once."""

    run_id: RunId
    call_id: str
    max_parallel: int


def find_created(stores: Stores, call: CallOfRun, creator: Task) -> Read[list[TaskId]]:
    """Return the subtasks that a call has created before, such as before a crash."""
    found: list[TaskId] = []
    while True:
        key = _key(call, len(found))
        task = yield from stores.tasks.get_by_key(creator.origin.principal, key)
        if task is None:
            return found
        found.append(task.id)


def create_subtasks(
    stores: Stores,
    call: CallOfRun,
    submissions: Sequence[SubtaskSubmission],
    *,
    max_cost: float | None,
    lease_until: str,
    now: str,
) -> Write[tuple[list[TaskId], list[EventRecord]]]:
    """Store the subtasks of a call, once: a repeated call returns the first ones.

    `submissions` come in an order in which each follows those of the call that it depends on.
    `max_cost` is the limit of the outermost task, in US dollars.

    Raises:
        NotFound: a task that one depends on does not exist in this conversation.
        Conflict: the creator was stopped, there are too many subtasks, or a dependency has failed.
    """
    run = yield from stores.runs.get(call.run_id)
    creator = None if run is None else (yield from stores.tasks.get(run.task_id))
    if run is None or creator is None:
        raise NotFound(f"There is no run {call.run_id}.")
    if created := (yield from find_created(stores, call, creator)):
        return created, []
    if run.status != "running" or run.stop is not None:
        raise Conflict("This task was stopped: it creates no more tasks.")
    place = run.subtask
    root_task_id = creator.id if place is None else place.root_task_id
    existing = yield from stores.subtasks.list_tree(root_task_id)
    total = len(existing) + len(submissions)
    if total > MAX_SUBTASKS:
        raise Conflict(
            f"Not created: there are {len(existing)} tasks below this one, and at most"
            f" {MAX_SUBTASKS} are possible. Do the rest yourself, or give one task more to do."
        )
    named = {str(each.subtask.number): each.task_id for each in existing if each.subtask}
    events: list[EventRecord] = []
    for index, submission in enumerate(submissions):
        task_id, run_id = submission.ids
        depends_on = yield from _dependencies(stores, submission.depends_on, named, creator)
        unfinished = [each.id for each in depends_on if each.status not in ENDED]
        instruction = replace_surrogates(submission.instruction)
        subtask = Subtask(
            root_task_id=root_task_id,
            root_run_id=run.id if place is None else place.root_run_id,
            call_id=call.call_id,
            number=len(existing) + index + 1,
            total=total,
            role=truncate_line(submission.role, 60),
            preview=truncate_line(instruction, PREVIEW_CHARACTERS),
            depth=1 if place is None else place.depth + 1,
            max_parallel=call.max_parallel,
            workspace=submission.workspace,
            max_cost=max_cost,
        )
        task = Task(
            id=task_id,
            session_id=creator.session_id,
            kind="background",
            lane=task_id,
            instruction=instruction,
            origin=creator.origin,
            spec=submission.spec,
            status="queued",
            created=now,
            attachments=submission.attachments,
            parent_task_id=creator.id,
            team_id=creator.team_id,
            prompt=subtask_prompt(instruction, submission.workspace),
            depends_on=tuple(each.id for each in depends_on),
        )
        yield from stores.tasks.add(task, _key(call, index))
        yield from stores.sessions.touch(task.session_id, now)
        yield from use_attachments(
            stores, submission.attachments, task.session_id, task.origin.principal
        )
        added = Run(
            id=run_id,
            task_id=task_id,
            session_id=task.session_id,
            lane=task.lane,
            status="queued",
            fence=0,
            last_seq=0,
            parent_run_id=run.id,
            owner=run.owner if run.terminal else "",
            terminal=run.terminal,
            subtask=subtask,
        )
        yield from stores.runs.add(
            added,
            now,
            lease_until,
            blocked_by=len(unfinished),
            share=task.spec.share_of(task.origin.principal),
        )
        yield from stores.subtasks.add_dependencies(task_id, unfinished)
        received = InputReceived(
            task=truncate_json(instruction),
            channel=task.origin.channel,
            sender=task.origin.principal,
            attachments=submission.attachments,
        )
        queued = LifecycleUpdated(status="queued", phase="accept")
        events += yield from stores.events.append_idle(RunIds.of(added), (received, queued), now)
        if submission.place:
            named[submission.place] = task_id
    return [each.ids.task_id for each in submissions], events


def _key(call: CallOfRun, index: int) -> str:
    return f"{call.run_id}:{call.call_id}:{index}"


def _dependencies(
    stores: Stores, wanted: Sequence[str], named: Mapping[str, TaskId], creator: Task
) -> Read[list[Task]]:
    found: dict[TaskId, Task] = {}
    for name in wanted:
        task = yield from stores.tasks.get(named.get(name, TaskId(name)))
        if task is None or not task.is_subtask or task.session_id != creator.session_id:
            raise NotFound(f"Not created: there is no task {name[:80]} in this conversation.")
        if task.status in ENDED and task.status != "completed":
            raise Conflict(
                f"Not created: it would wait for {name[:80]}, and that is {task.status}."
            )
        found[task.id] = task
    return list(found.values())
