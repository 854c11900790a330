"""The capabilities of a process, asked in their order at the points that they name."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from internal.agent.app.runs.context import RunContext
from internal.agent.capabilities.capability import (
    CallNext,
    CallReport,
    Capability,
    Departure,
    Moment,
    ReviewedCall,
    RunCall,
)
from internal.agent.domain.ids import RunId
from internal.agent.domain.react.hook_outcomes import HookDecision, HookOutcome
from internal.agent.domain.react.turn import Turn

_STRICTNESS: dict[HookDecision, int] = {"pass": 0, "ask": 1, "refuse": 2}


class Capabilities:
    """All capabilities. Each point knows those that name it; the others are not called."""

    def __init__(self, members: tuple[Capability, ...] = ()) -> None:
        self._review_calls = _naming(members, Capability.review_calls)
        self._around_call = _naming(members, Capability.around_call)
        self._observe = _naming(members, Capability.observe)
        self._leave = _naming(members, Capability.leave)

    @property
    def reviews_calls(self) -> bool:
        """Whether a capability decides about calls."""
        return bool(self._review_calls)

    async def review_calls(
        self, run: RunContext, turn: Turn, calls: Sequence[ReviewedCall]
    ) -> dict[str, HookOutcome]:
        """Return the decisions about calls, by call_id: the strictest one about each."""
        decisions: dict[str, HookOutcome] = {}
        for review in self._review_calls:
            for call_id, outcome in (await review(run, turn, calls)).items():
                known = decisions.get(call_id)
                if known is None or _STRICTNESS[outcome.decision] > _STRICTNESS[known.decision]:
                    decisions[call_id] = outcome
        return decisions

    async def around_call(self, call: RunCall, call_next: CallNext) -> CallReport:
        """Execute a call inside of all capabilities; the first one is the outermost."""
        for around in reversed(self._around_call):
            call_next = partial(around, call, call_next)
        return await call_next()

    async def observe(self, run: RunContext, moment: Moment) -> None:
        """Tell of a moment of a run."""
        for observe in self._observe:
            await observe(run, moment)

    async def leave(self, run_id: RunId, departure: Departure) -> None:
        """Release what this process holds for a run."""
        for leave in self._leave:
            await leave(run_id, departure)


def _naming(members: tuple[Capability, ...], point: Callable[..., Any]) -> tuple[Any, ...]:
    """Return the methods of the members that name a point."""
    name = point.__name__
    return tuple(getattr(each, name) for each in members if getattr(type(each), name) is not point)
