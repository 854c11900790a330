"""The simulator's clock, which tests and people can move forward."""

import asyncio
import contextlib
import time


class SimClock:
    """A wall clock that can be stopped and advanced."""

    def __init__(self) -> None:
        self._start = time.time() - time.monotonic()
        self._held: float | None = None
        self._jumped = asyncio.Event()

    def now(self) -> float:
        """Return seconds since 1970; the value never decreases."""
        return self._start + time.monotonic() if self._held is None else self._held

    def now_ms(self) -> int:
        """Return milliseconds since 1970."""
        return int(self.now() * 1000)

    def hold(self) -> None:
        """Stop the clock; only `advance` moves it from now on."""
        self._held = self.now()

    def advance(self, seconds: float) -> None:
        """Move the clock forward and wake sleepers whose time has come.

        Raises:
            ValueError: `seconds` is negative or not a number.
        """
        if not seconds >= 0:
            raise ValueError("seconds must not be negative")
        self._start += seconds
        if self._held is not None:
            self._held += seconds
        jumped, self._jumped = self._jumped, asyncio.Event()
        jumped.set()

    async def sleep(self, seconds: float) -> None:
        """Wait until `seconds` have passed on this clock."""
        until = self.now() + seconds
        while (left := until - self.now()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left if self._held is None else None):
                    await self._jumped.wait()
