"""Task commands: the transactions behind submit, steer, interrupt, stop and recall."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from internal.agent.app.edited_messages import withdraw_edits
from internal.agent.app.files.session_files import use_attachments
from internal.agent.app.idempotency import RequestKey, find_result, save_result
from internal.agent.app.repeated_requests import find_repeated, save_request
from internal.agent.app.runs.creation import (
    StoredTask,
    Submission,
    Submitted,
    TaskIds,
    create_task,
    inbox_message,
    load_task,
    open_session,
)
from internal.agent.app.runs.finalization import (
    INTERRUPTED_BY_OTHER,
    INTERRUPTED_REASON,
    RECALLED,
    end_idle_run,
    joined_attachments,
    joined_prompt,
    queue_undelivered_messages,
    stop_outcome,
)
from internal.agent.app.runs.resume import copy_turn
from internal.agent.app.runs.undelivered import waiting_event
from internal.agent.app.runs.visibility import Writing, could_see_run
from internal.agent.app.subtasks.endings import wake_run
from internal.agent.domain.chats import InboundMessage, OutgoingMessage
from internal.agent.domain.delegation.reports import TASK_ENDS_CHANNEL
from internal.agent.domain.errors import (
    Conflict,
    NotFound,
    RunStopped,
    TooManyTasks,
    WrittenEarlier,
)
from internal.agent.domain.events.envelope import EventRecord, RunIds
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.principals import AuditEntry, Principal
from internal.agent.domain.tasks import (
    ENDED,
    Channel,
    Origin,
    Run,
    Session,
    Status,
    StopRequest,
    Task,
    may_control,
)
from internal.agent.ports.runtime import RunSlot
from internal.agent.store.chats import InboxState
from internal.agent.store.database import Read, Write
from internal.agent.store.stores import Stores

_ALL_MESSAGES = 2**62
"""Above the number of any message."""


class Steered(msgspec.Struct, frozen=True):
    """What a message to a session became: steering of the active run, or the next task."""

    taken_as: Literal["steering", "task"]
    task_id: TaskId
    run_id: RunId
    session_id: SessionId


class _Stopped(msgspec.Struct, frozen=True):
    """The status of a task after its stop was requested."""

    status: Status


class Interruption(NamedTuple):
    """A run that is interrupted, and the request to stop it."""

    run_id: RunId
    request: StopRequest


RecallResult = Literal["unqueued", "unsaid", "stopped", "nothing"]
"""Not processed yet; not delivered to its run yet; its run is stopped; or too late to recall."""


class RecallRequest(NamedTuple):
    """The message that is recalled, and by which principal; with `by_sender` by its writer."""

    channel: Channel
    app: str
    message_id: str
    by: str
    by_sender: bool = False


class RecalledRun(NamedTuple):
    """A running run that is to stop because its message was recalled, and by which principal."""

    run_id: RunId
    by: str


def submit_task(
    stores: Stores,
    submission: Submission,
    principal: Principal,
    *,
    ids: TaskIds,
    now: str,
    slot: RunSlot | None = None,
) -> Write[tuple[Submitted, StoredTask]]:
    """Store a task in its session, in the current session of its scope, or in a new one.

    With a `slot` its run is claimed as well, if its lane is free.

    Raises:
        NotFound: the session does not exist or belongs to another person.
        TooManyTasks: so many tasks of the person wait that no more are accepted.
        Conflict: the message that contains the task was handled before.
    """
    if key := submission.idempotency_key:
        known = yield from stores.tasks.get_by_key(principal.id, key)
        run = None if known is None else (yield from stores.runs.get_by_task(known.id))
        if known is not None and run is not None:
            return Submitted(known.id, run.id, known.session_id, known.status), StoredTask([])
    repeated = yield from find_repeated(stores, submission.request, principal.id, now=now)
    if repeated is not None:
        return repeated, StoredTask([])
    session_id = yield from _session_for(stores, submission, principal, ids=ids, now=now)
    created = yield from _create_task(
        stores, submission, principal, session_id, ids=ids, now=now, slot=slot
    )
    submitted = Submitted(ids.task_id, ids.run_id, session_id, "queued")
    yield from save_request(stores, submission.request, principal.id, submitted, now=now)
    return submitted, created


def steer(
    stores: Stores,
    submission: Submission,
    principal: Principal,
    *,
    ids: TaskIds,
    now: str,
    slot: RunSlot | None = None,
) -> Write[tuple[tuple[Steered, bool], StoredTask]]:
    """Store a message as steering of the session's active run, else as the next task.

    Only who may control the run steers it, a chat message only a run of its own thread, and a text
    no run that began after it was written.
    A repeated idempotency key returns the first result. The second result is True for a task that
    another run comes before.

    Raises:
        NotFound: the session does not exist or belongs to another person.
        Conflict: the message was handled before, or the task in the background has ended.
    """
    request = RequestKey(
        principal.id,
        "steer",
        submission.idempotency_key,
        submission.joins or submission.session_id or "",
    )
    if (first := (yield from find_result(stores, request, Steered))) is not None:
        return (first, False), StoredTask([])
    submission = msgspec.structs.replace(submission, idempotency_key=None)
    session_id = yield from _session_for(stores, submission, principal, ids=ids, now=now)
    run = yield from _run_to_steer(stores, session_id, submission.joins)
    message, is_waiting = inbox_message(submission, principal, ids=ids, now=now), False
    # a message after a stop is not for the stopped run
    if (
        run is not None
        and run.stop is None
        and (yield from _may_join(stores, run, message, principal, writing=submission.writing))
    ):
        yield from use_attachments(stores, submission.attachments, session_id, principal.id)
        number = yield from stores.inbox.assign(message, session_id, run.id, steer=True)
        yield from _assign_joined(stores, submission, session_id, run.id)
        waits = waiting_event(
            RunIds.of(run), number, "waiting", text=submission.instruction, now=now
        )
        created = StoredTask([*(yield from wake_run(stores, run.id, now=now)), waits])
        steered = Steered("steering", run.task_id, run.id, session_id)
    else:
        created = yield from _create_task(
            stores, submission, principal, session_id, ids=ids, now=now, slot=slot
        )
        steered = Steered("task", ids.task_id, ids.run_id, session_id)
        if run is not None:
            runs = yield from stores.runs.list_unfinished(session_id)
            is_waiting = is_behind(runs, ids.run_id)
    yield from save_result(stores, request, steered, session_id, now=now)
    return (steered, is_waiting), created


def is_behind(unfinished: Sequence[Run], run_id: RunId) -> bool:
    """Return True if another of the unfinished runs of a session comes before a run."""
    runs = [
        run
        for run in unfinished
        if run.stop is None and run.status != "waiting" and run.lane == run.session_id
    ]
    return len(runs) > 1 and runs[0].id != run_id


def _run_to_steer(
    stores: Stores, session_id: SessionId, task_id: TaskId | None
) -> Read[Run | None]:
    if task_id is None:
        return (yield from stores.runs.get_active(session_id))
    run = yield from stores.runs.get_by_task(task_id)
    if run is None or run.status in ENDED or run.stop is not None:
        raise Conflict(
            "This task has ended; it takes no more messages.", reason_code="task_takes_no_messages"
        )
    return run


def fork_session(
    stores: Stores, source: Session, fork: Session, *, run_id: RunId | None, includes_run: bool
) -> Write[None]:
    """Store a session with the messages of another one before a run, or up to its end.

    Raises:
        NotFound: the session has no such run.
        Conflict: a run that is to be included has no messages yet.
    """
    last = _ALL_MESSAGES
    if run_id is not None:
        run = yield from stores.runs.get(run_id)
        if run is None or run.session_id != source.id:
            raise NotFound(
                f"This session has no run {run_id}.", reason_code="no_run_in_session", name=run_id
            )
        numbers = yield from stores.sessions.list_numbers_of_run(source.id, run_id)
        if numbers is not None:
            last = numbers[1] if includes_run else numbers[0] - 1
        elif includes_run:
            raise Conflict(
                "This run has not ended, or left no messages to branch from.",
                reason_code="cannot_branch",
            )
    yield from stores.sessions.add(fork)
    yield from stores.sessions.copy_messages(source.id, fork.id, last)
    yield from stores.files.copy_uses(source.id, fork.id)


def interrupt_session(
    stores: Stores, submission: Submission, principal: Principal, *, ids: TaskIds, now: str
) -> Write[tuple[Submitted, Interruption | None, list[EventRecord]]]:
    """Store a message as the next task and stop the session's active run.

    A run that the message could not steer goes on. Steering that the run has not read is moved
    into the next task, that of other people into tasks of their own. A run that waits for its tasks
    is ended here. Returns which running run to stop, None for none.

    Raises:
        NotFound: the session does not exist or belongs to another person.
        Conflict: the message was handled before.
    """
    session_id = yield from _session_for(stores, submission, principal, ids=ids, now=now)
    active = yield from stores.runs.get_active(session_id)
    message = inbox_message(submission, principal, ids=ids, now=now)
    submitted = Submitted(ids.task_id, ids.run_id, session_id, "queued")
    if (
        active is None
        or not (active.status == "running" or active.awaits_tasks)
        or not (
            yield from _may_join(stores, active, message, principal, writing=submission.writing)
        )
    ):
        create = _create_task(stores, submission, principal, session_id, ids=ids, now=now)
        return submitted, None, (yield from create).events
    unread = yield from stores.inbox.list_undelivered(active.id)
    own = [
        each
        for each in unread
        if each.principal == principal.id and each.channel != TASK_ENDS_CHANNEL
    ]
    text = "\n\n".join([*(each.text for each in own), submission.instruction])
    submission = msgspec.structs.replace(
        submission,
        instruction=text,
        prompt=joined_prompt([*own, submission]),
        attachments=joined_attachments([*own, submission]),
    )
    created = yield from _create_task(stores, submission, principal, session_id, ids=ids, now=now)
    events = created.events
    yield from stores.inbox.reassign([each.number for each in own], ids.run_id)
    task = yield from load_task(stores, active)
    events += yield from queue_undelivered_messages(
        stores, active, task, ids=ids.another(), now=now
    )
    is_own = task.origin.principal == principal.id
    reason = INTERRUPTED_REASON if is_own else INTERRUPTED_BY_OTHER
    request = StopRequest(principal.id, submission.channel, reason)
    if active.awaits_tasks:
        outcome = stop_outcome(request.to_error())
        end = end_idle_run(stores, active, task, outcome=outcome, ids=ids.another(), now=now)
        events += yield from end
        return submitted, None, events
    yield from stores.runs.request_stop(active.id, request)
    return submitted, Interruption(active.id, request), events


def move_to_background(stores: Stores, task: Task) -> Write[None]:
    """Give an unfinished task a lane of its own, so that the next one of its session can start.

    Raises:
        Conflict: the task has ended.
    """
    run = yield from stores.runs.get_by_task(task.id)
    if run is None or not (yield from stores.subtasks.move_to_background(task.id, run.id)):
        raise Conflict(
            f"The task has already ended: {task.status}.",
            reason_code="task_ended",
            status=task.status,
        )


def stop_task(
    stores: Stores,
    task: Task,
    stopped: RunStopped,
    *,
    ids: TaskIds,
    now: str,
    idempotency_key: str | None = None,
    writing: Writing = None,
) -> Write[tuple[Status, RunId | None, list[EventRecord]]]:
    """Request the stop of a running run, or end an idle one.

    Returns the status of the task and the id of the running run to stop, None if there is none. A
    repeated idempotency key changes nothing and returns the first status. `writing` says when a
    text was written that does not name the task.

    Raises:
        Conflict: the task has ended.
        WrittenEarlier: the text was written before the run began.
    """
    request = RequestKey(stopped.by, "stop", idempotency_key, task.id)
    if (first := (yield from find_result(stores, request, _Stopped))) is not None:
        return first.status, None, []
    run = yield from stores.runs.get_by_task(task.id)
    if run is None or run.status in ENDED:
        raise Conflict(
            f"The task has already ended: {task.status}.",
            reason_code="task_ended",
            status=task.status,
        )
    if not (yield from could_see_run(stores, run, task, writing)):
        raise WrittenEarlier(
            "This was written before the task began: nothing was stopped.",
            reason_code="written_before_task",
        )
    yield from stores.audit.add(
        AuditEntry(now, stopped.by, stopped.via, "task.stopped", task.id, "")
    )
    if run.status == "running":
        stop = StopRequest(stopped.by, stopped.via, stopped.reason)
        yield from stores.runs.request_stop(run.id, stop)
        result, events = _Stopped("running"), list[EventRecord]()
    else:
        outcome = stop_outcome(stopped)
        result = _Stopped("cancelled")
        events = yield from end_idle_run(stores, run, task, outcome=outcome, ids=ids, now=now)
    yield from save_result(stores, request, result, task.session_id, now=now)
    return result.status, run.id if result.status == "running" else None, events


def recall_message(
    stores: Stores, recall: RecallRequest, *, ids: TaskIds, now: str
) -> Write[tuple[RecallResult, RecalledRun | None, list[EventRecord]]]:
    """Undo the effects of a message, unless it is answered already.

    Messages of others to a run that ends because of it become the next tasks. Returns the running
    run to stop, None if there is none.
    """
    state = yield from stores.inbox.get_state(recall.channel, recall.app, recall.message_id)
    if state is not None and state.status == "returned":  # its writer wants it back no more
        yield from stores.inbox.take_back(state.number)
    if state is None or state.status in {"handled", "withdrawn", "returned"}:
        return "nothing", None, []
    if state.status == "accepted":
        yield from stores.inbox.dismiss(recall.channel, recall.app, recall.message_id)
        return "unqueued", None, []
    if state.run_id:
        yield from withdraw_edits(stores, state.run_id, [recall.message_id])
    if state.steer and state.status == "assigned":
        yield from stores.inbox.withdraw(state.number)
        return "unsaid", None, []
    return (yield from _recall_task(stores, state, recall, ids=ids, now=now))


def mark_handled(
    stores: Stores, message: InboundMessage, replies: Sequence[OutgoingMessage], *, now: str
) -> Write[bool]:
    """Mark an accepted message as handled without a run and queue replies.

    Returns False if it was handled before.
    """
    if not (yield from stores.inbox.dismiss(message.channel, message.app, message.message_id)):
        return False
    for reply in replies:
        yield from stores.outbox.add(reply, now)
    return True


def _recall_task(
    stores: Stores, state: InboxState, recall: RecallRequest, *, ids: TaskIds, now: str
) -> Write[tuple[RecallResult, RecalledRun | None, list[EventRecord]]]:
    """End the run that only this message started."""
    run = yield from stores.runs.get(state.run_id)
    task = None if run is None else (yield from stores.tasks.get(run.task_id))
    if run is None or task is None or run.status in ENDED or state.steer or state.other_messages:
        return "nothing", None, []
    events = yield from queue_undelivered_messages(stores, run, task, ids=ids, now=now)
    by = task.origin.principal if recall.by_sender else recall.by
    if run.status == "running":
        request = StopRequest(by, recall.channel, RECALLED)
        yield from stores.runs.request_stop(run.id, request)
        return "stopped", RecalledRun(run.id, by), events
    outcome = stop_outcome(RunStopped(by, recall.channel, RECALLED))
    events += yield from end_idle_run(stores, run, task, outcome=outcome, ids=ids, now=now)
    return "stopped", None, events


def _session_for(
    stores: Stores, submission: Submission, principal: Principal, *, ids: TaskIds, now: str
) -> Write[SessionId]:
    """Return the session of a submission. The channel checks the right to use a scope."""
    channel, scope = submission.channel, submission.scope
    if submission.session_id is not None:
        session = yield from stores.sessions.get(submission.session_id)
        if session is None or not (principal.may("owner") or session.owner == principal.id):
            raise NotFound(
                f"There is no session {submission.session_id}.",
                reason_code="no_session",
                name=submission.session_id or "",
            )
        return session.id
    if scope:
        session = yield from stores.sessions.get_current(channel, scope)
        if session is not None:
            return session.id
    yield from open_session(
        stores,
        ids.session_id,
        principal,
        channel=channel,
        now=now,
        scope=scope,
        one_shot=submission.one_shot,
    )
    return ids.session_id


def _assign_joined(
    stores: Stores, submission: Submission, session_id: SessionId, run_id: RunId
) -> Write[None]:
    """Assign the messages to a run whose texts are in the instruction of its submission."""
    for joined in submission.joined:
        yield from stores.inbox.assign(joined, session_id, run_id, steer=False)


def _may_join(
    stores: Stores, run: Run, message: InboundMessage, principal: Principal, *, writing: Writing
) -> Read[bool]:
    """Return True if a message may steer or interrupt a run: whose, from where, written when.

    Runs and messages from outside of chats have no thread.
    """
    task = yield from load_task(stores, run)
    origin = task.origin
    in_chats = bool(message.chat_id and origin.chat_id)
    is_elsewhere = in_chats and message.thread_id != origin.thread_id
    if is_elsewhere or not may_control(principal, task):
        return False
    return (yield from could_see_run(stores, run, task, writing))


def _create_task(
    stores: Stores,
    submission: Submission,
    principal: Principal,
    session_id: SessionId,
    *,
    ids: TaskIds,
    now: str,
    slot: RunSlot | None = None,
) -> Write[StoredTask]:
    most = submission.spec.limits.max_waiting
    if most is not None and (yield from stores.runs.count_new(principal.id)) >= most:
        raise TooManyTasks(most)
    message = inbox_message(submission, principal, ids=ids, now=now)
    origin = Origin(
        submission.channel,
        principal.id,
        message.app,
        message.chat_id,
        message.message_id,
        submission.direct,
        message.thread_id,
    )
    if submission.owner or submission.resumes is not None:  # a terminal claims its own runs
        slot = None
    yield from stores.inbox.assign(message, session_id, ids.run_id, steer=False)
    yield from _assign_joined(stores, submission, session_id, ids.run_id)
    created = yield from create_task(
        stores, submission, session_id, ids=ids, origin=origin, now=now, slot=slot
    )
    if submission.resumes is not None:
        yield from stores.runs.forget_crashes(submission.resumes)
        yield from copy_turn(
            stores, submission.resumes, ids.run_id, instruction=submission.model_text
        )
    return created
