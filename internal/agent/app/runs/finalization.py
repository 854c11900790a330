"""Ending: everything that is true at a run's end becomes true in one transaction."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from internal.agent.app.runs.creation import Submission, TaskIds, create_task
from internal.agent.app.runs.questions import close_question
from internal.agent.domain.chats import OutgoingMessage
from internal.agent.domain.errors import LeaseLost, RunStopped
from internal.agent.domain.events.envelope import RunIds
from internal.agent.domain.events.event import Event, NodeKind
from internal.agent.domain.events.record import EventRecord
from internal.agent.domain.events.types import (
    LifecycleUpdated,
    NodeFailed,
    ResultCancelled,
    ToolCompleted,
)
from internal.agent.domain.messages import Message
from internal.agent.domain.questions import Answer
from internal.agent.domain.tasks import Origin, Run, Task
from internal.agent.domain.usage import Usage
from internal.agent.store.database import Write
from internal.agent.store.runs import RunEnd
from internal.agent.store.stores import Stores

RECALLED = "the message was recalled"
"""Why a run is stopped that nobody wants an answer of any more."""


class RunResult(msgspec.Struct, frozen=True):
    """How a run ends and what it leaves: messages for the session, use of each model, a title.

    `silent`: its chat is not promised a reply.
    """

    end: RunEnd
    messages: Sequence[Message] = ()
    used: Mapping[str, tuple[Usage, float | None]] = {}
    title: str = ""
    silent: bool = False


def finalize_run(
    stores: Stores, run: Run, task: Task, ending: RunResult, fresh: TaskIds
) -> Write[list[EventRecord]]:
    """Store an ending. Steering that the run did not take becomes the session's next task.

    Not after a person's stop, which is final. Returns what is to be shown of that next task.

    Raises:
        Fenced: another process runs the run now.
    """
    end = ending.end
    if not (yield from stores.runs.end(run.id, run.fence, end)):
        raise LeaseLost(f"{run.id} is run by another process")
    yield from stores.tasks.set_status(task.id, end.status, end.stop_reason, now=end.ended)
    yield from stores.sessions.add_messages(task.session_id, run.id, ending.messages, now=end.ended)
    if ending.title:
        yield from stores.sessions.set_title_if_empty(task.session_id, ending.title)
    for model, (usage, cost) in ending.used.items():
        yield from stores.usage.add(
            run.session_id, run.id, model, usage=usage, cost=cost, now=end.ended
        )
    yield from stores.questions.close_of_run(run.id, end.ended)
    shown: list[EventRecord] = []
    if end.stop_reason == "user_stop":  # a person's stop is final: what waits for the run goes too
        yield from stores.inbox.withdraw_all(run.id)
    else:
        shown = yield from queue_undelivered_messages(stores, run, task, fresh, end.ended)
    yield from stores.inbox.mark_handled(run.id)
    if task.origin.chat_id and not ending.silent:
        yield from stores.outbox.add(_reply(run, task, end), end.ended)
    return shown


def cancel_idle_run(
    stores: Stores, run: Run, task: Task, stopped: RunStopped, fresh: TaskIds, now: str
) -> Write[list[EventRecord]]:
    """End a run that is queued or waiting, by a person's will.

    Raises:
        Conflict: it is running or has ended meanwhile.
    """
    events = list(find_unfinished_work((yield from stores.events.list_by_run(run.id))))
    found = yield from stores.questions.get_open_of_run(run.id)
    if found is not None:
        question, name = found.question.id, stopped.name
        no = Answer(question, "reject", stopped.by, stopped.via, name=name, at=now)
        answered = yield from close_question(stores, found, no, now)
        events += [] if answered is None else [answered]
    events += [
        LifecycleUpdated(status="cancelled", phase="stop", stop_reason="user_stop"),
        ResultCancelled(reason=stopped.reason, requested_by=stopped.by, requested_via=stopped.via),
    ]
    ids = RunIds(run.session_id, run.task_id, run.id, run.parent_run_id)
    shown = yield from stores.events.append_idle(ids, events, now)
    end = RunEnd("cancelled", "user_stop", run.usage, run.cost, run.answer, "", now)
    ending = RunResult(end, silent=stopped.reason == RECALLED)
    shown += yield from finalize_run(stores, run, task, ending, fresh)
    return shown


def _reply(run: Run, task: Task, end: RunEnd) -> OutgoingMessage:
    """Return the one reply of a run to the chat that it came from."""
    origin = task.origin
    return OutgoingMessage(
        key=f"{run.id}:answer",
        channel=origin.channel,
        app=origin.app,
        chat_id=origin.chat_id,
        reply_to=origin.message_id,
        body=end.answer,
        run_id=run.id,
        stop_reason=end.stop_reason,
        error=end.error,
    )


def queue_undelivered_messages(
    stores: Stores, run: Run, task: Task, fresh: TaskIds, now: str
) -> Write[list[EventRecord]]:
    """Make the steering that the run has not taken a task of its own."""
    late = yield from stores.inbox.list_undelivered(run.id)
    if not late:
        return []
    first = late[0]
    origin = Origin(
        first.channel,
        first.principal,
        first.app,
        first.chat_id,
        first.message_id,
        task.origin.direct,
    )
    submission = Submission(
        instruction="\n\n".join(words.text for words in late),
        brief=task.brief,
        channel=first.channel,
        session_id=task.session_id,
    )
    shown = yield from create_task(stores, submission, task.session_id, fresh, origin, now)
    yield from stores.inbox.reassign([words.number for words in late], fresh.run_id)
    return shown


UNKNOWN = "interrupted, outcome unknown"


INTERRUPTED = "interrupted"


class _Begun(msgspec.Struct):
    """The few fields of a stored envelope that matter here."""

    event: str
    node_id: str = ""
    node_kind: NodeKind = "step"
    payload: dict[str, Any] = {}


def find_unfinished_work(
    log: Iterable[EventRecord], keep: frozenset[str] = frozenset(), error: str = INTERRUPTED
) -> list[Event]:
    """Return the events that close what is open; calls in `keep` stay open: they run again.

    Steps of the plan are not closed: their state is the plan's.
    """
    nodes: dict[str, _Begun] = {}
    calls: dict[str, _Begun] = {}
    for record in log:
        match record.event:
            case "workflow.node.started":
                begun = msgspec.json.decode(record.json, type=_Begun)
                if not begun.node_id.startswith("step:"):
                    nodes[begun.node_id] = begun
            case "workflow.node.completed" | "workflow.node.failed":
                nodes.pop(msgspec.json.decode(record.json, type=_Begun).node_id, None)
            case "workflow.tool.started":
                begun = msgspec.json.decode(record.json, type=_Begun)
                calls[begun.node_id] = begun
            case "workflow.tool.completed":
                calls.pop(msgspec.json.decode(record.json, type=_Begun).node_id, None)
            case _:
                pass
    closing: list[Event] = [
        ToolCompleted(
            call_id=call_id,
            tool_name=begun.payload.get("tool_name", ""),
            duration_ms=0,
            error=UNKNOWN,
        )
        for call_id, begun in calls.items()
        if call_id not in keep
    ]
    # the inner ones first: an iteration ends before its stage
    for node_id, begun in reversed(nodes.items()):
        closing.append(
            NodeFailed(
                node_id=node_id,
                kind=begun.node_kind,
                phase=node_id.partition(":")[0],
                error=error,
                recoverable=True,
            )
        )
    return closing
