"""Waiting for processes that need not be children."""

import asyncio
import os
import select


async def wait_for_end(pid: int) -> None:
    """Wait until a process has ended, for at most ten seconds."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    readable: list[int] = (await asyncio.to_thread(select.select, [descriptor], [], [], 10))[0]
    os.close(descriptor)
    assert readable, f"{pid} runs"
