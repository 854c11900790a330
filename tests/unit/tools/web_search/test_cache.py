"""The cache of web_search: stored answers, their age, and requests shared by concurrent calls."""

import asyncio
from datetime import timedelta

import pytest

from internal.agent.domain.errors import ToolError
from internal.tools.web_search.cache import MAX_ENTRIES, AnswerCache
from tests.support.movable_clock import MovableClock


class Service:
    """Counts the requests; each waits until `answers` is set."""

    def __init__(self) -> None:
        self.asked = 0
        self.started = asyncio.Event()
        self.answers = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self) -> str:
        self.asked += 1
        self.started.set()
        await self.answers.wait()
        if self.error is not None:
            raise self.error
        return f"answer {self.asked}"


@pytest.fixture
def service() -> Service:
    return Service()


async def test_an_answer_is_kept_until_it_is_too_old(service: Service) -> None:
    clock = MovableClock()
    cache = AnswerCache[str](3_600, clock)
    service.answers.set()
    assert await cache.get("a", service) == ("answer 1", False)
    clock.advance(timedelta(seconds=3_590))
    assert await cache.get("a", service) == ("answer 1", True)
    assert await cache.get("b", service) == ("answer 2", False)
    clock.advance(timedelta(seconds=20))
    assert await cache.get("a", service) == ("answer 3", False)
    assert cache.statistics == (1, 3)
    assert cache.statistics.hit_rate == 0.25


async def test_nothing_is_kept_for_no_time(service: Service) -> None:
    cache = AnswerCache[str](0, MovableClock())
    service.answers.set()
    assert cache.statistics.hit_rate == 0
    assert [await cache.get("a", service) for _ in range(2)] == [
        ("answer 1", False),
        ("answer 2", False),
    ]


async def test_the_cache_is_bounded(service: Service) -> None:
    cache = AnswerCache[str](3_600, MovableClock())
    service.answers.set()
    for number in range(MAX_ENTRIES + 1):
        await cache.get(number, service)
    assert (await cache.get(MAX_ENTRIES, service))[1]
    assert not (await cache.get(0, service))[1]


async def test_concurrent_calls_share_a_request(service: Service) -> None:
    cache = AnswerCache[str](3_600, MovableClock())
    async with asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(cache.get("a", service)) for _ in range(5)]
        await service.started.wait()
        service.answers.set()
    assert [call.result() for call in calls] == [("answer 1", False)] + [("answer 1", True)] * 4
    assert cache.statistics == (4, 1)


async def test_a_failure_is_shared_and_not_kept(service: Service) -> None:
    cache = AnswerCache[str](3_600, MovableClock())
    service.error = ToolError("no")

    async def fails() -> str:
        with pytest.raises(ToolError, match="no"):
            await cache.get("a", service)
        return "failed"

    async with asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(fails()) for _ in range(3)]
        await service.started.wait()
        service.answers.set()
    assert [call.result() for call in calls] == ["failed"] * 3
    assert service.asked == 1
    service.error = None
    assert await cache.get("a", service) == ("answer 2", False)


async def test_a_cancelled_call_leaves_its_request_to_another(service: Service) -> None:
    cache = AnswerCache[str](3_600, MovableClock())
    first = asyncio.create_task(cache.get("a", service))
    await service.started.wait()
    service.started.clear()
    second = asyncio.create_task(cache.get("a", service))
    third = asyncio.create_task(cache.get("a", service))
    first.cancel()
    await service.started.wait()
    third.cancel()
    service.answers.set()
    assert await second == ("answer 2", False)
    await asyncio.wait([first, third])
    assert first.cancelled()
    assert third.cancelled()


async def test_an_unexpected_error_reaches_its_own_call_only(service: Service) -> None:
    cache = AnswerCache[str](3_600, MovableClock())
    service.error = RuntimeError("a bug")
    first = asyncio.create_task(cache.get("a", service))
    await service.started.wait()
    service.started.clear()
    second = asyncio.create_task(cache.get("a", service))
    service.answers.set()
    with pytest.raises(RuntimeError, match="a bug"):
        await first
    with pytest.raises(RuntimeError, match="a bug"):
        await second
    assert service.asked == 2
