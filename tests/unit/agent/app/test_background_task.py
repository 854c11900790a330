"""A task that runs in the background of a block."""

import asyncio

import pytest

from internal.agent.app.background_task import background_task


async def wait(started: asyncio.Event) -> None:
    started.set()
    await asyncio.Event().wait()


async def test_the_task_is_cancelled_when_the_block_ends() -> None:
    started = asyncio.Event()
    async with background_task(wait(started)) as task:
        await started.wait()
        assert not task.done()
    assert task.cancelled()


async def test_an_error_of_the_block_is_raised_unwrapped() -> None:
    async def fail() -> None:
        async with background_task(wait(asyncio.Event())):
            raise KeyError("block")

    with pytest.raises(KeyError, match="block"):
        await fail()


async def test_an_error_of_the_task_is_raised_at_the_end_of_the_block() -> None:
    async def fail() -> None:
        raise KeyError("task")

    async def block() -> None:
        async with background_task(fail()) as task:
            await asyncio.wait([task])

    with pytest.raises(KeyError, match="task"):
        await block()
