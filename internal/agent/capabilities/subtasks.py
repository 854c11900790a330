"""Subtasks: tasks that a run creates for other runs."""

from collections.abc import Mapping
from functools import partial

from msgspec.structs import replace

from internal.agent.app.runs.context import RunContext
from internal.agent.app.runs.finalization import with_totals
from internal.agent.app.subtasks.endings import has_message, queue_awaiting
from internal.agent.capabilities.capability import (
    CallNext,
    CallReport,
    Capability,
    Contribution,
    RunCall,
)
from internal.agent.capabilities.endings import Ending
from internal.agent.domain.delegation.state import SubtaskState
from internal.agent.domain.events.envelope import EventRecord, rfc3339
from internal.agent.domain.events.types import Event, TaskCompleted, TaskDispatched
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tasks import Run, TaskWait
from internal.agent.ports.runtime import Clock
from internal.agent.ports.tools import TasksAwaited
from internal.agent.store.database import Write
from internal.agent.store.stores import Stores


class SubtasksCapability(Capability):
    """Remembers which subtasks the model knows, and which tasks a run waits for."""

    name = SubtaskState.capability

    def __init__(self, stores: Stores, clock: Clock) -> None:
        self._stores, self._clock = stores, clock

    async def around_call(self, call: RunCall, call_next: CallNext, /) -> CallReport:
        """Take note of subtasks that were created; an end that the model knows is not told."""
        turn = call.turn
        try:
            report = await call_next()
        except TasksAwaited as awaited:
            _note(turn, awaited.events)
            raise
        known = _state(turn).told
        news = tuple(
            each
            for each in report.events
            if not (isinstance(each, TaskCompleted) and each.task_id in known)
        )
        if report.outcome.told_tasks:
            turn.remember(_state(turn).with_told(report.outcome.told_tasks))
        _note(turn, news)
        return replace(report, events=news)

    async def ending(self, run: RunContext, turn: Turn | None, ending: Ending, /) -> Contribution:
        """Store the waits of the run; add the spending of subtasks to its last event."""
        if ending.awaits_tasks and turn is not None:
            return Contribution(after=partial(self._store_waits, run.run, turn.waits))
        # other runs have no other run's part
        is_alone = run.run.subtask is None and turn is not None and not _state(turn).creates
        if is_alone or not ending.drops_checkpoint:
            return Contribution()
        return Contribution(settle=partial(with_totals, self._stores, run.run))

    def _store_waits(self, run: Run, waits: Mapping[str, TaskWait]) -> Write[list[EventRecord]]:
        """Store the waits of a run; if one is over already, the run is queued at once."""
        yield from self._stores.subtasks.set_waits(run.id, waits)
        is_settled = yield from self._stores.subtasks.has_settled_wait(run.id)
        # the end of another task is no reason to go on: it is told at the next step
        if is_settled or (yield from has_message(self._stores, run.id)):
            yield from queue_awaiting(self._stores, run, now=rfc3339(self._clock.now()))
        return []


def _note(turn: Turn, events: tuple[Event, ...]) -> None:
    if any(isinstance(each, TaskDispatched) for each in events):
        turn.remember(replace(_state(turn), creates=True))


def _state(turn: Turn) -> SubtaskState:
    return SubtaskState.of(turn.states) or SubtaskState()
