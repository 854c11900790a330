"""The order of capabilities at the points of a run, and what several of them decide."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from internal.agent.app.runs.context import RunContext
from internal.agent.capabilities.capability import (
    CallNext,
    CallReport,
    Capability,
    ReviewedCall,
    RunCall,
)
from internal.agent.capabilities.endings import ENDINGS, Departure, Ending
from internal.agent.capabilities.registry import Capabilities
from internal.agent.domain.errors import ToolError
from internal.agent.domain.ids import RunId
from internal.agent.domain.react.hook_outcomes import HookDecision, HookOutcome
from internal.agent.domain.react.steps import Done
from internal.agent.domain.react.turn import Turn
from tests.support.store_records import a_run

NO_RUN: Any = None
"""The capabilities of these tests do not look at the run."""


class Around(Capability):
    def __init__(self, name: str, seen: list[str]) -> None:
        self._name, self._seen = name, seen

    async def around_call(self, _call: RunCall, call_next: CallNext, /) -> CallReport:
        self._seen.append(f"{self._name} before")
        try:
            report = await call_next()
        finally:
            self._seen.append(f"{self._name} after")
        return CallReport(f"{self._name}({report.text})", report.failed)


class Reviewer(Capability):
    def __init__(self, decision: HookDecision) -> None:
        self._decision = decision

    async def review_calls(
        self, _run: Any, _turn: Turn, _calls: Sequence[ReviewedCall], /
    ) -> Mapping[str, HookOutcome]:
        return {"c1": HookOutcome(self._decision)}


class Leaver(Capability):
    def __init__(self, left: list[tuple[str, Departure]]) -> None:
        self._left = left

    async def leave(self, run_id: RunId, departure: Departure, /) -> None:
        self._left.append((run_id, departure))


class Failing(Capability):
    def committed(self, _run: RunContext, _ending: Ending, /) -> None:
        raise ZeroDivisionError


class Committed(Capability):
    def __init__(self, endings: list[Ending]) -> None:
        self._endings = endings

    def committed(self, _run: RunContext, ending: Ending, /) -> None:
        self._endings.append(ending)


async def finished() -> CallReport:
    return CallReport("done", failed=False)


def test_a_capability_that_fails_after_the_commit_affects_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    endings: list[Ending] = []
    run = RunContext(NO_RUN, a_run(), NO_RUN, NO_RUN, NO_RUN)
    Capabilities((Failing(), Committed(endings))).committed(run, ENDINGS[Done])
    assert endings == [ENDINGS[Done]]
    [logged] = caplog.records
    assert (logged.message, vars(logged)["run_id"]) == ("capability failed", run.run.id)


async def test_the_first_capability_is_the_outermost_around_a_call() -> None:
    seen: list[str] = []
    found = Capabilities((Around("a", seen), Leaver([]), Around("b", seen)))
    report = await found.around_call(NO_RUN, finished)
    assert report.text == "a(b(done))"
    assert seen == ["a before", "b before", "b after", "a after"]


async def test_what_a_call_raises_passes_all_capabilities() -> None:
    seen: list[str] = []

    async def fails() -> CallReport:
        raise ToolError("no")

    with pytest.raises(ToolError, match="no"):
        await Capabilities((Around("a", seen), Around("b", seen))).around_call(NO_RUN, fails)
    assert seen == ["a before", "b before", "b after", "a after"]


@pytest.mark.parametrize(
    ("decisions", "strictest"),
    [
        (("pass", "ask"), "ask"),
        (("refuse", "pass"), "refuse"),
        (("ask", "refuse", "pass"), "refuse"),
    ],
)
async def test_the_strictest_decision_about_a_call_counts(
    decisions: tuple[HookDecision, ...], strictest: HookDecision
) -> None:
    found = Capabilities(tuple(map(Reviewer, decisions)))
    assert found.reviews_calls
    assert await found.review_calls(NO_RUN, NO_RUN, []) == {"c1": HookOutcome(strictest)}


async def test_a_point_that_nobody_names_does_nothing() -> None:
    left: list[tuple[str, Departure]] = []
    found = Capabilities((Leaver(left),))
    assert not found.reviews_calls
    assert await found.review_calls(NO_RUN, NO_RUN, []) == {}
    assert (await found.around_call(NO_RUN, finished)).text == "done"
    await found.leave(RunId("run-1"), "stopped")
    assert left == [("run-1", "stopped")]
