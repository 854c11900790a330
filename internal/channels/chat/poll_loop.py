"""Poll the database on wake-ups and at a fixed interval."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from internal.agent.app.supervision import Supervisor

Poll = Callable[[asyncio.TaskGroup], Awaitable[None]]
"""Reads waiting items and starts tasks for them, which raise nothing."""


class PollLoop:
    """Calls a function every `interval` seconds and after every `wake`."""

    def __init__(self, interval: float, name: str) -> None:
        self._interval, self._name = interval, name
        self._woken = asyncio.Event()
        self.tasks: asyncio.TaskGroup | None = None
        """Tasks that end with the loop; None while it does not run."""

    def wake(self) -> None:
        """Poll as soon as possible."""
        self._woken.set()

    async def run(self, poll: Poll, supervisor: Supervisor) -> None:
        """Poll until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self.tasks = tasks
            try:
                await supervisor.repeat(
                    self._name, partial(poll, tasks), interval=self._interval, wake=self._woken
                )
            finally:
                self.tasks = None
