import asyncio

import pytest

from internal.simulators.lark.clock import SimClock


def test_a_held_clock_moves_only_when_advanced() -> None:
    clock = SimClock()
    clock.hold()
    start = clock.now()
    assert clock.now() == start
    clock.advance(3600)
    assert clock.now() == start + 3600
    assert clock.now_ms() == int(clock.now() * 1000)


async def test_advancing_wakes_sleepers() -> None:
    clock = SimClock()
    clock.hold()
    wait = clock.sleep
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(wait(60))
        await asyncio.sleep(0)
        clock.advance(60)


def test_the_clock_never_goes_back() -> None:
    with pytest.raises(ValueError, match="negative"):
        SimClock().advance(-1)
