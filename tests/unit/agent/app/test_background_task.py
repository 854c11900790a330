"""Work beside the event loop: a task of a block, and a blocking call in a thread."""

import asyncio
import gc
import os
from pathlib import Path

import pytest

from internal.agent.app.background_task import (
    background_task,
    open_to_completion,
    run_to_completion,
    wait_shielded,
)
from internal.attachments.content import in_thread


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


async def test_a_cancelled_call_waits_for_its_change_to_finish() -> None:
    loop = asyncio.get_running_loop()
    begun, go_on, done = asyncio.Event(), asyncio.Event(), []

    def change() -> None:
        loop.call_soon_threadsafe(begun.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result()
        done.append("changed")

    changing = asyncio.create_task(run_to_completion(change))
    await begun.wait()
    for _ in range(2):
        changing.cancel()
        await asyncio.sleep(0)  # let it take the cancel
    assert not changing.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await changing
    assert done == ["changed"]


async def test_a_cancellation_while_the_work_ends_is_not_lost() -> None:
    ending, may_end = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            await may_end.wait()

    async def leave() -> None:
        async with background_task(work()):
            await asyncio.sleep(0)  # one step: it has begun

    leaving = asyncio.create_task(leave())
    await ending.wait()
    leaving.cancel()
    await asyncio.sleep(0)  # one step: it is cancelled, and waits for the work
    assert not leaving.done()
    may_end.set()
    await asyncio.wait({leaving})
    assert leaving.cancelled()


async def test_what_a_cancelled_call_has_opened_is_closed() -> None:
    loop = asyncio.get_running_loop()
    begun, go_on, closed = asyncio.Event(), asyncio.Event(), list[str]()

    def open_it() -> str:
        loop.call_soon_threadsafe(begun.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result()
        return "opened"

    opening = asyncio.create_task(open_to_completion(open_it, closed.append))
    await begun.wait()
    opening.cancel()
    await asyncio.sleep(0)  # let it take the cancel
    assert (opening.done(), closed) == (False, [])
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert closed == ["opened"]


async def test_what_was_opened_is_returned_open() -> None:
    closed: list[str] = []
    assert await open_to_completion(lambda: "opened", closed.append) == "opened"
    assert closed == []


async def test_shielded_work_goes_on_when_its_waiter_is_cancelled() -> None:
    work = asyncio.get_running_loop().create_future()
    waiters = [asyncio.create_task(wait_shielded(work)) for _ in range(2)]
    await asyncio.sleep(0)  # one step: they wait
    waiters[0].cancel()
    await asyncio.wait({waiters[0]})
    assert waiters[0].cancelled()
    work.set_result("done")
    assert await waiters[1] == "done"


async def test_an_error_of_shielded_work_without_a_waiter_is_not_reported() -> None:
    work = asyncio.get_running_loop().create_future()
    waiter = asyncio.create_task(wait_shielded(work))
    await asyncio.sleep(0)  # one step: it waits
    waiter.cancel()
    await asyncio.wait({waiter})
    work.set_exception(OSError("later"))
    await asyncio.sleep(0)  # one step: callbacks
    del work, waiter
    gc.collect()  # the runner of the test fails if the loop gets a report


async def test_the_result_and_the_error_of_shielded_work_reach_the_waiter() -> None:
    done, failed = (asyncio.get_running_loop().create_future() for _ in range(2))
    done.set_result(1)
    failed.set_exception(OSError("now"))
    assert await wait_shielded(done) == 1
    with pytest.raises(OSError, match="now"):
        await wait_shielded(failed)


async def test_each_cancellation_waits_for_work_that_uses_a_file(tmp_path: Path) -> None:
    """The file is closed after the work, and its number is given to the next file."""
    loop = asyncio.get_running_loop()
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def use(descriptor: int) -> None:
        def write() -> None:
            loop.call_soon_threadsafe(begun.set)
            asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result()
            os.write(descriptor, b"own")

        try:
            await in_thread(write)
        finally:
            os.close(descriptor)
            canary = os.open(tmp_path / "canary", os.O_WRONLY | os.O_CREAT)
            closing.append(canary)

    closing: list[int] = []
    using = asyncio.create_task(use(os.open(tmp_path / "own", os.O_WRONLY | os.O_CREAT)))
    await begun.wait()
    for _ in range(3):
        using.cancel()
        await asyncio.sleep(0)  # let it take the cancel
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await using
    os.close(closing[0])
    assert (tmp_path / "own").read_bytes() == b"own"
    assert (tmp_path / "canary").read_bytes() == b""
