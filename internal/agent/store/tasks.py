"""Tasks, and the results of requests about them."""

import msgspec

from internal.agent.domain.ids import SessionId, TaskId
from internal.agent.domain.tasks import (
    Attachment,
    Feedback,
    Origin,
    RunSpec,
    Status,
    StopReason,
    Task,
)
from internal.agent.store.database import Read, Row, Statement, Write
from internal.agent.store.encoding import storable, to_json

_DECODERS = tuple(
    (Task.__struct_fields__.index(field), msgspec.json.Decoder(kind))
    for field, kind in (
        ("origin", Origin),
        ("spec", RunSpec),
        ("attachments", tuple[Attachment, ...]),
        ("feedback", Feedback | None),
    )
)
_FIRST_CURSOR = ("9999", "")  # sorts after every (timestamp, id)


class TaskStore:
    """Tasks, with everything that was fixed when they were submitted."""

    def add(self, task: Task, idempotency_key: str | None, /) -> Write[None]:
        """Insert a task and mark its session as active.

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
            ),
        )
        yield Statement("touch_session", (task.session_id, task.created))

    def get(self, task_id: TaskId, /) -> Read[Task | None]:
        """Return a task."""
        rows = yield Statement("task", (task_id,))
        return _task(rows[0]) if rows else None

    def get_by_key(self, principal: str, idempotency_key: str, /) -> Read[Task | None]:
        """Return the task that a principal submitted with an idempotency key."""
        rows = yield Statement("task_by_key", (principal, idempotency_key))
        return _task(rows[0]) if rows else None

    def list_page(
        self,
        principal: str | None,
        session_id: SessionId | None,
        status: Status | None,
        *,
        before: str | None,
        limit: int,
    ) -> Read[list[Task]]:
        """Return tasks, newest first.

        Args:
            principal: who submitted them; None for all principals.
            session_id: only tasks of this session.
            status: only tasks with this status.
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
        values = (*cursor, status, limit)
        if session_id is not None:
            rows = yield Statement("tasks_page_of_session", (*values, session_id, principal))
        elif principal is not None:
            rows = yield Statement("tasks_page_of_principal", (*values, principal))
        else:
            rows = yield Statement("tasks_page", values)
        return [_task(row) for row in rows]

    def set_attachments(
        self, task_id: TaskId, attachments: tuple[Attachment, ...], /
    ) -> Write[None]:
        """Replace the attachments of a task, after they were fetched."""
        yield Statement("set_task_attachments", (task_id, to_json(attachments)))

    def set_feedback(self, task_id: TaskId, feedback: Feedback | None, /) -> Write[None]:
        """Replace the feedback on a task, or remove it."""
        yield Statement("set_task_feedback", (task_id, to_json(feedback)))

    def set_status(
        self, task_id: TaskId, status: Status, stop_reason: StopReason | None, *, now: str
    ) -> Write[None]:
        """Store the status of a task."""
        yield Statement("set_task_status", (task_id, status, stop_reason, now))


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


def _task(row: Row) -> Task:
    values = list(row)
    for index, decoder in _DECODERS:
        values[index] = decoder.decode(values[index])
    return Task(*values)
