"""Time in the simulator: the machine's, which a test or a person may move forward."""

import asyncio
import contextlib
import time


class SimClock:
    """Runs like any clock, and jumps when told: an hour need not be waited for."""

    def __init__(self) -> None:
        self._start = time.time() - time.monotonic()
        self._held: float | None = None
        self._jumped = asyncio.Event()

    def now(self) -> float:
        """Return seconds since 1970; they never fall."""
        return self._start + time.monotonic() if self._held is None else self._held

    def now_ms(self) -> int:
        """Return milliseconds since 1970."""
        return int(self.now() * 1000)

    def hold(self) -> None:
        """Stand still from now on, but for `advance`."""
        self._held = self.now()

    def advance(self, seconds: float) -> None:
        """Jump forward. Whoever sleeps past that moment wakes.

        Raises:
            ValueError: that is backwards.
        """
        if not seconds >= 0:
            raise ValueError("time only runs forward")
        self._start += seconds
        if self._held is not None:
            self._held += seconds
        jumped, self._jumped = self._jumped, asyncio.Event()
        jumped.set()

    async def sleep(self, seconds: float) -> None:
        """Wait until that many seconds of this clock have passed."""
        until = self.now() + seconds
        while (left := until - self.now()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left if self._held is None else None):
                    await self._jumped.wait()
