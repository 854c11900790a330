"""Supervision: restarts with a delay, and the state of each task."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from internal.agent.app.background_task import background_task
from internal.agent.app.supervision import (
    FIRST_DELAY_SECONDS,
    MAX_DELAY_SECONDS,
    STABLE_SECONDS,
    BackgroundTaskState,
    Supervisor,
    restart_delay,
)
from internal.agent.domain.errors import StoreUnavailable
from internal.observability.clock import SystemClock


class Work:
    """Work whose calls a test answers one by one with a result or an error."""

    def __init__(self) -> None:
        self._outcomes = asyncio.Queue[Exception | None]()
        self.calls = asyncio.Semaphore(0)
        self.count = 0

    async def __call__(self) -> None:
        self.count += 1
        self.calls.release()
        if (outcome := await self._outcomes.get()) is not None:
            raise outcome

    async def called(self) -> None:
        async with asyncio.timeout(30):
            await self.calls.acquire()

    def end(self, outcome: Exception | None = None) -> None:
        self._outcomes.put_nowait(outcome)


class AdvancingClock(SystemClock):
    """A clock that tests set forward."""

    ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


@pytest.fixture
def clock() -> AdvancingClock:
    return AdvancingClock()


@pytest.fixture
def supervisor(clock: AdvancingClock) -> Supervisor:
    return Supervisor(clock)


@asynccontextmanager
async def repeated(
    supervisor: Supervisor, wake: asyncio.Event | None = None, interval: float = 0.0
) -> AsyncGenerator[Work]:
    work = Work()
    async with background_task(supervisor.repeat("test", work, interval=interval, wake=wake)):
        await work.called()
        yield work


def state(supervisor: Supervisor) -> BackgroundTaskState:
    [found] = supervisor.states
    return found


async def test_work_is_called_again_when_it_has_returned(supervisor: Supervisor) -> None:
    async with repeated(supervisor) as work:
        for _ in range(3):
            work.end()
            await work.called()
        assert state(supervisor).failure == ""
    assert supervisor.states == []


async def test_a_wake_up_ends_the_interval(supervisor: Supervisor) -> None:
    wake = asyncio.Event()
    async with repeated(supervisor, wake, interval=3600) as work:
        wake.set()  # while it is busy
        work.end()
        await work.called()
        work.end()
        wake.set()
        await work.called()


async def test_an_unforeseen_error_is_logged_with_its_traceback_and_the_task_goes_on(
    supervisor: Supervisor, caplog: pytest.LogCaptureFixture
) -> None:
    async with repeated(supervisor) as work:
        before = state(supervisor)
        for _ in range(2):
            work.end(OverflowError("too large"))
            await work.called()
        failing = state(supervisor)
        assert failing == ("test", "OverflowError: too large", failing.since)
        assert failing.since >= before.since
        [record] = caplog.records
        assert record.exc_info is not None, "the same failure is logged once"
        work.end()
        await work.called()
        assert state(supervisor).failure == ""
        assert caplog.records[-1].message == "background task works again"


async def test_an_expected_error_is_logged_without_a_traceback(
    supervisor: Supervisor, caplog: pytest.LogCaptureFixture
) -> None:
    async with repeated(supervisor) as work:
        work.end(StoreUnavailable("The disk is full."))
        await work.called()
        assert state(supervisor).failure == "The disk is full."
    [record] = caplog.records
    assert not record.exc_info


async def test_a_task_that_runs_long_enough_works_again(
    supervisor: Supervisor, clock: AdvancingClock
) -> None:
    async with repeated(supervisor) as work:
        work.end(ValueError("broken"))
        await work.called()
        assert state(supervisor).failure
        clock.ahead = STABLE_SECONDS
        assert state(supervisor).failure == ""


def test_the_delay_doubles_up_to_its_limit() -> None:
    delays = [restart_delay(failures) for failures in range(1, 10_000)]
    assert delays[:3] == [FIRST_DELAY_SECONDS * 2.0**number for number in range(3)]
    assert delays[-1] == max(delays) == MAX_DELAY_SECONDS


async def test_a_cancelled_task_is_not_started_again(supervisor: Supervisor) -> None:
    work = Work()
    task = asyncio.create_task(supervisor.repeat("test", work))
    await work.called()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (work.count, supervisor.states) == (1, [])
