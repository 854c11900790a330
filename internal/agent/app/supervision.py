"""Supervision of the background tasks that run as long as their process."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple

from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.system_errors import describe_system_error, is_shortage
from internal.agent.ports.runtime import Clock

logger = logging.getLogger(__name__)

FIRST_DELAY_SECONDS = 0.2
MAX_DELAY_SECONDS = 5.0
"""The delay before a failed task is started again; it doubles with each failure in a row."""

STABLE_SECONDS = 2.0
"""A task that runs for so long without an error works again."""


class BackgroundTaskState(NamedTuple):
    """The state of a supervised task.

    `failure` is "" while the task works, and why it failed until it works again. `since` is the
    time of the last change, RFC 3339.
    """

    name: str
    failure: str
    since: str


def restart_delay(failures: int) -> float:
    """Return the seconds before the next start after so many failures in a row."""
    return min(FIRST_DELAY_SECONDS * 2.0 ** min(failures - 1, 10), MAX_DELAY_SECONDS)


class Supervisor:
    """Runs background tasks, starts a failed one again, and knows the state of each."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: list[_SupervisedTask] = []

    @property
    def states(self) -> list[BackgroundTaskState]:
        """The states of all tasks."""
        return [task.state for task in self._tasks]

    async def repeat(
        self,
        name: str,
        work: Callable[[], Awaitable[object]],
        *,
        interval: float = 0.0,
        wake: asyncio.Event | None = None,
    ) -> None:
        """Call `work` again and again until cancelled.

        The next call comes `interval` seconds after the last one has returned, or when `wake` is
        set. After an error, which is logged and becomes the state of the task, it comes after a
        delay of at most `MAX_DELAY_SECONDS`. Without an interval the work itself has to wait.
        """
        task = _SupervisedTask(name, self._clock)
        self._tasks.append(task)
        wake = wake or asyncio.Event()
        try:
            while True:
                wake.clear()
                if delay := await task.attempt(work):
                    await asyncio.sleep(delay)
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(interval):
                        await wake.wait()
        finally:
            self._tasks.remove(task)


class _SupervisedTask:
    """One task: its failures in a row, and the time of its last change of state."""

    def __init__(self, name: str, clock: Clock) -> None:
        self._name = name
        self._clock = clock
        self._failure = ""
        self._failures = 0
        self._started_at = 0.0
        self._is_running = False
        self._since = rfc3339(clock.now())

    @property
    def state(self) -> BackgroundTaskState:
        if self._is_running:
            self._note_stability()
        return BackgroundTaskState(self._name, self._failure, self._since)

    async def attempt(self, work: Callable[[], Awaitable[object]]) -> float:
        """Call the work once. Return the seconds to wait after an error, 0 if there was none."""
        self._started_at = self._clock.monotonic()
        self._is_running = True
        try:
            await work()
        except Exception as error:
            self._note_stability()
            if self._note_failure(error):
                expected = _is_expected(error)
                logger.log(
                    logging.WARNING if expected else logging.ERROR,
                    "background task failed",
                    extra={"task": self._name, "reason": self._failure},
                    exc_info=None if expected else error,
                )
            return restart_delay(self._failures)
        finally:
            self._is_running = False
        self._note_success()
        return 0.0

    def _note_stability(self) -> None:
        if self._clock.monotonic() - self._started_at >= STABLE_SECONDS:
            self._note_success()

    def _note_success(self) -> None:
        self._failures = 0
        if self._failure:
            logger.warning("background task works again", extra={"task": self._name})
            self._set_failure("")

    def _note_failure(self, error: Exception) -> bool:
        """Count a failure. Return whether it is another one than the last."""
        self._failures += 1
        failure = _describe(error)
        is_new = failure != self._failure
        self._set_failure(failure)
        return is_new

    def _set_failure(self, failure: str) -> None:
        if bool(failure) != bool(self._failure):
            self._since = rfc3339(self._clock.now())
        self._failure = failure


def _is_expected(error: Exception) -> bool:
    return isinstance(error, LarkspurError) or is_shortage(error)


def _describe(error: Exception) -> str:
    if isinstance(error, OSError):
        return describe_system_error(error)
    return str(error) if isinstance(error, LarkspurError) else f"{type(error).__name__}: {error}"
