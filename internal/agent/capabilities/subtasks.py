"""Subtasks: tasks that a run creates for other runs."""

from functools import partial

from msgspec.structs import replace

from internal.agent.app.runs.context import RunContext
from internal.agent.app.runs.finalization import with_totals
from internal.agent.capabilities.capability import (
    CallNext,
    CallReport,
    Capability,
    Contribution,
    RunCall,
)
from internal.agent.capabilities.endings import Ending
from internal.agent.domain.delegation.state import SubtaskState
from internal.agent.domain.events.types import Event, TaskCompleted, TaskDispatched
from internal.agent.domain.react.turn import Turn
from internal.agent.ports.tools import TasksAwaited
from internal.agent.store.stores import Stores


class SubtasksCapability(Capability):
    """Remembers which subtasks the model knows."""

    name = SubtaskState.capability

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

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
            turn.remember(_state(turn).telling(report.outcome.told_tasks))
        _note(turn, news)
        return replace(report, events=news)

    async def ending(self, run: RunContext, turn: Turn | None, ending: Ending, /) -> Contribution:
        """Add what subtasks used to the last event; other runs have no other run's part."""
        is_alone = run.run.subtask is None and turn is not None and not _state(turn).creates
        if is_alone or not ending.drops_checkpoint:
            return Contribution()
        return Contribution(settle=partial(with_totals, self._stores, run.run))


def _note(turn: Turn, events: tuple[Event, ...]) -> None:
    if any(isinstance(each, TaskDispatched) for each in events):
        turn.remember(replace(_state(turn), creates=True))


def _state(turn: Turn) -> SubtaskState:
    return SubtaskState.of(turn.states) or SubtaskState()
