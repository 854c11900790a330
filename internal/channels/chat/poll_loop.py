"""Poll the database on wake-ups and at a fixed interval."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from internal.agent.domain.errors import StoreError

log = logging.getLogger(__name__)

Poll = Callable[[asyncio.TaskGroup], Awaitable[None]]
"""Reads what is waiting and starts tasks for it."""


class PollLoop:
    """Calls a function every `interval` seconds and after every `wake`."""

    def __init__(self, interval: float, source: str) -> None:
        self._interval, self._source = interval, source
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Poll as soon as possible."""
        self._woken.set()

    async def run(self, poll: Poll) -> None:
        """Poll until cancelled. An error of the store is logged and retried."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._woken.clear()
                try:
                    await poll(tasks)
                except StoreError:
                    log.exception("polling failed", extra={"source": self._source})
                try:
                    async with asyncio.timeout(self._interval):
                        await self._woken.wait()
                except TimeoutError:
                    pass
