"""Rounds: what waits in the database is looked for on every wake, and now and then without one."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from internal.agent.domain.errors import StoreError

log = logging.getLogger(__name__)

Look = Callable[[asyncio.TaskGroup], Awaitable[None]]
"""Looks for what waits and starts tasks for it."""


class Rounds:
    """Makes rounds every so many seconds, and at once when somebody says that something came."""

    def __init__(self, seconds: float, source: str) -> None:
        self._seconds, self._source = seconds, source
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Say that there may be something."""
        self._woken.set()

    async def run(self, look: Look) -> None:
        """Make rounds until cancelled. A store that cannot be read is logged and tried again."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._woken.clear()
                try:
                    await look(tasks)
                except StoreError:
                    log.exception("it cannot be looked for", extra={"source": self._source})
                try:
                    async with asyncio.timeout(self._seconds):
                        await self._woken.wait()
                except TimeoutError:
                    pass
