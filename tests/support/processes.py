"""Processes that need not be children: waiting for their end, and their inherited descriptors."""

import asyncio
import os
import re
import select
from pathlib import Path


async def wait_for_end(pid: int) -> None:
    """Wait until a process has ended, for at most ten seconds."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    readable: list[int] = (await asyncio.to_thread(select.select, [descriptor], [], [], 10))[0]
    os.close(descriptor)
    assert readable, f"{pid} runs"


def is_of_libffi(descriptor: Path) -> bool:
    """Return True for a file of /proc/PID/fd that a process opened itself, by importing ctypes.

    libffi keeps its own library open where it is built with static trampolines, as in Debian 14.
    """
    return re.fullmatch(r"/(usr/)?lib/.*/libffi\.so[.0-9]*", str(descriptor.readlink())) is not None
