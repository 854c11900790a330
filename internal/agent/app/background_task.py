"""Children: a task that lasts as long as a block, and is over when the block is left."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any


@asynccontextmanager
async def background_task(doing: Coroutine[Any, Any, None]) -> AsyncGenerator[asyncio.Task[None]]:
    """Run a task beside a block that never ends by itself; leaving the block cancels it.

    Unlike a TaskGroup it lets the block's own error through as it is.
    """
    task = asyncio.create_task(doing)
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
