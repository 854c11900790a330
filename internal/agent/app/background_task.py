"""Work beside the event loop: a task of a block, and a blocking call in a thread."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")


@asynccontextmanager
async def background_task(work: Coroutine[Any, Any, None]) -> AsyncGenerator[asyncio.Task[None]]:
    """Run the work while the block runs, and cancel it when the block is left.

    Unlike a TaskGroup it does not wrap an error of the block in an exception group. Leaving waits
    until the work has ended; a cancellation that comes meanwhile takes effect after that.
    """
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        cancelled = None
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = error
        if not task.cancelled():
            task.result()
        if cancelled is not None:
            raise cancelled


async def wait_shielded(work: asyncio.Future[_Result]) -> _Result:
    """Return the result of work that goes on when its waiter is cancelled.

    Unlike `asyncio.shield` it never reports an error of the work to the exception handler of the
    event loop; that one does since Python 3.14 if the error follows the cancellation.
    """
    try:
        await asyncio.wait({work})
    except asyncio.CancelledError:
        work.add_done_callback(_retrieve)
        raise
    return work.result()


def _retrieve(work: asyncio.Future[Any]) -> None:
    if not work.cancelled():
        work.exception()  # retrieved, so that asyncio does not log it


async def run_to_completion(
    function: Callable[_Params, _Result], /, *args: _Params.args, **kwargs: _Params.kwargs
) -> _Result:
    """Run a blocking change in a thread. Cancelling waits until the change is complete."""
    call = partial(copy_context().run, function, *args, **kwargs)
    return await wait_until_done(asyncio.get_running_loop().run_in_executor(None, call))


async def open_to_completion(
    function: Callable[[], _Result], close: Callable[[_Result], None]
) -> _Result:
    """Open a resource in a thread. Cancelling waits, and closes the resource opened meanwhile."""
    opening = asyncio.get_running_loop().run_in_executor(None, function)
    try:
        return await wait_until_done(opening)
    except asyncio.CancelledError:
        if not opening.cancelled() and opening.exception() is None:
            close(opening.result())
        raise


async def wait_for_completion(
    running: Coroutine[Any, Any, _Result], on_cancel: Callable[[], None] = lambda: None
) -> _Result:
    """Run a coroutine to its end. Cancelling calls `on_cancel` and still waits for the end."""
    return await wait_until_done(asyncio.create_task(running), on_cancel)


async def wait_until_done(
    work: asyncio.Future[_Result], on_cancel: Callable[[], None] = lambda: None
) -> _Result:
    """Wait for work that cannot be undone, after any number of cancellations as well.

    `on_cancel` may make it end earlier.
    """
    try:
        return await wait_shielded(work)
    except asyncio.CancelledError:
        on_cancel()
        while not work.done():  # a second cancellation waits as well
            with suppress(asyncio.CancelledError):
                await asyncio.wait({work})
        raise
