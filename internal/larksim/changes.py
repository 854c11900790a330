"""Who waits for something to happen wakes here."""

import asyncio


class Changes:
    """A bell. Whoever waits looks for itself what happened; nothing is kept."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake everybody who waits."""
        rung, self._rung = self._rung, asyncio.Event()
        rung.set()

    async def wait(self) -> None:
        """Wait for the next change."""
        await self._rung.wait()
