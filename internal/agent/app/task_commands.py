"""Taking in: what a person's words and wishes change, each in one transaction."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from internal.agent.app.runs.creation import (
    Submission,
    Submitted,
    TaskIds,
    create_task,
    inbox_message,
    open_session,
)
from internal.agent.app.runs.finalization import (
    RECALLED,
    cancel_idle_run,
    queue_undelivered_messages,
)
from internal.agent.domain.chats import InboundMessage, OutgoingMessage
from internal.agent.domain.errors import Conflict, NotFound, RunStopped
from internal.agent.domain.events.record import EventRecord
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.principals import Principal
from internal.agent.domain.tasks import ENDED, Channel, Origin, Status, StopRequest, Task
from internal.agent.store.access import AuditEntry
from internal.agent.store.database import Write
from internal.agent.store.inbox import InboxState
from internal.agent.store.stores import Stores

INTERRUPTED_REASON = "interrupted by a new message"


class Steered(msgspec.Struct, frozen=True):
    """What became of words for a session: steering for the run at work, or the next task."""

    taken_as: Literal["steering", "task"]
    task_id: TaskId
    run_id: RunId
    session_id: SessionId


def submit_task(
    stores: Stores, submission: Submission, principal: Principal, fresh: TaskIds, now: str
) -> Write[tuple[Submitted, list[EventRecord]]]:
    """Store a task, in its session, the one at hand in its scope, or a new one.

    Raises:
        NotFound: the session does not exist or belongs to somebody else.
        Conflict: the message that it comes from was taken in before.
    """
    if key := submission.idempotency_key:
        known = yield from stores.tasks.get_by_key(principal.id, key)
        run = None if known is None else (yield from stores.runs.get_by_task(known.id))
        if known is not None and run is not None:
            return Submitted(known.id, run.id, known.session_id, known.status), []
    session_id = yield from _session(stores, submission, principal, fresh, now)
    shown = yield from _add(stores, submission, principal, session_id, fresh, now)
    return Submitted(fresh.task_id, fresh.run_id, session_id, "queued"), shown


def steer(
    stores: Stores, submission: Submission, principal: Principal, fresh: TaskIds, now: str
) -> Write[tuple[Steered, list[EventRecord]]]:
    """Store words as steering while a run of the session has not committed its end, else a task.

    Raises:
        NotFound: the session does not exist or belongs to somebody else.
        Conflict: the message that they come from was taken in before.
    """
    session_id = yield from _session(stores, submission, principal, fresh, now)
    run = yield from stores.runs.get_active(session_id)
    if run is not None and run.stop is None:  # what is said after a stop is not for that run
        message = inbox_message(submission, fresh, principal, now)
        yield from stores.inbox.assign(message, session_id, run.id, steer=True)
        return Steered("steering", run.task_id, run.id, session_id), []
    shown = yield from _add(stores, submission, principal, session_id, fresh, now)
    return Steered("task", fresh.task_id, fresh.run_id, session_id), shown


def mark_handled(
    stores: Stores, message: InboundMessage, replies: Sequence[OutgoingMessage], now: str
) -> Write[bool]:
    """Settle an accepted message without a run, promising replies; False when it was settled."""
    if not (yield from stores.inbox.dismiss(message.channel, message.app, message.message_id)):
        return False
    for reply in replies:
        yield from stores.outbox.add(reply, now)
    return True


def stop_task(
    stores: Stores, task: Task, stopped: RunStopped, fresh: TaskIds, now: str
) -> Write[tuple[Status, list[EventRecord]]]:
    """Ask a running run to stop, or end one that rests. Returns the status now.

    Raises:
        Conflict: the task has ended.
    """
    run = yield from stores.runs.get_by_task(task.id)
    if run is None or run.status in ENDED:
        raise Conflict(f"The task has ended: {task.status}.")
    yield from stores.audit.add(AuditEntry(now, stopped.by, stopped.via, "task.stopped", task.id))
    if run.status == "running":
        request = StopRequest(stopped.by, stopped.via, stopped.reason)
        yield from stores.runs.request_stop(run.id, request)
        return "running", []
    shown = yield from cancel_idle_run(stores, run, task, stopped, fresh, now)
    return "cancelled", shown


def interrupt_session(
    stores: Stores, submission: Submission, principal: Principal, fresh: TaskIds, now: str
) -> Write[tuple[Submitted, RunId | None, list[EventRecord]]]:
    """Stop the run at work in a session; the words are its next task.

    They take along what was said to that run and not told to it yet. Returns the run that is asked
    to stop; None when none is running.

    Raises:
        NotFound: the session does not exist or belongs to somebody else.
        Conflict: the message that the words come from was taken in before.
    """
    session_id = yield from _session(stores, submission, principal, fresh, now)
    run = yield from stores.runs.get_active(session_id)
    running = run if run is not None and run.status == "running" else None
    untold = [] if running is None else (yield from stores.inbox.list_undelivered(running.id))
    words = "\n\n".join([*(each.text for each in untold), submission.instruction])
    submission = msgspec.structs.replace(submission, instruction=words)
    shown = yield from _add(stores, submission, principal, session_id, fresh, now)
    yield from stores.inbox.reassign([each.number for each in untold], fresh.run_id)
    if running is not None:
        request = StopRequest(principal.id, submission.channel, INTERRUPTED_REASON)
        yield from stores.runs.request_stop(running.id, request)
    made = Submitted(fresh.task_id, fresh.run_id, session_id, "queued")
    return made, None if running is None else running.id, shown


def _session(
    stores: Stores, submission: Submission, principal: Principal, fresh: TaskIds, now: str
) -> Write[SessionId]:
    """Return the session of a submission; who may use a scope is its channel's to check."""
    scope = submission.scope
    if submission.session_id is not None:
        session = yield from stores.sessions.get(submission.session_id)
        if session is None or not (principal.may("owner") or session.owner == principal.id):
            raise NotFound(f"There is no session {submission.session_id}.")
        return session.id
    if scope:
        session = yield from stores.sessions.get_current(submission.channel, scope)
        if session is not None:
            return session.id
    channel = submission.channel
    yield from open_session(stores, fresh.session_id, channel, principal, now, scope)
    return fresh.session_id


def _add(
    stores: Stores,
    submission: Submission,
    principal: Principal,
    session_id: SessionId,
    fresh: TaskIds,
    now: str,
) -> Write[list[EventRecord]]:
    message = inbox_message(submission, fresh, principal, now)
    origin = Origin(
        submission.channel,
        principal.id,
        message.app,
        message.chat_id,
        message.message_id,
        submission.direct,
    )
    shown = yield from create_task(stores, submission, session_id, fresh, origin, now)
    yield from stores.inbox.assign(message, session_id, fresh.run_id, steer=False)
    return shown


RecallResult = Literal["unqueued", "unsaid", "stopped", "nothing"]
"""It was not taken in; it was not told to its run; its run ends; or it is too late."""


class RecallRequest(NamedTuple):
    """Which message is taken back, and by whom."""

    channel: Channel
    app: str
    message_id: str
    by: str


def recall_message(
    stores: Stores, recall: RecallRequest, fresh: TaskIds, now: str
) -> Write[tuple[RecallResult, RunId | None, list[EventRecord]]]:
    """Undo what a message began, as far as it is not answered.

    What others said to a run that ends so becomes the next task. Returns the running run that is
    asked to stop, None when none is.
    """
    place = yield from stores.inbox.get_state(recall.channel, recall.app, recall.message_id)
    if place is None or place.status == "handled":
        return "nothing", None, []
    if place.status == "accepted":
        yield from stores.inbox.dismiss(recall.channel, recall.app, recall.message_id)
        return "unqueued", None, []
    if place.steer and place.status == "assigned":
        yield from stores.inbox.withdraw(place.number)
        return "unsaid", None, []
    return (yield from _end_run(stores, place, recall, fresh, now))


def _end_run(
    stores: Stores, place: InboxState, recall: RecallRequest, fresh: TaskIds, now: str
) -> Write[tuple[RecallResult, RunId | None, list[EventRecord]]]:
    """End the run that a message alone has begun."""
    run = yield from stores.runs.get(place.run_id)
    task = None if run is None else (yield from stores.tasks.get(run.task_id))
    if run is None or task is None or run.status in ENDED or place.steer or place.other_messages:
        return "nothing", None, []
    shown = yield from queue_undelivered_messages(stores, run, task, fresh, now)
    if run.status == "running":
        request = StopRequest(recall.by, recall.channel, RECALLED)
        yield from stores.runs.request_stop(run.id, request)
        return "stopped", run.id, shown
    stopped = RunStopped(recall.by, recall.channel, RECALLED)
    shown += yield from cancel_idle_run(stores, run, task, stopped, fresh, now)
    return "stopped", None, shown
