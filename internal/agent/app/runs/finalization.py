"""Finalization: the statements that end a run, all in one transaction."""

import logging
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from internal.agent.app.runs.creation import Submission, TaskIds, create_task, load_task
from internal.agent.app.runs.questions import close_question
from internal.agent.app.runs.stopped_calls import (
    PROCESS_ENDED,
    CallStop,
    call_stop,
    close_call,
)
from internal.agent.app.runs.undelivered import give_back
from internal.agent.app.subtasks.endings import tell_end, wake_waiting_runs
from internal.agent.app.subtasks.results import load_results
from internal.agent.domain.artifacts import Artifact, names_file
from internal.agent.domain.chats import (
    OutgoingMessage,
    edited_message_id,
    file_key,
    reply_key,
)
from internal.agent.domain.delegation.reports import TASK_ENDS_CHANNEL, TASKS_CHANNEL
from internal.agent.domain.delegation.state import SubtaskState
from internal.agent.domain.errors import MESSAGE_FILTERED_CODE, LeaseLost, RunStopped, StoreCorrupt
from internal.agent.domain.events.envelope import EventRecord, RunIds, milliseconds_between
from internal.agent.domain.events.types import (
    Event,
    LifecycleUpdated,
    NodeFailed,
    NodeKind,
    ResultCancelled,
    ResultFinal,
    RunTotal,
    ToolCompleted,
)
from internal.agent.domain.ids import RunId, TaskId
from internal.agent.domain.messages import Message, user_message
from internal.agent.domain.questions import CLOCK, NOBODY, Answer
from internal.agent.domain.react.steps import TurnOutcome
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tasks import (
    ENDED,
    STATUS_BY_STOP_REASON,
    Attachment,
    Origin,
    Run,
    StopRequest,
    Task,
)
from internal.agent.domain.text import format_size, truncate_json
from internal.agent.domain.usage import Spending, Usage
from internal.agent.store.call_outputs import NO_OUTPUTS, CallOutputs
from internal.agent.store.chats import Steering
from internal.agent.store.checkpoints import StoredCheckpoint, decode_checkpoint, readable_turn
from internal.agent.store.database import Read, Write
from internal.agent.store.runs import RunEnd
from internal.agent.store.stores import Stores

logger = logging.getLogger(__name__)

RECALLED = "the message was recalled"
"""Stop reason of a run whose message was recalled: it leaves no reply."""

LEFT_CHAT = "the bot was removed from the chat"
"""Stop reason of a run whose chat cannot be written to any more: it leaves no reply."""

INTERRUPTED_REASON = "interrupted by a new message"
INTERRUPTED_BY_OTHER = "interrupted by a message of another person"
STOPPED_BY_CREATOR = "stopped by the task that created it"
PLAN_REJECTED = "the plan was rejected"

STOP_CODES = {
    "stopped": "stopped",
    PLAN_REJECTED: "plan_rejected",
    RECALLED: "recalled",
    LEFT_CHAT: "left_chat",
    INTERRUPTED_REASON: "interrupted",
    INTERRUPTED_BY_OTHER: "interrupted_by_other",
    STOPPED_BY_CREATOR: "creator",
}
"""The `reason_code` of `workflow.result.cancelled` by its reason."""

INTERRUPTED = "interrupted"


class RunResult(msgspec.Struct, frozen=True):
    """The end of a run, its messages for the session, and its usage by model.

    A `silent` run sends no reply to its chat. `told` are the subtasks whose ends it knows. `by` and
    `via` identify the person who stopped it; `is_recalled`: by recalling its message.
    """

    end: RunEnd
    messages: Sequence[Message] = ()
    usage: Mapping[str, tuple[Usage, float | None]] = {}
    silent: bool = False
    told: frozenset[TaskId] = frozenset()
    by: str = ""
    via: str = ""
    is_recalled: bool = False


def finalize_run(
    stores: Stores, run: Run, task: Task, *, result: RunResult, ids: TaskIds
) -> Write[list[EventRecord]]:
    """Store the end of a run, with its reply and the messages with its files to the chat.

    A run that was stopped or whose plan was rejected sends no files.

    Steering that the run has not read becomes the next tasks of the session, or is given back if
    the run was stopped or failed. Returns the events of those tasks.

    Raises:
        LeaseLost: another process executes the run.
    """
    end = result.end
    if not (yield from stores.runs.end(run.id, run.fence, end)):
        raise LeaseLost(f"{run.id} is run by another process")
    yield from stores.tasks.set_status(task.id, end.status, end.stop_reason, now=end.ended)
    if not task.is_subtask:
        yield from stores.sessions.add_messages(
            task.session_id, run.id, result.messages, now=end.ended
        )
    for model, (usage, cost) in result.usage.items():
        yield from stores.usage.save(
            run, task.origin.principal, model, usage=usage, cost=cost, now=end.ended
        )
    yield from stores.usage.add_to_sums(run.id)
    yield from stores.questions.close_of_run(run.id, end.ended)
    if end.status == "completed":
        events = yield from queue_undelivered_messages(stores, run, task, ids=ids, now=end.ended)
    else:
        events = yield from give_back(stores, run, now=end.ended, silent=result.silent)
    yield from stores.inbox.mark_handled(run.id)
    if task.origin.chat_id and not result.silent and not task.is_subtask:
        yield from stores.outbox.add(_reply(run, task, end), end.ended)
        if end.status != "cancelled":  # a failed run may have made files that help
            artifacts = yield from _artifacts_to_send(stores, run, result.told)
            for message in _file_messages(run, task, artifacts, end.answer):
                yield from stores.outbox.add(message, end.ended)
    events += yield from _settle_subtasks(stores, run, task, result, ids=ids, now=end.ended)
    return events


def _artifacts_to_send(stores: Stores, run: Run, told: frozenset[TaskId]) -> Read[list[Artifact]]:
    """Return the files of a run, and of the subtasks whose ends it knows."""
    found = yield from stores.artifacts.list_of_run(run.id)
    for result in (yield from load_results(stores, sorted(told))):
        found += result.artifacts
    return list({each.name: each for each in found}.values())


def _settle_subtasks(
    stores: Stores, run: Run, task: Task, result: RunResult, *, ids: TaskIds, now: str
) -> Write[list[EventRecord]]:
    """Store the effects of the end of a run on its subtasks, and on runs that wait for it.

    The stop or interruption of a run also stops its subtasks. Otherwise the ends of subtasks that
    the run does not know are reported to others.
    """
    if run.awaits_tasks:
        yield from stores.subtasks.clear_waits(run.id)
    if result.told:
        yield from stores.subtasks.mark_reported(result.told)
    events: list[EventRecord] = []
    children = yield from stores.subtasks.list_of_run(run.id)
    if not children:
        pass
    elif result.end.stop_reason in {"user_stop", "interrupted"}:
        reason = RECALLED if result.is_recalled else ""
        stop = StopRequest(result.by or NOBODY, result.via or CLOCK, reason)
        events += yield from stop_subtasks(stores, children, stop, ids=ids, now=now)
    else:
        for ended in (yield from _list_unreported(stores, run.id)):
            [told] = yield from load_results(stores, [ended])
            own = ids.for_task(ended)
            events += yield from tell_end(stores, told.run, told.task, ids=own, now=now)
    if task.is_subtask:
        events += yield from wake_waiting_runs(stores, task.id, now=now)
        for dependent in (yield from stores.subtasks.take_dependents(task.id)):
            own = ids.for_task(dependent)
            events += yield from _release_dependent(
                stores, dependent, run, result.end, ids=own, now=now
            )
        if result.silent or result.end.stop_reason == "user_stop":  # who stopped it knows
            yield from stores.subtasks.mark_reported([task.id])
        if not result.silent:
            events += yield from tell_end(stores, run, task, ids=ids.for_task(task.id), now=now)
    return events


def _list_unreported(stores: Stores, run_id: RunId) -> Read[list[TaskId]]:
    """Return the ended subtasks of a run and of its ended subtasks that nobody was told about."""
    found = yield from stores.subtasks.list_unreported(run_id)
    for child in (yield from stores.subtasks.list_of_run(run_id)):
        if child.status in ENDED:
            found += yield from _list_unreported(stores, child.id)
    return found


def stop_subtasks(
    stores: Stores, runs: Sequence[Run], stop: StopRequest, *, ids: TaskIds, now: str
) -> Write[list[EventRecord]]:
    """Stop the runs of subtasks and all below them, without reports of their ends."""
    yield from stores.subtasks.mark_reported([run.task_id for run in runs])
    events: list[EventRecord] = []
    for run in runs:
        current = yield from stores.runs.get(run.id)  # the end of another may have ended it
        own = ids.for_task(run.task_id)
        if current is None:
            continue
        if current.status == "running":
            yield from stores.runs.request_stop(run.id, stop)
        elif current.status in ENDED:
            below = yield from stores.subtasks.list_of_run(run.id)
            events += yield from stop_subtasks(stores, below, stop, ids=own, now=now)
        else:
            task = yield from load_task(stores, current)
            end = partial(
                end_idle_run, stores, current, task, outcome=stop_outcome(stop.to_error())
            )
            events += yield from end(ids=own, now=now)
    return events


def _release_dependent(
    stores: Stores, task_id: TaskId, run: Run, end: RunEnd, *, ids: TaskIds, now: str
) -> Write[list[EventRecord]]:
    """Let a task start that waited for an ended one, or end it if that one failed."""
    if end.status == "completed":
        yield from stores.subtasks.unblock(task_id)
        return []
    dependent = yield from stores.runs.get_by_task(task_id)
    if dependent is None or dependent.status in ENDED:
        return []
    task = yield from load_task(stores, dependent)
    blocked = f"not started: {run.place or run.task_id}, which it depends on, {end.status}"
    outcome = TurnOutcome("blocked", "", blocked)
    return (yield from end_idle_run(stores, dependent, task, outcome=outcome, ids=ids, now=now))


def end_idle_run(
    stores: Stores,
    run: Run,
    task: Task,
    *,
    outcome: TurnOutcome,
    ids: TaskIds,
    now: str,
    with_turn: bool = True,
) -> Write[list[EventRecord]]:
    """End a queued or waiting run, from its last checkpoint. Returns the events.

    Without its Turn only the task is kept, not what the run did; for a Turn that cannot be stored.

    Raises:
        Conflict: the run is running or has ended.
    """
    turn = (yield from load_turn_to_end(stores, run)) if with_turn else None
    outcome = with_last_text(outcome, turn)
    events = find_unfinished_work(
        (yield from stores.events.list_by_run(run.id)),
        error=truncate_json(outcome.error),
        outputs=stores.call_outputs,
        stop=call_stop(outcome),
    )
    if turn is not None:
        turn.note_stopped(stopped_texts(events))
    question = yield from stores.questions.get_open_of_run(run.id)
    if question is not None:
        by, via = outcome.by or NOBODY, outcome.via or CLOCK
        rejection = Answer(
            question.question.id,
            "reject",
            by,
            via,
            name=outcome.name,
            at=now,
            withdrawn=outcome.error == RECALLED,
        )
        answered = yield from close_question(stores, question, rejection, now=now)
        events += [] if answered is None else [answered]
    result = summarize(run, task, turn, outcome, ended=now)
    events += end_events(run, result, turn, outcome)
    first_seq = yield from stores.events.reserve_seqs_of_idle_run(run.id, len(events))
    records = yield from finalize_run(stores, run, task, result=result, ids=ids)
    # after the end, which is a part of the totals
    events[-1] = yield from with_totals(stores, run, events[-1])
    timed = [(event, now) for event in events]
    return records + (yield from stores.events.append(RunIds.of(run), first_seq, timed))


def with_totals(stores: Stores, run: Run, event: Event) -> Read[Event]:
    """Return the last event of a run, whose end is stored, with the usage of its subtasks.

    The end of a subtask has the totals of the runs above it.
    """
    if not isinstance(event, ResultFinal | ResultCancelled):
        return event
    above: list[RunId] = []
    parent = run.parent_run_id
    while parent is not None:
        above.append(parent)
        found = yield from stores.runs.get(parent)
        parent = None if found is None else found.parent_run_id
    spent = yield from stores.usage.list_of_trees([run.id, *above])
    own = spent[run.id]
    return msgspec.structs.replace(
        event,
        usage=own.usage,
        cost=UNSET if own.cost is None else own.cost,
        subtasks=own.subtasks,
        above=tuple(_total(each, spent[each]) for each in above if each in spent),
    )


def _total(run_id: RunId, spent: Spending) -> RunTotal:
    return RunTotal(run_id, spent.usage, UNSET if spent.cost is None else spent.cost)


class FailedStart(NamedTuple):
    """A start of a run that failed, perhaps because its process died.

    The run is not claimed again before `not_before` (RFC 3339).
    """

    not_before: str
    crashed: bool


def requeue_run(
    stores: Stores, run: Run, *, ids: TaskIds, now: str, failed: FailedStart | None = None
) -> Write[list[EventRecord]]:
    """Put a running run back into the queue, or end it if it was asked to stop.

    Without `failed` its process hands it over in good order: the start is no attempt. Returns the
    events of the end.

    Raises:
        LeaseLost: another process has claimed the run, or it has ended.
    """
    if failed is None:
        requeued = yield from stores.runs.requeue(run.id, run.fence)
    else:
        requeued = yield from stores.runs.requeue_failed(
            run.id, run.fence, not_before=failed.not_before, crashed=failed.crashed
        )
    if not requeued:
        raise LeaseLost(f"{run.id} is run by another process")
    current = yield from stores.runs.get(run.id)
    if current is None or current.stop is None:
        yield from stores.tasks.set_status(run.task_id, "queued", None, now=now)
        return []
    outcome = stop_outcome(current.stop.to_error())
    task = yield from load_task(stores, run)
    return (yield from end_idle_run(stores, run, task, outcome=outcome, ids=ids, now=now))


def load_turn(stores: Stores, run: Run) -> Read[Turn | None]:
    """Return the Turn of a run's last checkpoint; None without a readable one."""
    stored = yield from stores.runs.get_checkpoint(run.id)
    return None if stored is None else _decode(stored, run)


def load_turn_to_end(stores: Stores, run: Run) -> Read[Turn | None]:
    """Return the Turn of a run that ends, or the readable part of an unreadable checkpoint."""
    stored = yield from stores.runs.get_checkpoint(run.id)
    return None if stored is None else _decode(stored, run) or readable_turn(stored)


def _decode(stored: StoredCheckpoint, run: Run) -> Turn | None:
    try:
        return decode_checkpoint(stored)
    except StoreCorrupt as error:
        logger.warning("checkpoint unreadable", extra={"run_id": run.id, "reason": str(error)})
        return None


def stop_outcome(stopped: RunStopped) -> TurnOutcome:
    """Return the outcome of a run that somebody stopped."""
    return TurnOutcome(
        "user_stop", "", stopped.reason, by=stopped.by, via=stopped.via, name=stopped.name
    )


def with_last_text(outcome: TurnOutcome, turn: Turn | None) -> TurnOutcome:
    """Return an outcome from outside the Turn with the last text of the model as the answer."""
    answer = "" if turn is None else turn.last_text
    return msgspec.structs.replace(outcome, answer=answer)


def summarize(
    run: Run, task: Task, turn: Turn | None, outcome: TurnOutcome, *, ended: str
) -> RunResult:
    """Return the result of a run. `turn` is None if the run never had one.

    A recalled message leaves no reply and no history, a run that never began no messages.
    """
    spending = {} if turn is None else turn.spending
    stopped = outcome.stop_reason == "user_stop"
    end = RunEnd(
        status=STATUS_BY_STOP_REASON[outcome.stop_reason],
        stop_reason=outcome.stop_reason,
        usage=sum((each.usage for each in spending.values()), Usage()),
        cost=None if turn is None else turn.cost,
        answer=outcome.answer,
        error="" if stopped else outcome.error,
        ended=ended,
    )
    usage = {model: (each.usage, each.cost) for model, each in spending.items()}
    if stopped and outcome.error == RECALLED:
        return RunResult(
            end, usage=usage, silent=True, by=outcome.by, via=outcome.via, is_recalled=True
        )
    if turn is not None:
        messages = turn.run_messages()
        is_refused = outcome.error_code == "model_refused" and not outcome.answer
        if is_refused or outcome.error_code == MESSAGE_FILTERED_CODE:
            messages = [msgspec.structs.replace(each, is_refused=True) for each in messages]
    else:
        messages = [user_message(task.model_text)] if run.fence else []
    silent = stopped and outcome.error == LEFT_CHAT
    known = None if turn is None else SubtaskState.of(turn.states)
    told = frozenset(task.reports) | (frozenset() if known is None else known.told)
    return RunResult(end, messages, usage, silent, told, outcome.by, outcome.via)


def end_events(
    run: Run, result: RunResult, turn: Turn | None, outcome: TurnOutcome
) -> tuple[LifecycleUpdated, ResultFinal | ResultCancelled]:
    """Return the last two events of a run, without the usage of its subtasks; see `with_totals`."""
    end = result.end
    duration_ms = milliseconds_between(run.started, end.ended) if run.started else 0
    cost = UNSET if end.cost is None else end.cost
    phase = {"user_stop": "stop", "interrupted": "interrupted"}.get(end.stop_reason, "persist")
    updated = LifecycleUpdated(status=end.status, phase=phase, stop_reason=end.stop_reason)
    if end.status == "cancelled":
        reason = outcome.error or PLAN_REJECTED
        return updated, ResultCancelled(
            reason=truncate_json(reason),
            reason_code=STOP_CODES.get(reason, ""),
            requested_by=outcome.by or NOBODY,
            requested_via=outcome.via or CLOCK,
            requested_name=outcome.name or UNSET,
            usage=end.usage,
            duration_ms=duration_ms,
            cost=cost,
        )
    return updated, ResultFinal(
        final_answer=truncate_json(outcome.answer),
        stop_reason=end.stop_reason,
        total_iterations=0 if turn is None else turn.iteration,
        usage=end.usage,
        duration_ms=duration_ms,
        cost=cost,
        error=truncate_json(outcome.error) if outcome.error else UNSET,
        error_code=outcome.error_code or UNSET,
        model=outcome.model or UNSET,
        instead_of=outcome.instead_of or UNSET,
        calls_not_run=(turn is not None and turn.not_run) or UNSET,
    )


def queue_undelivered_messages(
    stores: Stores, run: Run, task: Task, *, ids: TaskIds, now: str
) -> Write[list[EventRecord]]:
    """Make the steering that a run has not read the next tasks of its session, one per person.

    Messages to a subtask continue its outermost task. Reports of subtasks that the run has not read
    are sent again; see `_settle_subtasks`.
    """
    if run.subtask is not None:
        task = (yield from stores.tasks.get(run.subtask.root_task_id)) or task
    by_person: dict[str, list[Steering]] = {}
    for message in (yield from stores.inbox.list_undelivered(run.id)):
        if message.channel in {TASKS_CHANNEL, TASK_ENDS_CHANNEL}:
            yield from stores.inbox.withdraw(message.number)
            continue
        by_person.setdefault(message.principal, []).append(message)
    records: list[EventRecord] = []
    for messages in by_person.values():
        records += yield from _queue_messages(stores, messages, task, ids=ids, now=now)
        ids = ids.another()
    return records


def _queue_messages(
    stores: Stores, messages: Sequence[Steering], task: Task, *, ids: TaskIds, now: str
) -> Write[list[EventRecord]]:
    """Make messages of one person to a task's run the next task, with a reply of its own."""
    first = messages[0]
    origin = Origin(
        first.channel,
        first.principal,
        first.app,
        first.chat_id,
        edited_message_id(first.message_id),
        task.origin.direct,
        task.origin.thread_id if first.chat_id else "",
    )
    submission = Submission(
        instruction="\n\n".join(message.text for message in messages),
        spec=task.spec,
        channel=first.channel,
        session_id=task.session_id,
        attachments=joined_attachments(messages),
        prompt=joined_prompt(messages),
    )
    created = yield from create_task(
        stores, submission, task.session_id, ids=ids, origin=origin, now=now
    )
    yield from stores.inbox.reassign([message.number for message in messages], ids.run_id)
    return created.events


def joined_attachments(messages: Sequence[Steering | Submission]) -> tuple[Attachment, ...]:
    """Return the attachments of several messages."""
    return tuple(chain.from_iterable(message.attachments for message in messages))


def joined_prompt(messages: Sequence[Steering | Submission]) -> str:
    """Return the text for the model of several messages; "" if it consists of their texts alone."""
    if not any(message.prompt for message in messages):
        return ""
    return "\n\n".join(message.model_text for message in messages)


def _reply(run: Run, task: Task, end: RunEnd) -> OutgoingMessage:
    """Return the reply of a run to the chat that its task came from."""
    origin = task.origin
    return OutgoingMessage(
        key=reply_key(run.id),
        channel=origin.channel,
        app=origin.app,
        chat_id=origin.chat_id,
        reply_to=origin.message_id,
        body=end.answer,
        run_id=run.id,
        stop_reason=end.stop_reason,
        error=end.error,
    )


MAX_FILE_MESSAGES = 10
"""Files of a run that are sent as such; more are sent as one archive."""
MAX_NAMED_FILES = 100
"""Files of an archive that its message names."""


def _file_messages(
    run: Run, task: Task, artifacts: Sequence[Artifact], answer: str
) -> Iterator[OutgoingMessage]:
    """Yield the messages with the files of a run, which follow its reply.

    Pictures that follow each other with the same caption are one message, except those that the
    answer names: it may show them itself.
    """
    if len(artifacts) > MAX_FILE_MESSAGES:
        yield _file_message(run, task, file_key(run.id), artifacts)
        return

    def group(artifact: Artifact) -> str:
        is_loose = artifact.type == "image" and not names_file(answer, artifact.name)
        return f"pictures:{artifact.caption}" if is_loose else artifact.id

    for _, together in groupby(artifacts, group):
        files = list(together)
        yield _file_message(run, task, file_key(run.id, files[0].id), files)


def _file_message(run: Run, task: Task, key: str, artifacts: Sequence[Artifact]) -> OutgoingMessage:
    """Return a message with files; its body lists them, and ends with their caption.

    Files have their names without folders, except the files of an archive.
    """
    files = [each.attachment for each in artifacts]
    if key != file_key(run.id):
        files = [
            msgspec.structs.replace(each, name=posixpath.basename(each.name)) for each in files
        ]
    lines = [f"{file.name} ({format_size(file.size)})" for file in files]
    captions = {each.caption for each in artifacts}
    lines += captions if len(captions) == 1 and captions != {""} else []
    return OutgoingMessage(
        key=key,
        channel=task.origin.channel,
        app=task.origin.app,
        chat_id=task.origin.chat_id,
        reply_to=task.origin.message_id,
        body="\n".join(lines[:MAX_NAMED_FILES]),
        run_id=run.id,
        attachments=tuple(files),
    )


class _StoredEvent(msgspec.Struct):
    """The fields of a stored envelope that are needed to find unfinished work."""

    event: str
    run_id: RunId = RunId("")
    timestamp: str = ""
    node_id: str = ""
    node_kind: NodeKind = "step"
    payload: dict[str, Any] = {}


def stopped_texts(events: Iterable[Event]) -> dict[str, str]:
    """Return the model's texts of the calls that such events close, by call_id."""
    closed = (each for each in events if isinstance(each, ToolCompleted))
    return {each.call_id: each.error or "" for each in closed}


def find_unfinished_work(
    log: Iterable[EventRecord],
    keep: frozenset[str] = frozenset(),
    error: str = INTERRUPTED,
    *,
    outputs: CallOutputs = NO_OUTPUTS,
    stop: CallStop = PROCESS_ENDED,
) -> list[Event]:
    """Return the events that close the nodes and tool calls that a log leaves open. Blocks.

    Calls in `keep` stay open because they run again; of the others `outputs` has what they printed
    until the `stop`. Plan steps are not closed: their status belongs to the plan.
    """
    nodes: dict[str, _StoredEvent] = {}
    calls: dict[str, _StoredEvent] = {}
    for record in log:
        match record.event:
            case "workflow.node.started":
                started = msgspec.json.decode(record.json, type=_StoredEvent)
                if not started.node_id.startswith("step:"):
                    nodes[started.node_id] = started
            case "workflow.node.completed" | "workflow.node.failed":
                nodes.pop(msgspec.json.decode(record.json, type=_StoredEvent).node_id, None)
            case "workflow.tool.started":
                started = msgspec.json.decode(record.json, type=_StoredEvent)
                calls[started.node_id] = started
            case "workflow.tool.completed":
                calls.pop(msgspec.json.decode(record.json, type=_StoredEvent).node_id, None)
            case _:
                pass
    closing: list[Event] = [
        close_call(
            outputs,
            started.run_id,
            call_id,
            tool=started.payload.get("tool_name", ""),
            started=started.timestamp,
            stop=stop,
        )
        for call_id, started in calls.items()
        if call_id not in keep
    ]
    # inner nodes first: an iteration ends before its stage
    closing += [
        NodeFailed(
            node_id=node_id,
            kind=started.node_kind,
            phase=node_id.partition(":")[0],
            error=error,
            recoverable=True,
        )
        for node_id, started in reversed(nodes.items())
    ]
    return closing
