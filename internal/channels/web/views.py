"""Views: facts of the agent in the shapes of the HTTP API."""

from typing import Any

import msgspec

from internal.agent.domain.ids import RunId
from internal.agent.domain.messages import Message, Thinking
from internal.agent.domain.tasks import Run, Session, SessionSummary, Task
from internal.channels.web.schemas import (
    MessageView,
    RunView,
    SessionRow,
    SessionView,
    TaskView,
    TaskWithRun,
)


def view_of_task(task: Task) -> TaskView:
    """Return a task as lists show it."""
    return TaskView(**_task_fields(task))


def view_with_run(task: Task, run: Run) -> TaskWithRun:
    """Return a task with its newest run."""
    shown = RunView(
        run.id,
        run.status,
        run.stop_reason,
        run.attempt,
        run.answer,
        run.usage,
        run.cost,
        run.error,
    )
    return TaskWithRun(run=shown, **_task_fields(task))


def _task_fields(task: Task) -> dict[str, Any]:
    brief = task.brief
    return {
        "task_id": task.id,
        "session_id": task.session_id,
        "kind": task.kind,
        "task": task.instruction,
        "channel": task.origin.channel,
        "profile": brief.profile.name,
        "model": brief.model,
        "status": task.status,
        "stop_reason": task.stop_reason,
        "created": task.created,
        "attachments": task.attachments,
    }


def view_of_session(session: Session) -> SessionView:
    """Return a session."""
    return SessionView(session.id, session.title, session.channel, session.created, session.updated)


def row_of_session(summary: SessionSummary) -> SessionRow:
    """Return a session as lists show it."""
    fields = msgspec.structs.asdict(view_of_session(summary.session))
    return SessionRow(status=summary.status, tasks=summary.tasks, **fields)


def view_of_message(number: int, run_id: RunId, message: Message, created: str) -> MessageView:
    """Return a message without the model's thinking, which is not part of the conversation."""
    parts = [part for part in message.parts if not isinstance(part, Thinking)]
    return MessageView(number, run_id, message.role, created, msgspec.to_builtins(parts))
