"""Tasks, subtasks that runs create, and the results of requests about tasks."""

from collections.abc import Iterable, Mapping
from operator import itemgetter

import msgspec

from internal.agent.domain.delegation.subtask import Subtask
from internal.agent.domain.events.types import ResultFinal
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.tasks import (
    Attachment,
    Feedback,
    Origin,
    Run,
    RunSpec,
    Status,
    StopReason,
    Task,
    TaskFilter,
    TaskGroup,
    TaskSummary,
    TaskWait,
)
from internal.agent.store.database import Batch, Lookup, Read, Row, Statement, Write
from internal.agent.store.encoding import storable, to_json
from internal.agent.store.runs import read_run

_DECODERS = tuple(
    (Task.__struct_fields__.index(field), msgspec.json.Decoder(kind))
    for field, kind in (
        ("origin", Origin),
        ("spec", RunSpec),
        ("attachments", tuple[Attachment, ...]),
        ("feedback", Feedback | None),
        ("depends_on", tuple[TaskId, ...]),
        ("reports", tuple[TaskId, ...]),
    )
)
_FIRST_CURSOR = ("9999", "")  # sorts after every (timestamp, id)
_CREATED = Task.__struct_fields__.index("created")
_UNFINISHED_GROUPS: Mapping[TaskGroup | None, tuple[Status, ...]] = {
    "needs_me": ("waiting",),
    "running": ("queued", "running", "waiting"),
}
"""The statuses of the tasks of a group, apart from the group of ended ones."""


class _End(msgspec.Struct):
    calls_not_run: int = 0


_decode_end = msgspec.json.Decoder(_End).decode


def list_calls_not_run(task_ids: Iterable[TaskId]) -> Read[dict[TaskId, int]]:
    """Return how many of the last calls of the newest runs of ended tasks were not run.

    Tasks without such calls are left out.
    """
    rows = yield Lookup("end_of_task", [(task_id, ResultFinal.name) for task_id in task_ids])
    counts = {TaskId(task_id): _decode_end(payload).calls_not_run for task_id, payload in rows}
    return {task_id: count for task_id, count in counts.items() if count}


class TaskStore:
    """Tasks, with everything that was fixed when they were submitted."""

    def add(self, task: Task, idempotency_key: str | None, /) -> Write[None]:
        """Insert a task; `SessionStore` counts it.

        Raises:
            Conflict: the principal submitted another task with the key, or the id exists.
        """
        yield Statement(
            "insert_task",
            (
                task.id,
                task.session_id,
                task.kind,
                task.lane,
                task.parent_task_id,
                task.team_id,
                task.origin.principal,
                idempotency_key,
                task.status,
                task.stop_reason,
                task.created,
                to_json(task.origin),
                to_json(task.spec),
                to_json(task.attachments),
                storable(task.instruction),
                storable(task.prompt),
                to_json(task.depends_on),
                to_json(task.reports),
            ),
        )

    def get(self, task_id: TaskId, /) -> Read[Task | None]:
        """Return a task."""
        rows = yield Statement("task", (task_id,))
        return _task(rows[0]) if rows else None

    def list_by_id(self, task_ids: Iterable[TaskId], /) -> Read[list[Task]]:
        """Return tasks in the order of the ids, without missing ones."""
        rows = yield Lookup("task", [(task_id,) for task_id in task_ids])
        return [_task(row) for row in rows]

    def get_by_key(self, principal: str, idempotency_key: str, /) -> Read[Task | None]:
        """Return the task that a principal submitted with an idempotency key."""
        rows = yield Statement("task_by_key", (principal, idempotency_key))
        return _task(rows[0]) if rows else None

    def list_page(
        self,
        principal: str | None,
        wanted: TaskFilter,
        *,
        before: str | None,
        limit: int,
    ) -> Read[list[Task]]:
        """Return tasks, newest first.

        Args:
            principal: the principal who submitted them; None for all principals.
            wanted: the filter.
            before: return the tasks after this task id in the order. No task is returned when the
                id is unknown or belongs to another principal.
            limit: the maximum number of tasks.
        """
        cursor: Row = _FIRST_CURSOR
        if before is not None:
            rows = yield Statement("task_cursor", (before, principal))
            if not rows:
                return []
            cursor = rows[0]
        has_subtasks = int(wanted.subtasks or wanted.parent is not None)
        statuses = (wanted.status,) if wanted.status else _UNFINISHED_GROUPS.get(wanted.group, ())
        if wanted.parent is None and statuses and "completed" not in statuses:
            rows = []
            for status in statuses:
                values = (*cursor, status, limit, wanted.group, has_subtasks)
                rows += yield _tasks_not_completed(values, principal, wanted.session_id)
            rows.sort(key=itemgetter(_CREATED, 0), reverse=True)
        else:
            values = (*cursor, wanted.status, limit, wanted.group, has_subtasks)
            rows = yield _tasks_page(values, principal, wanted)
        return [_task(row) for row in rows[:limit]]

    def list_summaries(self, task_ids: Iterable[TaskId], /) -> Read[dict[TaskId, TaskSummary]]:
        """Return the list entries for the newest runs of tasks, leaving out tasks without a run."""
        rows = yield Lookup("task_summary", [(task_id,) for task_id in task_ids])
        missed = yield from list_calls_not_run(TaskId(row[0]) for row in rows if row[3])
        return {
            TaskId(row[0]): _summary(row)._replace(calls_not_run=missed.get(TaskId(row[0]), 0))
            for row in rows
        }

    def replace_input(
        self,
        task_id: TaskId,
        instruction: str,
        /,
        *,
        prompt: str,
        attachments: tuple[Attachment, ...],
    ) -> Write[None]:
        """Replace the input of a task before its run begins."""
        values = (task_id, storable(instruction), storable(prompt), to_json(attachments))
        yield Statement("replace_task_input", values)

    def set_attachments(
        self, task_id: TaskId, attachments: tuple[Attachment, ...], /
    ) -> Write[None]:
        """Replace the attachments of a task, after they were fetched."""
        yield Statement("set_task_attachments", (task_id, to_json(attachments)))

    def set_feedback(self, task_id: TaskId, feedback: Feedback | None, /) -> Write[None]:
        """Replace the feedback on a task, or remove it."""
        yield Statement("set_task_feedback", (task_id, to_json(feedback)))

    def list_rated(self, limit: int, /) -> Read[list[Task]]:
        """Return the tasks with feedback, newest first."""
        rows = yield Statement("rated_tasks", (limit,))
        return [_task(row) for row in rows]

    def set_status(
        self, task_id: TaskId, status: Status, stop_reason: StopReason | None, *, now: str
    ) -> Write[None]:
        """Store the status of a task."""
        yield Statement("set_task_status", (task_id, status, stop_reason, now))


class SubtaskStore:
    """Tasks that runs created, their dependencies, and the runs that wait for them."""

    def list_tree(self, root_task_id: TaskId, /) -> Read[list[Run]]:
        """Return the runs of all subtasks below an outermost task, oldest first."""
        rows = yield Statement("runs_of_root", (root_task_id,))
        return [read_run(row) for row in rows]

    def count_ended(self, root_task_id: TaskId, /) -> Read[int]:
        """Return how many subtasks below an outermost task have ended."""
        rows = yield Statement("count_ended_of_root", (root_task_id,))
        return int(rows[0][0])

    def list_of_run(self, run_id: RunId, /) -> Read[list[Run]]:
        """Return the runs of the subtasks that a run created, oldest first."""
        rows = yield Statement("runs_of_parent", (run_id,))
        return [read_run(row) for row in rows]

    def list_unreported(self, run_id: RunId, /) -> Read[list[TaskId]]:
        """Return the ended subtasks of a run that were not reported yet, oldest first."""
        rows = yield Statement("unreported_tasks", (run_id,))
        return [TaskId(task_id) for (task_id,) in rows]

    def mark_reported(self, task_ids: Iterable[TaskId], /) -> Write[None]:
        """Store that the ends of subtasks were reported."""
        yield Batch("mark_task_reported", [(task_id,) for task_id in task_ids])

    def get_cost(self, root_task_id: TaskId, /) -> Read[float]:
        """Return the known cost of an outermost task and all its subtasks, in US dollars."""
        rows = yield Statement("cost_of_tree", (root_task_id,))
        return float(rows[0][0])

    def add_dependencies(self, task_id: TaskId, depends_on: Iterable[TaskId], /) -> Write[None]:
        """Store the unfinished tasks that a task waits for before it starts."""
        yield Batch("insert_task_dependency", [(task_id, each) for each in depends_on])

    def take_dependents(self, task_id: TaskId, /) -> Write[list[TaskId]]:
        """Remove an ended task as a dependency, and return the tasks that depended on it."""
        rows = yield Statement("delete_task_dependencies", (task_id,))
        return [TaskId(each) for (each,) in rows]

    def unblock(self, task_id: TaskId, /) -> Write[None]:
        """Count down the unfinished dependencies of a task's run."""
        yield Statement("unblock_run", (task_id,))

    def set_waits(self, run_id: RunId, waits: Mapping[str, TaskWait], /) -> Write[None]:
        """Store the waits of a run's calls, by call_id."""
        yield Statement("delete_task_waits_of_run", (run_id,))
        yield Batch(
            "insert_task_wait",
            [
                (run_id, call_id, task_id, int(wait.any_of))
                for call_id, wait in waits.items()
                for task_id in wait.tasks
            ],
        )

    def clear_waits(self, run_id: RunId, /) -> Write[None]:
        """Store that a run waits for no task."""
        yield Statement("delete_task_waits_of_run", (run_id,))

    def list_waiting_for(self, task_id: TaskId, /) -> Read[list[RunId]]:
        """Return the runs with a call that waits for a task."""
        rows = yield Statement("runs_waiting_for_task", (task_id,))
        return [RunId(run_id) for (run_id,) in rows]

    def has_settled_wait(self, run_id: RunId, /) -> Read[bool]:
        """Return True if a call of a run has the results that it waits for."""
        rows = yield Statement("settled_waits", (run_id,))
        return bool(rows)

    def list_past_wait(self, now: str, /) -> Read[list[Run]]:
        """Return runs that have waited for tasks as long as they may."""
        rows = yield Statement("runs_past_wait", (now,))
        return [read_run(row) for row in rows]

    def move_to_background(self, task_id: TaskId, run_id: RunId, /) -> Write[bool]:
        """Give a task and its unfinished run a lane of their own. False if the run has ended."""
        rows = yield Statement("move_run_to_lane", (run_id,))
        if rows:
            yield Statement("move_task_to_lane", (task_id,))
        return bool(rows)


class ResultStore:
    """Results of requests that were sent with an idempotency key, as JSON."""

    def get(self, principal: str, command: str, idempotency_key: str, /) -> Read[str | None]:
        """Return the result of a principal's first request with a key."""
        rows = yield Statement("request_result", (principal, command, idempotency_key))
        return str(rows[0][0]) if rows else None

    def add(
        self,
        principal: str,
        command: str,
        idempotency_key: str,
        /,
        *,
        session_id: SessionId,
        result: str,
        now: str,
    ) -> Write[None]:
        """Insert a result.

        Raises:
            Conflict: the principal sent another request with the key.
        """
        values = (principal, command, idempotency_key, session_id, now, result)
        yield Statement("insert_request_result", values)

    def replace(
        self,
        principal: str,
        command: str,
        idempotency_key: str,
        /,
        *,
        session_id: SessionId,
        result: str,
        now: str,
    ) -> Write[None]:
        """Insert a result, or replace the result of an earlier request with the key."""
        values = (principal, command, idempotency_key, session_id, now, result)
        yield Statement("replace_request_result", values)


def _tasks_page(values: Row, principal: str | None, wanted: TaskFilter) -> Statement:
    if wanted.parent is not None:
        return Statement("tasks_page_of_parent", (*values, wanted.parent, principal))
    if wanted.session_id is not None:
        return Statement("tasks_page_of_session", (*values, wanted.session_id, principal))
    if principal is not None:
        return Statement("tasks_page_of_principal", (*values, principal))
    return Statement("tasks_page", values)


def _tasks_not_completed(
    values: Row, principal: str | None, session_id: SessionId | None
) -> Statement:
    """Return the statement for tasks of one status, which completed tasks do not slow down."""
    if session_id is not None:
        return Statement("tasks_not_completed_of_session", (*values, session_id, principal))
    if principal is not None:
        return Statement("tasks_not_completed_of_principal", (*values, principal))
    return Statement("tasks_not_completed", values)


def _summary(row: Row) -> TaskSummary:
    _, run_id, started, ended, subtask, parent, files = row
    place = None if subtask is None else msgspec.json.decode(subtask, type=Subtask)
    return TaskSummary(run_id, started, ended, place, parent or "", files)


def _task(row: Row) -> Task:
    values = list(row)
    for index, decoder in _DECODERS:
        values[index] = decoder.decode(values[index])
    return Task(*values)
