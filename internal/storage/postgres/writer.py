"""The writer: waiting units of work share a commit, and the commits of all processes are serial.

A lost connection is opened again. The reply to a commit that was lost with it is looked up: the
server knows for each transaction whether it was committed.
"""

import asyncio
import logging
import time
from datetime import UTC, datetime

from internal.agent.domain.errors import StoreUnavailable
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.store.database import DatabaseState
from internal.agent.store.events import EventStore
from internal.database_address.address import PostgresAddress
from internal.storage import queries
from internal.storage.pending_work import PendingWork, resolve_from_thread, state_after
from internal.storage.postgres import errors
from internal.storage.postgres.connection import Connection, connect, disconnect
from internal.storage.postgres.execution import execute
from internal.storage.postgres.notifications import CHANNEL
from internal.storage.postgres.schema import BEGIN

logger = logging.getLogger(__name__)

RETRY_SECONDS = 15.0
"""Time for which writes wait for a server that is gone."""

_MAX_GROUP_SIZE = 512
_MAX_GROUP_SECONDS = 0.05  # see the writer of SQLite
_FIRST_PAUSE_SECONDS = 0.02
_MAX_PAUSE_SECONDS = 1.0

# The notification is sent with the commit, and only if the transaction has changed something.
_END = f"""
select pg_current_xact_id_if_assigned()::text,
    case when pg_current_xact_id_if_assigned() is not null then pg_notify('{CHANNEL}', $1) end
"""
_OUTCOME = "select pg_xact_status(cast($1::text as xid8))"


class _CommitLost(Exception):
    """The connection was lost while the transaction committed."""

    def __init__(self, transaction: str | None) -> None:
        super().__init__(transaction)
        self.transaction = transaction


class PostgresWriter:
    """Executes units of work in call order, many in one transaction.

    `commits` counts the transactions, `state` has the success of the last one. `put` may be called
    from any thread; everything else belongs to the loop of the writer.
    """

    def __init__(
        self,
        address: PostgresAddress,
        connection: Connection,
        instance: str,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.commits = 0
        self.state = DatabaseState("", rfc3339(datetime.now(UTC)))
        self._address = address
        self._connection: Connection | None = connection
        self._instance = instance
        self._queries = queries.load()
        self._database_loop = loop
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[PendingWork | None] = asyncio.Queue()
        self._has_skipped = False
        self._lost_since: float | None = None
        self._task = asyncio.create_task(self._run())

    def put(self, item: PendingWork) -> None:
        """Queue a unit of work. Its future is resolved when it is on disk."""
        self._loop.call_soon_threadsafe(self._queue.put_nowait, item)

    async def close(self) -> None:
        """Write the queued work, then close the connection."""
        self._queue.put_nowait(None)
        await self._task
        await disconnect(self._connection)

    async def _run(self) -> None:
        while (item := await self._queue.get()) is not None:
            group = [item]
            try:
                await self._write(group)
                self._lost_since = None
                self._set_failure("")
            except StoreUnavailable as error:
                await self._fail(group, str(error))
            except Exception as error:  # the task must not end: all writes would wait forever
                logger.exception("storage writer failed")
                await self._fail(group, f"The database {self._address} failed: {error}.")
            resolve_from_thread(group, self._database_loop)

    async def _write(self, group: list[PendingWork]) -> None:
        """Commit the group, and wait for a server that is gone.

        Raises:
            StoreUnavailable: the server failed or stayed away.
        """
        is_isolated = False
        while True:
            try:
                connection = await self._connect()
                while not await self._attempt(connection, group, is_isolated=is_isolated):
                    is_isolated = True
            except _CommitLost as lost:
                if await self._look_up(lost.transaction):
                    self.commits += 1
                    self._has_skipped = True
                    return
            except errors.ServerFailed as failed:
                await self._recover(failed.error)
            else:
                return

    async def _attempt(
        self, connection: Connection, group: list[PendingWork], *, is_isolated: bool
    ) -> bool:
        """Execute and commit the group, which grows while it is processed.

        A unit of work that fails undoes the transaction. If it is alone, that is all. Otherwise
        False is returned, and the group is to be executed again with a savepoint for each unit:
        that costs two round trips for each one, and few fail.
        """
        await _call(connection, BEGIN)
        if not self._has_skipped:
            await execute(connection, self._queries, EventStore().skip_positions)
        deadline = time.monotonic() + _MAX_GROUP_SECONDS
        for item in group:
            if is_isolated:
                await _call(connection, "savepoint work")
            await self._execute(connection, item)
            if item.error is not None and not is_isolated:
                await _call(connection, "rollback")
                return len(group) == 1
            if is_isolated:
                undo = "rollback to work; " if item.error is not None else ""
                await _call(connection, f"{undo}release work")
            if len(group) < _MAX_GROUP_SIZE and time.monotonic() < deadline:
                self._add_waiting(group)
        await self._commit(connection)
        return True

    async def _execute(self, connection: Connection, item: PendingWork) -> None:
        item.result = item.error = None
        try:
            item.result = await execute(connection, self._queries, item.work)
        except errors.ServerFailed:
            raise
        except Exception as error:  # noqa: BLE001 - raised to the caller of this unit of work
            item.error = error

    async def _commit(self, connection: Connection) -> None:
        with errors.driver_calls():
            ended = await connection.fetchrow(_END, self._instance)
        transaction = None if ended is None else ended[0]
        try:
            await _call(connection, "commit")
        except errors.ServerFailed as failed:
            if errors.is_lost(failed.error, is_closed=connection.is_closed()):
                raise _CommitLost(transaction) from failed
            raise
        self.commits += 1
        self._has_skipped = True

    async def _look_up(self, transaction: str | None) -> bool:
        """Return whether a transaction was committed whose reply was lost.

        Raises:
            StoreUnavailable: it stays unknown.
        """
        if transaction is None:
            return False  # nothing was changed: it can be repeated
        while True:
            try:
                connection = await self._connect()
                with errors.driver_calls():
                    outcome = await connection.fetchval(_OUTCOME, transaction)
            except errors.ServerFailed as failed:
                await self._recover(failed.error)
                continue
            if outcome in {"committed", "aborted"}:
                return bool(outcome == "committed")
            await self._recover(ConnectionError("whether the last write was stored is not known"))

    async def _connect(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = None
            with errors.driver_calls():
                self._connection = await connect(self._address)
        return self._connection

    async def _recover(self, error: BaseException) -> None:
        """Wait before the next attempt after an error.

        Raises:
            StoreUnavailable: another attempt is of no use.
        """
        connection, self._connection = self._connection, None
        is_closed = connection is None or connection.is_closed()
        if connection is not None:
            connection.terminate()  # the transaction may be open
        if not errors.is_transient(error, is_closed=is_closed):
            raise errors.unavailable(error, self._address) from error
        now = time.monotonic()
        self._lost_since = self._lost_since or now
        if now - self._lost_since > RETRY_SECONDS:
            raise errors.unreachable(error, self._address) from error
        pause = _FIRST_PAUSE_SECONDS + (now - self._lost_since) / 10
        await asyncio.sleep(min(pause, _MAX_PAUSE_SECONDS))

    def _add_waiting(self, group: list[PendingWork]) -> None:
        if self._queue.empty():
            return
        item = self._queue.get_nowait()
        if item is None:
            self._queue.put_nowait(None)  # closing comes after this group
        else:
            group.append(item)

    def _set_failure(self, failure: str) -> None:
        self.state = state_after(self.state, failure)

    async def _fail(self, group: list[PendingWork], failure: str) -> None:
        """Fail the group and the work queued behind it: each would wait for the server again."""
        while not self._queue.empty() and len(group) < _MAX_GROUP_SIZE:
            size = len(group)
            self._add_waiting(group)
            if len(group) == size:
                break
        self._set_failure(failure)
        for item in group:
            item.error = StoreUnavailable(failure)  # one each: raising adds a traceback to it
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()


async def _call(connection: Connection, sql: str) -> None:
    with errors.driver_calls():
        await connection.execute(sql)
