"""The readers: units of work on snapshots of the database."""

import asyncio
from contextlib import suppress

from internal.database_address.address import PostgresAddress
from internal.storage import queries
from internal.storage.pending_work import PendingWork, resolve_from_thread
from internal.storage.postgres import errors
from internal.storage.postgres.connection import Connection, connect, disconnect
from internal.storage.postgres.execution import execute

_READER_COUNT = 4
_BEGIN = "begin isolation level repeatable read read only"
_BEGIN_NEXT = f"rollback; {_BEGIN}"
_IDLE_SECONDS = 1.0
"""Time a transaction stays open for the next read. Without a statement it has no snapshot."""


class Readers:
    """Executes reads on a few connections, which are opened when they are needed.

    `put` may be called from any thread; everything else belongs to the loop of the readers.
    """

    def __init__(self, address: PostgresAddress, database_loop: asyncio.AbstractEventLoop) -> None:
        self._address = address
        self._queries = queries.load()
        self._database_loop = database_loop
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[PendingWork | None] = asyncio.Queue()
        self._tasks = [asyncio.create_task(self._run()) for _ in range(_READER_COUNT)]

    def put(self, item: PendingWork) -> None:
        """Queue a read."""
        self._loop.call_soon_threadsafe(self._queue.put_nowait, item)

    async def close(self) -> None:
        """Complete the queued reads, then close the connections."""
        for _ in self._tasks:
            self._queue.put_nowait(None)
        await asyncio.wait(self._tasks)

    async def _run(self) -> None:
        connection: Connection | None = None
        while (item := await self._next(connection)) is not None:
            for is_last in (False, True):  # a read is repeated once, on a new connection
                try:
                    connection = await self._begin(connection)
                    item.result = await execute(connection, self._queries, item.work)
                except errors.ServerFailed as failed:
                    is_closed = connection is None or connection.is_closed()
                    is_transient = errors.is_transient(failed.error, is_closed=is_closed)
                    if connection is not None:
                        connection.terminate()
                    if is_transient and not is_last:
                        continue
                    make = errors.unreachable if is_transient else errors.unavailable
                    item.error = make(failed.error, self._address)
                except Exception as error:  # noqa: BLE001 - raised to the caller of this read
                    item.error = error
                break
            resolve_from_thread((item,), self._database_loop)
            await _end(connection, _BEGIN_NEXT)
        await disconnect(connection)

    async def _next(self, connection: Connection | None) -> PendingWork | None:
        """Return the next read, None at the end. End an unused transaction after a second."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_IDLE_SECONDS):
                return await self._queue.get()
        await _end(connection, "rollback")
        return await self._queue.get()

    async def _begin(self, connection: Connection | None) -> Connection:
        with errors.driver_calls():
            if connection is None or connection.is_closed():
                connection = await connect(self._address)
            if not connection.is_in_transaction():
                await connection.execute(_BEGIN)
        return connection


async def _end(connection: Connection | None, sql: str) -> None:
    """End the transaction of a read. A connection that fails is closed."""
    if connection is None or connection.is_closed():
        return
    try:
        await connection.execute(sql)
    except errors.DRIVER_ERRORS:
        connection.terminate()
