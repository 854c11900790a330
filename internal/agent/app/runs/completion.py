"""Completion: stores that a run ended, paused or was handed over, in one transaction each."""

import asyncio
from collections.abc import Awaitable, Sequence
from datetime import timedelta
from functools import partial

import msgspec
from msgspec import UNSET

from internal.agent.app.events.writer import ExtraWork, LastEvent, join_work
from internal.agent.app.runs.context import (
    RunContext,
    RunServices,
    stage,
    stage_completed,
    stage_started,
)
from internal.agent.app.runs.creation import new_task_ids
from internal.agent.app.runs.finalization import (
    RunResult,
    end_events,
    finalize_run,
    find_unfinished_work,
    load_turn_to_end,
    requeue_run,
    stop_outcome,
    stopped_texts,
    summarize,
    with_last_text,
    with_totals,
)
from internal.agent.app.runs.question_recipients import QuestionRecipients
from internal.agent.app.runs.questions import queue_question_notice
from internal.agent.app.runs.stopped_calls import call_stop
from internal.agent.app.subtasks.endings import has_message, queue_awaiting
from internal.agent.capabilities.capability import Contribution
from internal.agent.capabilities.registry import Capabilities
from internal.agent.domain.errors import LeaseLost, RunStopped
from internal.agent.domain.events.envelope import EventRecord, rfc3339
from internal.agent.domain.events.types import Event, LifecycleUpdated, QuestionAsked
from internal.agent.domain.principals import AuditEntry
from internal.agent.domain.questions import Question, QuestionRecord
from internal.agent.domain.react.steps import AwaitTasks, TurnOutcome
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.text import truncate_json
from internal.agent.store.database import Write

CLEAN_STOP_REASONS = frozenset({"final_answer", "max_iterations", "max_output"})
"""Stop reasons after which no node or tool call is left open."""


class RunCompleter:
    """Stores the ends and pauses of runs."""

    def __init__(
        self,
        services: RunServices,
        capabilities: Capabilities,
        *,
        recipients: QuestionRecipients,
    ) -> None:
        self._capabilities = capabilities
        self._recipients = recipients
        self._database = services.database
        self._stores = services.stores
        self._clock = services.clock

    async def end(self, context: RunContext, turn: Turn | None, outcome: TurnOutcome) -> None:
        """Summarize and store the end of a run that completed, failed or was rejected.

        Without a Turn, the run ends from its last checkpoint. A run that was asked to stop is
        cancelled instead.
        """
        if turn is None:
            turn = await self._load_turn(context)
            outcome = with_last_text(outcome, turn)
        if outcome.stop_reason not in CLEAN_STOP_REASONS:
            await self._close_unfinished_work(context, turn, outcome)
        added = await self._capabilities.ending(context, turn, "end")
        async with stage("summarize", context.stream.defer, self._clock):
            result = self._summarize(context, turn, outcome)
        started_at = self._clock.monotonic()
        events = (
            *added.events,
            stage_started("persist"),
            stage_completed("persist", started_at, self._clock),
            *end_events(context.run, result, turn, outcome),
        )
        end = self._commit_end(
            context, result, events, added, settle=self._settled(context, turn), unless_stopped=True
        )
        await self._or_cancel(context, turn, end)

    async def cancel(self, context: RunContext, turn: Turn | None, stopped: RunStopped) -> None:
        """Store that somebody stopped the run; the messages of the run are kept."""
        turn = turn or await self._load_turn(context)
        outcome = with_last_text(stop_outcome(stopped), turn)
        await self._close_unfinished_work(context, turn, outcome)
        added = await self._capabilities.ending(context, turn, "cancel")
        result = self._summarize(context, turn, outcome)
        events = (*added.events, *end_events(context.run, result, turn, outcome))
        settle = self._settled(context, turn)
        await self._commit_end(context, result, events, added, settle=settle)

    async def pause(self, context: RunContext, turn: Turn | None, question: Question) -> None:
        """Store the question and that the run waits for its answer.

        A run that was asked to stop is cancelled instead.
        """
        if question.kind == "recovery":  # it continues as after a crash
            kept = frozenset[str]()  # these run again
            if turn is not None:
                kept = turn.started | turn.inputs.keys() | turn.waits.keys()
            failed = TurnOutcome("error", "", question.title)
            await self._close_unfinished_work(context, turn, failed, kept)
        record = self._question_record(context, question)
        asked = QuestionAsked(
            question_id=question.id,
            kind=question.kind,
            title=question.title,
            body=question.body,
            options=question.options,
            expires_at=record.expires,
            calls=question.calls,
            multiple=question.multiple,
            plan=question.plan or UNSET,
            who=record.audience,
            reason_code=question.reason_code,
            asked_by=record.question.asked_by,
        )
        waiting = LifecycleUpdated(
            status="waiting", phase="execute", stop_reason="await_user_input"
        )
        added = await self._capabilities.ending(context, turn, "pause")
        also = _between(added, partial(self._store_pause, context, record))
        pause = context.stream.commit(
            *added.events, asked, waiting, turn=turn, also=also, unless_stopped=True
        )
        await self._or_cancel(context, turn, pause)

    async def await_tasks(self, context: RunContext, turn: Turn | None, wait: AwaitTasks) -> None:
        """Store that the run waits for tasks; the end of one, or a message, queues it again.

        If that has happened already, it is queued at once. A run that was asked to stop is
        cancelled instead.
        """
        waiting = LifecycleUpdated(status="waiting", phase="execute", stop_reason="await_tasks")
        added = await self._capabilities.ending(context, turn, "await_tasks")
        also = _between(added, partial(self._store_wait, context, wait))
        pause = context.stream.commit(
            *added.events, waiting, turn=turn, also=also, unless_stopped=True
        )
        await self._or_cancel(context, turn, pause)

    async def hand_over(self, context: RunContext, turn: Turn | None) -> None:
        """Put the run back into the queue; another process resumes its last checkpoint.

        A run that was asked to stop is cancelled instead.
        """
        added = await self._capabilities.ending(context, turn, "hand_over")
        requeue = partial(
            requeue_run, self._stores, context.run, ids=new_task_ids(), now=self._now()
        )
        also = _between(added, requeue)
        release = context.stream.commit(*added.events, also=also, unless_stopped=True)
        await self._or_cancel(context, turn, release)

    async def _or_cancel(
        self, context: RunContext, turn: Turn | None, commit: Awaitable[None]
    ) -> None:
        """Await a commit; a run that was asked to stop meanwhile is cancelled instead."""
        try:
            await commit
        except RunStopped as stopped:
            await self.cancel(context, turn, stopped)

    async def _load_turn(self, context: RunContext) -> Turn | None:
        return await self._database.read(partial(load_turn_to_end, self._stores, context.run))

    def _summarize(self, context: RunContext, turn: Turn | None, outcome: TurnOutcome) -> RunResult:
        return summarize(context.run, context.task, turn, outcome, ended=self._now())

    def _settled(self, context: RunContext, turn: Turn | None) -> LastEvent | None:
        """Return what completes the last event of a run; nothing if it has no other run's part."""
        is_alone = context.run.subtask is None and turn is not None and not turn.has_subtasks
        return None if is_alone else partial(with_totals, self._stores, context.run)

    async def _close_unfinished_work(
        self,
        context: RunContext,
        turn: Turn | None,
        outcome: TurnOutcome,
        keep: frozenset[str] = frozenset(),
    ) -> None:
        await context.stream.commit()  # all emitted events must be in the log
        log = await self._database.read(partial(self._stores.events.list_by_run, context.run.id))
        events = await asyncio.to_thread(
            find_unfinished_work,
            log,
            keep,
            truncate_json(outcome.error or "failed"),
            outputs=self._stores.call_outputs,
            stop=call_stop(outcome),
        )
        if turn is not None:
            turn.note_stopped(stopped_texts(events))
        await context.stream.emit(*events)

    async def _commit_end(
        self,
        context: RunContext,
        result: RunResult,
        events: Sequence[Event],
        added: Contribution,
        *,
        settle: LastEvent | None,
        unless_stopped: bool = False,
    ) -> None:
        end = partial(
            finalize_run, self._stores, context.run, context.task, result=result, ids=new_task_ids()
        )
        await context.stream.commit(
            *events,
            also=_between(added, end),
            settle=settle,
            unless_stopped=unless_stopped,
            drops_checkpoint=result.end.status != "failed",
        )

    def _question_record(self, context: RunContext, question: Question) -> QuestionRecord:
        """Return the record of a question that is asked now.

        In a direct chat the submitter may clarify the task and have it tried again; all else needs
        an operator, or the owner if a call of it does.
        """
        task, now, place = context.task, self._clock.now(), context.run.subtask
        if place is not None:
            question = msgspec.structs.replace(question, asked_by=place.path)
        ttl = timedelta(minutes=task.spec.question_ttl_minutes)
        return QuestionRecord(
            question=question,
            run_id=context.run.id,
            task_id=task.id,
            session_id=task.session_id,
            principal=task.origin.principal,
            chat=task.origin.chat,
            audience=question.audience(direct=task.origin.direct),
            asked=rfc3339(now),
            expires=rfc3339(now + ttl),
        )

    def _store_pause(self, context: RunContext, record: QuestionRecord) -> Write[list[EventRecord]]:
        run, task, stores, now = context.run, context.task, self._stores, record.asked
        question = record.question
        if not (yield from stores.runs.pause(run.id, run.fence)):
            raise LeaseLost(f"{run.id} is run by another process")
        yield from stores.tasks.set_status(task.id, "waiting", "await_user_input", now=now)
        record = yield from self._recipients.address(stores, record, task.origin)
        yield from stores.questions.add(record)
        if question.plan is not None:
            yield from stores.questions.save_plan(run.id, run.session_id, question.plan, now=now)
        entry = AuditEntry(
            now, run.id, task.origin.channel, "question.asked", question.id, question.kind
        )
        yield from stores.audit.add(entry)
        yield from queue_question_notice(stores, record, now=now)
        return []

    def _store_wait(self, context: RunContext, wait: AwaitTasks) -> Write[list[EventRecord]]:
        run, stores, now = context.run, self._stores, self._now()
        if not (yield from stores.runs.await_tasks(run.id, run.fence, wait.until)):
            raise LeaseLost(f"{run.id} is run by another process")
        yield from stores.tasks.set_status(run.task_id, "waiting", "await_tasks", now=now)
        yield from stores.subtasks.set_waits(run.id, wait.waits)
        is_settled = yield from stores.subtasks.has_settled_wait(run.id)
        # the end of another task is no reason to go on: it is told at the next step
        if is_settled or (yield from has_message(stores, run.id)):
            yield from queue_awaiting(stores, run, now=now)
        return []

    def _now(self) -> str:
        return rfc3339(self._clock.now())


def _between(added: Contribution, work: ExtraWork) -> ExtraWork | None:
    """Return the statements of an ending with those of the capabilities before and after."""
    return join_work(added.before, work, added.after)
