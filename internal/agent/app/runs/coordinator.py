"""AgentCoordinator: takes a run through prepare, execute, summarize and persist."""

import asyncio
import logging
from dataclasses import dataclass
from functools import partial

from internal.agent.app.background_task import background_task
from internal.agent.app.events.writer import QueuedListener, SerializingEventListener
from internal.agent.app.runs.active import ActiveRun
from internal.agent.app.runs.completion import RunCompleter
from internal.agent.app.runs.context import (
    RunContext,
    RunServices,
    describe_error,
    stage,
    stage_completed,
    stage_started,
)
from internal.agent.app.runs.engine import ReactEngine
from internal.agent.app.runs.preparation import RunPreparer
from internal.agent.app.runs.resume import RunResumer
from internal.agent.app.runs.session_title import PlanSessionTitleRecorder
from internal.agent.domain.errors import (
    LarkspurError,
    LeaseLost,
    ModelError,
    RunHandedOver,
    RunStopped,
    StoreError,
)
from internal.agent.domain.events.envelope import RunIds
from internal.agent.domain.events.types import LifecycleUpdated, PlanUpdated
from internal.agent.domain.react.steps import Done, Pause, TurnOutcome
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tasks import Run, StopReason

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 5
"""So often a run is begun without getting to its next checkpoint; then something in it kills us."""


@dataclass(slots=True)
class _Pass:
    """What is known of a run's Turn when the work is cut short."""

    turn: Turn | None = None


class AgentCoordinator:
    """Executes runs. Only the work of preparing and executing is ever cancelled."""

    def __init__(
        self,
        services: RunServices,
        preparation: RunPreparer,
        engine: ReactEngine,
        resumption: RunResumer,
        persistence: RunCompleter,
    ) -> None:
        self._services = services
        self._preparation = preparation
        self._engine = engine
        self._resumption = resumption
        self._persistence = persistence

    async def execute_task(self, live: ActiveRun) -> None:
        """Take a claimed run to its end, its pause or its way out.

        Returns after every durable event is stored and handed to its listeners.

        Raises:
            StoreError: it cannot be stored any more; the last checkpoint stands.
        """
        services, run = self._services, live.run
        task = await services.database.read(partial(services.stores.tasks.get, run.task_id))
        if task is None:
            raise StoreError(f"the task of {run.id} is not in the database")
        ids = RunIds(run.session_id, run.task_id, run.id, run.parent_run_id)
        stream = SerializingEventListener(
            ids,
            run.fence,
            services.database,
            stores=services.stores,
            broadcaster=services.broadcaster,
            clock=services.clock,
        )
        recorder = PlanSessionTitleRecorder(services.database, services.stores)
        titles = QueuedListener(recorder, PlanUpdated)
        stream.add(titles)
        context = RunContext(ids, run, task, stream, services.clock.monotonic())
        try:
            async with background_task(stream.deliver()), background_task(titles.listen()):
                await self._pass(context, live)
                await titles.drained()
        except LeaseLost:
            logger.warning("run fenced", extra={"run_id": run.id})
        finally:
            services.broadcaster.forget(run.id)

    async def _pass(self, context: RunContext, live: ActiveRun) -> None:
        now = _Pass()
        try:
            end = await live.run_cancellable(self._work(context, now))
        except RunStopped as stopped:
            await self._persistence.cancel(context, now.turn, stopped)
        except RunHandedOver:
            await self._persistence.hand_over(context)
        else:
            if isinstance(end, Pause) and now.turn is not None:
                await self._persistence.pause(context, now.turn, end.question)
            elif isinstance(end, Done):
                await self._persistence.end(context, now.turn, end.outcome)

    async def _work(self, context: RunContext, now: _Pass) -> Pause | Done:
        """Prepare, or resume, and execute: the part of a run that may be cancelled."""
        if context.run.attempt > MAX_ATTEMPTS:
            error = f"given up after {MAX_ATTEMPTS} attempts that did not get any further"
            return Done(TurnOutcome("interrupted", "", error))
        try:
            now.turn, paused = await self._resumption.turn(context)
            _heed_stop(context.run)
            if now.turn is None:
                await self._begin(context, now)
        except (LeaseLost, RunStopped, StoreError):
            raise
        except LarkspurError as error:
            return Done(TurnOutcome("error", "", str(error)))
        return await self._execute(context, now, paused=paused)

    async def _begin(self, context: RunContext, now: _Pass) -> None:
        emit, clock = context.stream.emit, self._services.clock
        await emit(LifecycleUpdated(status="running", phase="prepare"))
        async with stage("prepare", emit, clock):
            workspace = self._services.workspaces(context.task)
            now.turn, snapshot = await self._preparation.prepare(context, workspace)
            await emit(snapshot, turn=now.turn)

    async def _execute(self, context: RunContext, now: _Pass, *, paused: bool) -> Pause | Done:
        """Drive the Turn. A failure here returns what there is."""
        turn, clock = now.turn, self._services.clock
        if turn is None:
            raise TypeError("a run without a Turn cannot be executed")
        begun = clock.monotonic()
        running = LifecycleUpdated(status="running", phase="execute")
        await context.stream.emit(running, *(() if paused else (stage_started("execute"),)))
        try:
            async with asyncio.timeout(context.task.brief.limits.timeout_seconds):
                end = await self._engine.solve(context, turn, paused=paused)
        except (LeaseLost, StoreError):
            raise
        except (TimeoutError, ModelError) as error:
            turn.end(*_reason(error, context.task.brief.limits.timeout_seconds))
        except Exception as error:
            logger.exception("run broke", extra={"run_id": context.run.id})
            turn.end("error", f"an error inside Larkspur: {describe_error(error)}")
        else:
            if isinstance(end, Done):
                await context.stream.emit(stage_completed("execute", begun, clock))
            return end
        ended = turn.next()
        if not isinstance(ended, Done):
            raise TypeError("an ended Turn is not done")
        return ended


def _heed_stop(run: Run) -> None:
    """Raise Stopped when that was asked for before the process that ran it died."""
    if run.stop is not None:
        raise RunStopped(run.stop.by, run.stop.via, run.stop.reason)


def _reason(error: TimeoutError | ModelError, seconds: float) -> tuple[StopReason, str, str]:
    if isinstance(error, TimeoutError):
        return "timeout", f"stopped after {seconds:g} s of running time", ""
    return "error", str(error), error.code
