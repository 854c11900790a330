"""The commits of other processes, which PostgreSQL announces with NOTIFY."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from itertools import count

from internal.agent.domain.errors import StoreUnavailable
from internal.database_address.address import PostgresAddress
from internal.storage.postgres import errors
from internal.storage.postgres.connection import Connection, connect, disconnect

CHANNEL = "larkspur"
_PROBE_SECONDS = 15.0
_FIRST_PAUSE_SECONDS = 0.1
_MAX_PAUSE_SECONDS = 5.0


class Notifications:
    """Calls back after commits of other processes, on a connection of its own while it is needed.

    Belongs to the loop that it is created in, except for `add` and `remove`, which belong to the
    loop of the database, as the callbacks do.
    """

    def __init__(
        self, address: PostgresAddress, instance: str, database_loop: asyncio.AbstractEventLoop
    ) -> None:
        self._address = address
        self._instance = instance
        self._loop = asyncio.get_running_loop()
        self._database_loop = database_loop
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._numbers = count()
        self._is_scheduled = False
        self._task: asyncio.Task[None] | None = None

    def add(self, callback: Callable[[], None]) -> int:
        """Call back from now on, and once when the first notification can be received."""
        number = next(self._numbers)
        self._callbacks[number] = callback
        self._loop.call_soon_threadsafe(self._start)
        return number

    def remove(self, number: int) -> None:
        """Do not call back any more."""
        del self._callbacks[number]

    async def close(self) -> None:
        """Close the connection."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            with suppress(*errors.DRIVER_ERRORS, StoreUnavailable):
                connection = await connect(self._address)
                try:
                    await connection.add_listener(CHANNEL, self._receive)
                    pause = _FIRST_PAUSE_SECONDS
                    self._schedule()  # what was committed before is not announced
                    await _wait_for_end(connection)
                finally:
                    await disconnect(connection)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE_SECONDS)

    def _receive(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        if payload != self._instance:
            self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._database_loop.call_soon_threadsafe(self._call)

    def _call(self) -> None:
        self._is_scheduled = False
        for callback in list(self._callbacks.values()):
            callback()


async def _wait_for_end(connection: Connection) -> None:
    """Return when the connection is closed, or raise an error when the server does not answer."""
    ended = asyncio.Event()
    connection.add_termination_listener(lambda _: ended.set())
    while not connection.is_closed():
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), _PROBE_SECONDS)
            return
        await connection.fetchval("select 1")  # a host that vanished does not close it
