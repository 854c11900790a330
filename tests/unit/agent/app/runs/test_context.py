"""The events that announce a stage."""

import asyncio
from typing import Any

import pytest

from internal.agent.app.runs.context import (
    INTERNAL_ERROR,
    STAGES,
    describe_error,
    stage,
    stage_started,
)
from internal.agent.domain.errors import LeaseLost, ToolError
from internal.agent.domain.events.types import Event, NodeFailed
from internal.observability.clock import SystemClock


class Emitted:
    """Records emitted events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    async def __call__(self, *events: Event, **_options: Any) -> None:
        self.events += events

    @property
    def types(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


@pytest.mark.parametrize(("number", "name"), [*enumerate(STAGES, 1)])
def test_stages_are_numbered(number: int, name: str) -> None:
    assert stage_started(name).step_index == number


async def test_a_stage_is_announced_and_completed() -> None:
    emitted = Emitted()
    async with stage("prepare", emitted, SystemClock()):
        assert emitted.types == ["NodeStarted"]
    assert emitted.types == ["NodeStarted", "NodeCompleted"]


async def test_an_error_fails_the_stage_and_is_raised() -> None:
    emitted = Emitted()
    with pytest.raises(KeyError):
        async with stage("prepare", emitted, SystemClock()):
            raise KeyError
    failed = emitted.events[-1]
    assert isinstance(failed, NodeFailed)
    assert failed.error == INTERNAL_ERROR


@pytest.mark.parametrize("error", [LeaseLost("gone"), asyncio.CancelledError()])
async def test_a_lost_lease_or_a_cancellation_emits_nothing(error: BaseException) -> None:
    emitted = Emitted()
    with pytest.raises(type(error)):
        async with stage("execute", emitted, SystemClock()):
            raise error
    assert emitted.types == ["NodeStarted"]


def test_an_error_is_described_by_its_sentence_and_never_by_its_class() -> None:
    assert describe_error(ToolError("It is too big.")) == "It is too big."
    assert describe_error(KeyError("usage")) == describe_error(ValueError()) == INTERNAL_ERROR
    assert "Error" not in INTERNAL_ERROR
