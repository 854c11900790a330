"""Messages of a run to its subtasks, and their stop."""

import msgspec

from internal.agent.app.runs.creation import TaskIds
from internal.agent.app.runs.finalization import STOPPED_BY_CREATOR, stop_subtasks
from internal.agent.app.subtasks.endings import wake_run
from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.delegation.reports import TASKS_CHANNEL
from internal.agent.domain.errors import Conflict
from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.tasks import ENDED, StopRequest, Task
from internal.agent.store.database import Write
from internal.agent.store.stores import Stores


def message_subtask(
    stores: Stores, task: Task, text: str, *, key: str, now: str
) -> Write[list[EventRecord]]:
    """Store a message to a subtask; `key` is the call, whose repetition changes nothing.

    Raises:
        Conflict: the task has ended, or is being stopped.
    """
    if (yield from stores.inbox.get_state(TASKS_CHANNEL, "", key)) is not None:
        return []
    run = yield from stores.runs.get_by_task(task.id)
    if run is None or run.status in ENDED or run.stop is not None:
        raise Conflict(f"Not sent: {task.id} has ended.")
    message = InboundMessage(
        channel=TASKS_CHANNEL,
        app="",
        message_id=key,
        chat_id="",
        principal=task.origin.principal,
        raw=msgspec.json.encode({"text": text}).decode(),
        received=now,
    )
    yield from stores.inbox.assign(message, task.session_id, run.id, steer=True)
    return (yield from wake_run(stores, run.id, now=now))


def cancel_subtask(
    stores: Stores, task: Task, *, ids: TaskIds, now: str
) -> Write[list[EventRecord]]:
    """Stop a subtask and all subtasks below it, without a report of its end."""
    run = yield from stores.runs.get_by_task(task.id)
    if run is None or run.status in ENDED:
        return []
    stop = StopRequest(task.origin.principal, TASKS_CHANNEL, STOPPED_BY_CREATOR)
    return (yield from stop_subtasks(stores, [run], stop, ids=ids, now=now))
