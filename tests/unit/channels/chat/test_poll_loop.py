"""Polling on wake-ups and after errors of the store."""

import asyncio

from internal.agent.app.supervision import Supervisor
from internal.agent.domain.errors import StoreUnavailable
from internal.channels.chat.poll_loop import PollLoop
from internal.observability.clock import SystemClock

SUPERVISOR = Supervisor(SystemClock())


async def test_a_wake_up_polls_at_once_and_an_error_does_not_end_the_loop() -> None:
    polled = asyncio.Queue[int]()
    count = 0

    async def poll(_: asyncio.TaskGroup) -> None:
        nonlocal count
        count += 1
        polled.put_nowait(count)
        if count == 1:
            raise StoreUnavailable("The disk is full.")

    loop = PollLoop(3600, "test")
    running = asyncio.create_task(loop.run(poll, SUPERVISOR))
    async with asyncio.timeout(10):
        assert [await polled.get(), await polled.get()] == [1, 2]
        loop.wake()
        assert await polled.get() == 3
    running.cancel()
    await asyncio.wait([running])


async def test_the_interval_polls_without_a_wake_up() -> None:
    polled = asyncio.Queue[None]()

    async def poll(_: asyncio.TaskGroup) -> None:
        polled.put_nowait(None)

    running = asyncio.create_task(PollLoop(0.01, "test").run(poll, SUPERVISOR))
    async with asyncio.timeout(10):
        for _ in range(3):
            await polled.get()
    running.cancel()
    await asyncio.wait([running])
