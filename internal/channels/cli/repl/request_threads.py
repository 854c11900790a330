"""Asking a gateway patiently. Every request has a thread of its own: nobody has to wait for it."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from internal.channels.cli.client import GatewayError
from internal.channels.cli.exit_codes import CliExit
from internal.channels.cli.http_client import Door, Unreachable

T = TypeVar("T")
_TRIES = 20
_PAUSE_SECONDS = 0.25


class PatientDoor:
    """Asks the gateway that `find` names now: after a restart it may be at another address.

    `find` returns None while there is none.
    """

    def __init__(self, door: Door, find: Callable[[], Door | None]) -> None:
        self.door = door
        self._find = find

    async def ask(self, ask: Callable[[Door], T], tries: int = _TRIES) -> T:
        """Ask until the gateway answers, for some seconds."""
        while True:
            try:
                return await in_thread(lambda: ask(self.door))
            except CliExit as refused:
                raise GatewayError(str(refused)) from None
            except (KeyError, TypeError):
                raise GatewayError(str(self.door.stranger())) from None
            except Unreachable as error:
                tries -= 1
                if not tries:
                    raise GatewayError(f"The gateway does not answer: {error}.") from None
            await asyncio.sleep(_PAUSE_SECONDS)
            await self._look()

    async def there(self) -> bool:
        """Look for the gateway again, where it is now."""
        await self._look()
        return await in_thread(self.door.answers)

    async def _look(self) -> None:
        found = await in_thread(self._find)
        if found is not None:
            self.door = found


async def in_thread(work: Callable[[], T]) -> T:
    """Do blocking work in a daemon thread: one that hangs does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(settled: Callable[[], None]) -> None:
        if not done.done():
            settled()

    def run() -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            try:
                settled = partial(done.set_result, work())
            except Exception as error:  # noqa: BLE001 - it is raised where it is awaited
                settled = partial(done.set_exception, error)
            loop.call_soon_threadsafe(settle, settled)

    threading.Thread(target=run, daemon=True).start()
    return await done
