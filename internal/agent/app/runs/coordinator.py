"""The coordinator: takes a run through its stages prepare, execute, summarize and persist."""

import asyncio
import logging
import math
from functools import partial

import msgspec
from msgspec.structs import replace

from internal.agent.app.background_task import background_task
from internal.agent.app.events.writer import SerializingEventListener
from internal.agent.app.hosts.host import Host, WorkspaceUse
from internal.agent.app.runs.active import ActiveRun
from internal.agent.app.runs.completion import RunCompleter
from internal.agent.app.runs.context import (
    INTERNAL_ERROR,
    INTERNAL_ERROR_CODE,
    RunContext,
    RunServices,
    describe_error,
    stage,
    stage_completed,
    stage_started,
)
from internal.agent.app.runs.creation import load_task
from internal.agent.app.runs.engine import ReactEngine
from internal.agent.app.runs.preparation import RunPreparer
from internal.agent.app.runs.recovery import Recovery
from internal.agent.app.runs.resume import RunResumer
from internal.agent.capabilities.capability import RunEnded, RunPaused, RunStarted
from internal.agent.capabilities.endings import ENDINGS, AttemptEnd
from internal.agent.capabilities.registry import Capabilities
from internal.agent.domain.errors import (
    MESSAGE_FILTERED_CODE,
    LarkspurError,
    LeaseLost,
    ModelError,
    ModelUnavailable,
    RequestError,
    RunHandedOver,
    RunStopped,
    StoreError,
    StoreUnavailable,
)
from internal.agent.domain.events.envelope import RunIds
from internal.agent.domain.events.types import LifecycleUpdated
from internal.agent.domain.questions import recovery_question
from internal.agent.domain.react.steps import AwaitTasks, Done, Pause, TurnOutcome
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tasks import MAX_CRASHES, Run, StopReason, Task
from internal.agent.domain.text import truncate
from internal.agent.ports.fair_slots import PERSON

logger = logging.getLogger(__name__)

TIMED_OUT = (
    "stopped after {seconds:g} s of running time, the limit of this run (run_timeout_seconds);"
    " a new message continues"
)

CRASHED = "crashed"
"""The error code of a run that killed its process, and of the question about it."""

MAX_REASON_CHARACTERS = 500
"""Characters of the reason that a person is told."""


class _Attempt(msgspec.Struct):
    """The Turn of the current attempt; available after a cancellation.

    `has_steering`: messages may wait for it.
    """

    turn: Turn | None = None
    has_steering: bool = True


class AgentCoordinator:
    """Executes runs. Only preparation and execution are ever cancelled, never persistence."""

    def __init__(
        self,
        services: RunServices,
        *,
        preparer: RunPreparer,
        engine: ReactEngine,
        resumer: RunResumer,
        completer: RunCompleter,
        recovery: Recovery,
        capabilities: Capabilities,
        host: Host,
    ) -> None:
        self.services = services
        self._host = host
        self._preparer = preparer
        self._engine = engine
        self._resumer = resumer
        self._completer = completer
        self._recovery = recovery
        self._capabilities = capabilities

    async def execute_task(self, active: ActiveRun) -> None:
        """Execute a claimed run until it ends, pauses or is handed over.

        Returns when every durable event is stored and passed to the listeners. A run that cannot be
        resumed, or whose events cannot be stored, fails; its lane is free.

        Raises:
            StoreUnavailable: nothing can be stored; the last checkpoint of the run stays valid.
            StoreError: the failure of the run cannot be stored.
        """
        run = active.run
        try:
            await self._execute_run(active)
        except LeaseLost:
            await self._capabilities.leave(run.id, "lost")
            logger.warning("run fenced", extra={"run_id": run.id})
        except StoreUnavailable:
            raise
        except Exception as error:
            await self._capabilities.leave(run.id, "lost")
            logger.exception("run cannot continue", extra={"run_id": run.id})
            await self._recovery.fail(run, _failure(error))
            await self._capabilities.fail(await self._load_task(run))

    async def _execute_run(self, active: ActiveRun) -> None:
        services, run = self.services, active.run
        claimed = active.claimed
        task = await self._load_task(run) if claimed is None else claimed.task
        PERSON.set(task.spec.share_of(task.origin.principal).person)
        ids = RunIds.of(run)
        stream = SerializingEventListener(
            ids,
            run.fence,
            services.database,
            stores=services.stores,
            broadcaster=services.broadcaster,
            clock=services.clock,
            used_seconds=run.used_seconds,
        )
        use = WorkspaceUse(
            self._host, run, task, database=services.database, stores=services.stores
        )
        context = RunContext(ids, run, task, stream, use, claimed=claimed)
        try:
            async with background_task(stream.deliver()), self._capabilities.listening(stream):
                await self._run_attempt(context, active)
        finally:
            services.broadcaster.forget(run.id)

    async def _load_task(self, run: Run) -> Task:
        work = partial(load_task, self.services.stores, run)
        return await self.services.database.read(work, is_short=True)

    async def _run_attempt(self, context: RunContext, active: ActiveRun) -> None:
        attempt = _Attempt()
        end: AttemptEnd
        try:
            end = await active.run_cancellable(self._work(context, attempt))
        except (RunStopped, RunHandedOver) as left:
            end = left
        departure = ENDINGS[type(end)].departure
        if departure is not None:
            await self._capabilities.leave(context.run.id, departure)
        moment = _moment(await self._completer.complete(context, attempt.turn, end))
        if moment is not None:
            await self._capabilities.observe(context, moment)

    async def _work(self, context: RunContext, attempt: _Attempt) -> Pause | AwaitTasks | Done:
        """Prepare or resume, then execute: the part of a run that may be cancelled."""
        try:
            await self._capabilities.enter(context)
            attempt.turn, paused = await self._resumer.resume(context)
            _raise_if_stopped(context.run)
            if (crashes := context.run.crashes) >= MAX_CRASHES:
                reason = f"The process died {crashes} times while it executed this run."
                ask = _ask_person(context, reason, CRASHED)
                return ask or _interrupted(attempt.turn, reason)
            if attempt.turn is None:
                await self._prepare(context, attempt)
        except (LeaseLost, RunStopped, StoreError):
            raise
        except LarkspurError as error:
            return Done(TurnOutcome("error", "", str(error)))
        return await self._execute(context, attempt, paused=paused)

    async def _prepare(self, context: RunContext, attempt: _Attempt) -> None:
        emit, defer, clock = context.stream.emit, context.stream.defer, self.services.clock
        if context.claimed is None:
            running = LifecycleUpdated(status="running", phase="prepare")
            await emit(running, stage_started("prepare"))
        async with stage("prepare", defer, clock, is_announced=True):
            attempt.turn, events, attempt.has_steering = await self._preparer.prepare(context)
            if context.task.attachments or context.task.reports:
                # stored before anything else: a service may have been paid for what is read of an
                # attachment, and the end of a subtask is told once
                await context.stream.commit(*events, turn=attempt.turn)
            else:  # another attempt prepares the run again, until there is something to keep
                await defer(*events)
        await self._capabilities.observe(context, RunStarted())

    async def _execute(
        self, context: RunContext, attempt: _Attempt, *, paused: bool
    ) -> Pause | AwaitTasks | Done:
        """Drive the Turn. An error ends the Turn, which keeps the work done so far."""
        turn, clock = attempt.turn, self.services.clock
        if turn is None:
            raise TypeError("a run without a Turn cannot be executed")
        started_at = clock.monotonic()
        running = LifecycleUpdated(status="running", phase="execute")
        await context.stream.defer(running, *(() if paused else (stage_started("execute"),)))
        timeout_seconds = context.task.spec.limits.timeout_seconds
        try:
            async with asyncio.timeout(timeout_seconds - context.stream.used_seconds) as limit:
                timed = replace(context, deadline=limit.when() or math.inf)
                end = await self._engine.solve(
                    timed, turn, paused=paused, has_steering=attempt.has_steering
                )
        except (LeaseLost, RunHandedOver, StoreError):
            raise
        # RequestError: such as a workspace that leads elsewhere now
        except (TimeoutError, ModelError, RequestError) as error:
            if isinstance(error, ModelUnavailable):
                pause = _ask_person(context, str(error), error.code)
                if pause:
                    return pause
            await _keep_turn(context, turn)
            turn.end(*_stop_reason(error, timeout_seconds))
        except Exception:
            logger.exception("run broke", extra={"run_id": context.run.id})
            await _keep_turn(context, turn)
            turn.end("error", INTERNAL_ERROR, INTERNAL_ERROR_CODE)
        else:
            if isinstance(end, Done):
                await context.stream.defer(stage_completed("execute", started_at, clock))
            return end
        ended = turn.next()
        if not isinstance(ended, Done):
            raise TypeError("an ended Turn is not done")
        return ended


def _moment(end: AttemptEnd) -> RunPaused | RunEnded | None:
    match end:
        case Pause():
            return RunPaused(end)
        case Done(outcome=outcome):
            return RunEnded(outcome)
        case RunStopped():
            return RunEnded(TurnOutcome("user_stop", "", end.reason))
        case AwaitTasks() | RunHandedOver():
            return None


async def _keep_turn(context: RunContext, turn: Turn) -> None:
    """Store the Turn of a run that fails before it is stored: another task may continue it."""
    if not context.stream.has_checkpoint:
        await context.stream.emit(turn=turn)


def _raise_if_stopped(run: Run) -> None:
    """Raise RunStopped if the stop was requested before an earlier process died."""
    if run.stop is not None:
        raise run.stop.to_error()


def _failure(error: Exception) -> TurnOutcome:
    code = "" if isinstance(error, LarkspurError) else INTERNAL_ERROR_CODE
    return TurnOutcome("error", "", describe_error(error), code)


def _ask_person(context: RunContext, reason: str, code: str) -> Pause | None:
    """Return the question whether the run is tried again; None if nobody can be asked."""
    spec, run = context.task.spec, context.run
    if not (spec.people and spec.approvals):  # without approvals nobody attends the run
        return None
    shown = truncate(reason, MAX_REASON_CHARACTERS)
    return Pause(recovery_question(run.id, run.fence, shown, code))


def _interrupted(turn: Turn | None, error: str) -> Done:
    """Return the end of a run that is not tried again; it keeps its work and can be resumed."""
    answer = "" if turn is None else turn.last_text
    return Done(TurnOutcome("interrupted", answer, error, CRASHED))


def _stop_reason(
    error: TimeoutError | ModelError | RequestError, timeout_seconds: float
) -> tuple[StopReason, str, str]:
    """Return the stop reason, the error message and the error code of an exception."""
    if isinstance(error, TimeoutError):
        return "timeout", TIMED_OUT.format(seconds=timeout_seconds), ""
    if not isinstance(error, ModelError):
        return "error", str(error), ""
    return "error", str(error), MESSAGE_FILTERED_CODE if error.is_filtered else error.code
