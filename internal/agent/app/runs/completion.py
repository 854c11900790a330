"""Persisting: how a run leaves this process: ended, paused or handed over. One transaction each."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import msgspec
from msgspec import UNSET

from internal.agent.app.runs.active import requeue_run
from internal.agent.app.runs.context import RunContext, stage, stage_completed, stage_started
from internal.agent.app.runs.creation import new_task_ids
from internal.agent.app.runs.finalization import (
    RECALLED,
    RunResult,
    finalize_run,
    find_unfinished_work,
)
from internal.agent.app.runs.questions import queue_question_notice
from internal.agent.app.runs.session_title import one_line
from internal.agent.domain.errors import LeaseLost, RunStopped
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.events.event import Event
from internal.agent.domain.events.record import EventRecord
from internal.agent.domain.events.types import (
    LifecycleUpdated,
    QuestionAsked,
    ResultCancelled,
    ResultFinal,
)
from internal.agent.domain.messages import Message, user_message
from internal.agent.domain.questions import CLOCK, NOBODY, Question, QuestionRecord
from internal.agent.domain.react.steps import TurnOutcome
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tasks import STATUS_BY_STOP_REASON, Task
from internal.agent.domain.text import truncate_json
from internal.agent.domain.usage import Usage
from internal.agent.ports.runtime import Clock
from internal.agent.store.access import AuditEntry
from internal.agent.store.database import Database, Write
from internal.agent.store.runs import RunEnd
from internal.agent.store.stores import Stores


def summarize(task: Task, turn: Turn | None, outcome: TurnOutcome, ended: str) -> RunResult:
    """Return how the run ends and what it leaves; without a Turn it did not get that far."""
    said: list[Message] = [user_message(task.instruction)] if turn is None else turn.run_messages()
    spent = {} if turn is None else turn.spending
    end = RunEnd(
        status=STATUS_BY_STOP_REASON[outcome.stop_reason],
        stop_reason=outcome.stop_reason,
        usage=sum((each.usage for each in spent.values()), Usage()),
        cost=None if turn is None else turn.cost,
        answer=outcome.answer,
        error=outcome.error,
        ended=ended,
    )
    return RunResult(
        end=end,
        messages=said,
        used={model: (each.usage, each.cost) for model, each in spent.items()},
        title=one_line(task.instruction),
    )


CLEAN_STOP_REASONS = frozenset({"final_answer", "max_iterations"})
"""Stop reasons after which the engine has left nothing open."""


class RunCompleter:
    """Writes the ends and pauses of runs."""

    def __init__(self, database: Database, stores: Stores, clock: Clock) -> None:
        self._database = database
        self._stores = stores
        self._clock = clock

    async def end(self, context: RunContext, turn: Turn | None, outcome: TurnOutcome) -> None:
        """Summarize and store the end of a run: completed, failed, or rejected by a person."""
        if outcome.stop_reason not in CLEAN_STOP_REASONS:
            await self._close_open_ends(context, outcome.error)
        async with stage("summarize", context.stream.emit, self._clock):
            ending = summarize(context.task, turn, outcome, self._now())
        begun = self._clock.monotonic()
        end = ending.end
        await self._commit_end(
            context,
            ending,
            (
                stage_started("persist"),
                stage_completed("persist", begun, self._clock),
                LifecycleUpdated(
                    status=end.status, phase="persist", stop_reason=outcome.stop_reason
                ),
                self._last_event(context, turn, outcome, ending),
            ),
        )

    def _last_event(
        self, context: RunContext, turn: Turn | None, outcome: TurnOutcome, ending: RunResult
    ) -> ResultFinal | ResultCancelled:
        if outcome.stop_reason == "rejected":
            reason = outcome.error or "the plan was rejected"
            by, via = outcome.by or NOBODY, outcome.via or CLOCK
            return ResultCancelled(reason=truncate_json(reason), requested_by=by, requested_via=via)
        end = ending.end
        return ResultFinal(
            final_answer=truncate_json(outcome.answer),
            stop_reason=outcome.stop_reason,
            total_iterations=0 if turn is None else turn.iteration,
            usage=end.usage,
            duration_ms=round((self._clock.monotonic() - context.started_at) * 1000),
            cost=UNSET if end.cost is None else end.cost,
            error=truncate_json(outcome.error) if outcome.error else UNSET,
            error_code=outcome.error_code or UNSET,
        )

    async def cancel(self, context: RunContext, turn: Turn | None, stopped: RunStopped) -> None:
        """Store that somebody stopped the run; what it did is kept."""
        await self._close_open_ends(context, "stopped")
        said = ""
        if turn is not None:
            turn.end("user_stop", stopped.reason)
            said = turn.outcome.answer if turn.outcome else ""
        ending = summarize(context.task, turn, TurnOutcome("user_stop", said), self._now())
        if stopped.reason == RECALLED:  # who took it back wants neither an answer nor a memory
            ending = msgspec.structs.replace(ending, silent=True, messages=(), title="")
        await self._commit_end(
            context,
            ending,
            (
                LifecycleUpdated(status="cancelled", phase="stop", stop_reason="user_stop"),
                ResultCancelled(
                    reason=stopped.reason, requested_by=stopped.by, requested_via=stopped.via
                ),
            ),
        )

    async def pause(self, context: RunContext, turn: Turn, question: Question) -> None:
        """Store that the run waits for a person: no end, and nothing stays in this process."""
        asked = self._asked(context, question)
        event = QuestionAsked(
            question_id=question.id,
            kind=question.kind,
            title=question.title,
            body=question.body,
            options=question.options,
            expires_at=asked.expires,
            calls=question.calls,
            multiple=question.multiple,
            plan=question.plan or UNSET,
            who=asked.audience,
        )
        waiting = LifecycleUpdated(
            status="waiting", phase="execute", stop_reason="await_user_input"
        )
        also = partial(self._rest, context, asked)
        await context.stream.commit(event, waiting, turn=turn, also=also)

    async def hand_over(self, context: RunContext) -> None:
        """Put the run back into the queue, as its last checkpoint left it."""
        await context.stream.commit(also=partial(self._requeue, context))

    async def _close_open_ends(self, context: RunContext, error: str) -> None:
        await context.stream.commit()  # all that was emitted is in the log now
        log = await self._database.read(partial(self._stores.events.list_by_run, context.run.id))
        await context.stream.emit(
            *find_unfinished_work(log, error=truncate_json(error or "failed"))
        )

    async def _commit_end(
        self, context: RunContext, ending: RunResult, events: Sequence[Event]
    ) -> None:
        also = partial(
            finalize_run, self._stores, context.run, context.task, ending, new_task_ids()
        )
        await context.stream.commit(*events, also=also)

    def _asked(self, context: RunContext, question: Question) -> QuestionRecord:
        """Return what is stored of a question. Words may come from the asker in a chat of two."""
        task, now = context.task, self._clock.now()
        ttl = timedelta(minutes=task.brief.question_ttl_minutes)
        return QuestionRecord(
            question=question,
            run_id=context.run.id,
            task_id=task.id,
            session_id=task.session_id,
            principal=task.origin.principal,
            chat=task.origin.chat,
            audience="asker" if question.kind == "clarify" and task.origin.direct else "operators",
            asked=rfc3339(now),
            expires=rfc3339(now + ttl),
        )

    def _rest(self, context: RunContext, asked: QuestionRecord) -> Write[list[EventRecord]]:
        run, task, stores, now = context.run, context.task, self._stores, asked.asked
        question = asked.question
        if not (yield from stores.runs.pause(run.id, run.fence)):
            raise LeaseLost(f"{run.id} is run by another process")
        yield from stores.tasks.set_status(task.id, "waiting", "await_user_input", now=now)
        yield from stores.questions.add(asked)
        if question.plan is not None:
            yield from stores.questions.save_plan(run.id, run.session_id, question.plan, now=now)
        deed = AuditEntry(now, run.id, task.origin.channel, "question.asked", question.id)
        yield from stores.audit.add(deed._replace(detail=question.kind))
        yield from queue_question_notice(stores, asked, "asked", now)
        return []

    def _requeue(self, context: RunContext) -> Write[list[EventRecord]]:
        if not (yield from requeue_run(self._stores, context.run, self._now())):
            raise LeaseLost(f"{context.run.id} is run by another process")
        return []

    def _now(self) -> str:
        return rfc3339(self._clock.now())
