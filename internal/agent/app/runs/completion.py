"""Completion: stores how an attempt of a run ended, in one transaction."""

import asyncio
from datetime import timedelta
from functools import partial
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from internal.agent.app.events.writer import ExtraWork, join_work
from internal.agent.app.runs.context import (
    RunContext,
    RunServices,
    stage,
    stage_completed,
    stage_started,
)
from internal.agent.app.runs.creation import new_task_ids
from internal.agent.app.runs.finalization import (
    end_events,
    finalize_run,
    find_unfinished_work,
    load_turn_to_end,
    requeue_run,
    stop_outcome,
    stopped_texts,
    summarize,
    with_last_text,
)
from internal.agent.app.runs.question_recipients import QuestionRecipients
from internal.agent.app.runs.questions import queue_question_notice
from internal.agent.app.runs.stopped_calls import call_stop
from internal.agent.capabilities.endings import ENDINGS, AttemptEnd, Ending
from internal.agent.capabilities.registry import Capabilities
from internal.agent.domain.errors import LeaseLost, RunHandedOver, RunStopped
from internal.agent.domain.events.envelope import EventRecord, rfc3339
from internal.agent.domain.events.types import Event, LifecycleUpdated, QuestionAsked
from internal.agent.domain.principals import AuditEntry
from internal.agent.domain.questions import Question, QuestionRecord
from internal.agent.domain.react.steps import AwaitTasks, Done, Pause, TurnOutcome
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tasks import StopReason
from internal.agent.domain.text import truncate_json
from internal.agent.store.database import Write

CLEAN_STOP_REASONS = frozenset({"final_answer", "max_iterations", "max_output"})
"""Stop reasons after which no node or tool call is left open."""


_LastStep = Done | Pause | AwaitTasks | RunHandedOver


class _Content(NamedTuple):
    """The content that a run stores when an attempt ends, without the additions of capabilities."""

    events: tuple[Event, ...]
    work: ExtraWork
    has_failed: bool = False


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

    async def complete(self, context: RunContext, turn: Turn | None, end: AttemptEnd) -> AttemptEnd:
        """Store how an attempt of a run ended, and return the end that is stored.

        Without a Turn, a run ends from its last checkpoint. A run that was asked to stop meanwhile
        is stopped instead.
        """
        ending = ENDINGS[type(end)]
        step = Done(stop_outcome(end)) if isinstance(end, RunStopped) else end
        if isinstance(step, Done) and (turn is None or step is not end):
            turn = turn or await self._load_turn(context)
            step = Done(with_last_text(step.outcome, turn))
        if ending.closes_calls:
            await self._close_unfinished_work(context, turn, step)
        added = await self._capabilities.ending(context, turn, ending)
        stored = await self._content(context, turn, step, ending)
        try:
            await context.stream.commit(
                *added.events,
                *stored.events,
                turn=turn if ending.departure is None else None,
                also=join_work(added.before, stored.work, added.after),
                settle=added.settle,
                unless_stopped=not isinstance(end, RunStopped),
                drops_checkpoint=ending.drops_checkpoint and not stored.has_failed,
            )
        except RunStopped as stopped:
            return await self.complete(context, turn, stopped)
        self._capabilities.committed(context, ending)
        return end

    async def _content(
        self, context: RunContext, turn: Turn | None, step: _LastStep, ending: Ending
    ) -> _Content:
        """Return the content that the run itself stores when an attempt ends."""
        match step:
            case Pause(question=question):
                record = self._question_record(context, question)
                events = (_asked_event(record), _waiting("await_user_input"))
                return _Content(events, partial(self._store_pause, context, record))
            case AwaitTasks():
                store = partial(self._store_wait, context, step)
                return _Content((_waiting("await_tasks"),), store)
            case RunHandedOver():
                requeue = partial(
                    requeue_run, self._stores, context.run, ids=new_task_ids(), now=self._now()
                )
                return _Content((), requeue)
            case Done(outcome=outcome) if ending.departure == "stopped":
                return self._end(context, turn, outcome)
            case Done(outcome=outcome):
                async with stage("summarize", context.stream.defer, self._clock):
                    end = self._end(context, turn, outcome)
                persisted = stage_completed("persist", self._clock.monotonic(), self._clock)
                return end._replace(events=(stage_started("persist"), persisted, *end.events))

    def _end(self, context: RunContext, turn: Turn | None, outcome: TurnOutcome) -> _Content:
        run, task, ids = context.run, context.task, new_task_ids()
        result = summarize(run, task, turn, outcome, ended=self._now())
        work = partial(finalize_run, self._stores, run, task, result=result, ids=ids)
        events = end_events(run, result, turn, outcome)
        return _Content(events, work, has_failed=result.end.status == "failed")

    async def _load_turn(self, context: RunContext) -> Turn | None:
        return await self._database.read(partial(load_turn_to_end, self._stores, context.run))

    async def _close_unfinished_work(
        self, context: RunContext, turn: Turn | None, step: _LastStep
    ) -> None:
        """Close the work that an attempt leaves open, besides the calls that run again."""
        kept = frozenset[str]()
        match step:
            case Pause(question=question) if question.kind == "recovery":  # as after a crash
                outcome = TurnOutcome("error", "", question.title)
                if turn is not None:
                    kept = turn.started | turn.inputs.keys() | turn.waits.keys()
            case Done(outcome=outcome) if outcome.stop_reason not in CLEAN_STOP_REASONS:
                pass
            case _:
                return
        await context.stream.commit()  # all emitted events must be in the log
        log = await self._database.read(partial(self._stores.events.list_by_run, context.run.id))
        events = await asyncio.to_thread(
            find_unfinished_work,
            log,
            kept,
            truncate_json(outcome.error or "failed"),
            outputs=self._stores.call_outputs,
            stop=call_stop(outcome),
        )
        if turn is not None:
            turn.note_stopped(stopped_texts(events))
        await context.stream.emit(*events)

    def _question_record(self, context: RunContext, question: Question) -> QuestionRecord:
        """Return the record of a question that is asked now.

        In a direct chat the submitter may clarify the task and have it tried again; all else needs
        an operator, or the owner if a call of it does.
        """
        task, now, place = context.task, self._clock.now(), context.run.subtask
        if place is not None:
            question = msgspec.structs.replace(
                question,
                asked_by=place.path,
                asker_number=place.number,
                asker_role=place.role,
            )
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
        return []

    def _now(self) -> str:
        return rfc3339(self._clock.now())


def _asked_event(record: QuestionRecord) -> QuestionAsked:
    question = record.question
    return QuestionAsked(
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
        asked_by=question.asked_by,
        asker_number=question.asker_number,
        asker_role=question.asker_role,
    )


def _waiting(stop_reason: StopReason) -> LifecycleUpdated:
    return LifecycleUpdated(status="waiting", phase="execute", stop_reason=stop_reason)
