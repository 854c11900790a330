"""Tasks in a table."""

import msgspec

from internal.agent.domain.ids import SessionId, TaskId
from internal.agent.domain.tasks import Attachment, Origin, RunSpec, Status, StopReason, Task
from internal.agent.store.database import Read, Row, Statement, Write
from internal.agent.store.encoding import plain, to_json

_DECODED = tuple(
    (Task.__struct_fields__.index(field), msgspec.json.Decoder(kind))
    for field, kind in (
        ("origin", Origin),
        ("brief", RunSpec),
        ("attachments", tuple[Attachment, ...]),
    )
)
_TOP = ("9999", "")  # behind every instant


class TaskStore:
    """Fills `Tasks`."""

    def add(self, task: Task, key: str | None, /) -> Write[None]:
        """Insert a task; `key` is the client's idempotency key. Its session was active now.

        Raises:
            Conflict: the principal made another task under the key, or the id is taken.
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
                key,
                task.status,
                task.stop_reason,
                task.created,
                to_json(task.origin),
                to_json(task.brief),
                to_json(task.attachments),
                plain(task.instruction),
            ),
        )
        yield Statement("touch_session", (task.session_id, task.created))

    def get(self, task_id: TaskId, /) -> Read[Task | None]:
        """Return a task."""
        rows = yield Statement("task", (task_id,))
        return _task(rows[0]) if rows else None

    def get_by_key(self, principal: str, key: str, /) -> Read[Task | None]:
        """Return the task that a principal made under an idempotency key."""
        rows = yield Statement("task_by_key", (principal, key))
        return _task(rows[0]) if rows else None

    def list_page(
        self,
        principal: str | None,
        session_id: SessionId | None,
        status: Status | None,
        before: str | None,
        limit: int,
    ) -> Read[list[Task]]:
        """Return a principal's tasks, newest first, behind the task id `before`; None: everybody's.

        Nothing stands behind an id that is not such a task.
        """
        place: Row = _TOP
        if before is not None:
            rows = yield Statement("place_of_task", (before, principal))
            if not rows:
                return []
            place = rows[0]
        values = (*place, status, limit)
        if session_id is not None:
            rows = yield Statement("tasks_page_of_session", (*values, session_id, principal))
        elif principal is not None:
            rows = yield Statement("tasks_page_of_principal", (*values, principal))
        else:
            rows = yield Statement("tasks_page", values)
        return [_task(row) for row in rows]

    def set_status(
        self, task_id: TaskId, status: Status, stop_reason: StopReason | None, now: str, /
    ) -> Write[None]:
        """Store a task's status."""
        yield Statement("set_task_status", (task_id, status, stop_reason, now))


def _task(row: Row) -> Task:
    values = list(row)
    for place, decoder in _DECODED:
        values[place] = decoder.decode(values[place])
    return Task(*values)
