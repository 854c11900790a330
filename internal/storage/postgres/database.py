"""The PostgreSQL database: a writer and readers, each on an event loop of its own."""

import asyncio
import secrets
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar, cast

from internal.agent.domain.errors import StoreCorrupt
from internal.agent.ports.runtime import ProcessMessages
from internal.agent.store.database import DatabaseState, Read, Row, SqlValue, Statement
from internal.database_address.address import PostgresAddress, parse_address
from internal.storage import queries
from internal.storage.postgres import errors
from internal.storage.postgres.connection import (
    Connection,
    check_session,
    connect,
    disconnect,
)
from internal.storage.postgres.execution import execute
from internal.storage.postgres.loop_thread import LoopThread
from internal.storage.postgres.notifications import Notifications
from internal.storage.postgres.reader import Readers
from internal.storage.postgres.schema import check_moves, check_server, prepare, read_version
from internal.storage.postgres.writer import PostgresWriter
from internal.storage.queued_database import QueuedDatabase

T = TypeVar("T")


class PostgresDatabase(QueuedDatabase):
    """A `Database` on a PostgreSQL server, which other processes may use at the same time.

    Belongs to the event loop that opened it. Use `open` to create an instance. A unit of work may
    take its time: the loops of writer and readers are not the one of the caller.
    """

    def __init__(
        self,
        threads: tuple[LoopThread, LoopThread],
        writer: PostgresWriter,
        readers: Readers,
        notifications: Notifications,
    ) -> None:
        super().__init__(writer.put, readers.put)
        self._writer_thread, self._reader_thread = threads
        self._writer = writer
        self._readers = readers
        self._notifications = notifications

    @classmethod
    async def open(cls, url: str) -> "PostgresDatabase":
        """Connect to the server, and create or migrate the tables when necessary.

        Raises:
            StoreCorrupt: the URL is malformed, or the database is not Larkspur's or has an unknown
                schema; nothing was changed.
            StoreUnavailable: the server cannot be reached or used.
        """
        address, instance = parse_url(url), secrets.token_hex(8)
        loop = asyncio.get_running_loop()
        threads = LoopThread("storage-writer"), LoopThread("storage-reader")
        try:
            writer = await threads[0].call(_open_writer(address, instance, loop))
        except BaseException:
            for thread in threads:
                thread.close()
            raise
        readers, notifications = await threads[1].call(_open_readers(address, instance, loop))
        return cls(threads, writer, readers, notifications)

    @staticmethod
    async def check(url: str) -> int:
        """Check that the database can be used and return its schema version, 0 without tables.

        Raises:
            StoreCorrupt, StoreUnavailable: as `open`; nothing is changed.
        """
        address = parse_url(url)
        connection = await connect_first(address)
        try:
            await check_server(connection, address)
            return await read_version(connection, address)
        except errors.DRIVER_ERRORS as error:
            raise errors.unavailable(error, address) from error
        finally:
            await disconnect(connection)

    @staticmethod
    async def read_rows(url: str, query: str, *values: SqlValue) -> list[Row]:
        """Return the rows of a named statement without changing the database.

        Raises:
            StoreError, StoreCorrupt, StoreUnavailable: it cannot be read, or has another schema.
        """

        def work() -> Read[list[Row]]:
            return (yield Statement(query, values))

        address = parse_url(url)
        connection = await connect_first(address)
        try:
            return cast(list[Row], await execute(connection, queries.load(), work))
        except errors.DRIVER_ERRORS as error:
            raise errors.unavailable(error, address) from error
        finally:
            await disconnect(connection)

    @property
    def commits(self) -> int:
        """The number of committed transactions. Concurrent writes share one."""
        return self._writer.commits

    @property
    def state(self) -> DatabaseState:
        """Whether the last write succeeded."""
        return self._writer.state

    @property
    def messages(self) -> ProcessMessages:
        """The messages between the processes that use the database."""
        return self._notifications

    @contextmanager
    def watch(self, callback: Callable[[], None], /) -> Generator[None]:
        """Call `callback` in the event loop of the database after commits of other processes.

        It is also called when notifications may have been missed.
        """
        number = self._notifications.add(callback)
        try:
            yield
        finally:
            self._notifications.remove(number)

    async def close(self) -> None:
        """Complete the queued work, then close the connections. A second call does nothing."""
        if not self._is_open:
            return
        self._refuse_work()
        await self._reader_thread.call(self._notifications.close())
        await self._reader_thread.call(self._readers.close())
        await self._writer_thread.call(self._writer.close())
        self._reader_thread.close()
        self._writer_thread.close()


def parse_url(url: str) -> PostgresAddress:
    """Return the parts of a URL.

    Raises:
        StoreCorrupt: it is malformed or incomplete.
    """
    try:
        return parse_address(url)
    except ValueError as error:
        raise StoreCorrupt(f"The database URL {error}.") from error


async def connect_first(address: PostgresAddress) -> Connection:
    """Open the first connection; failures are explained in terms of the URL."""
    connection: Connection | None = None
    try:
        connection = await connect(address)
        await check_session(connection, address)
    except BaseException as error:
        if connection is not None:
            connection.terminate()
        if isinstance(error, (*errors.DRIVER_ERRORS, ValueError)):
            raise errors.cannot_connect(error, address) from error
        raise
    return connection


async def _open_writer(
    address: PostgresAddress, instance: str, database_loop: asyncio.AbstractEventLoop
) -> PostgresWriter:
    connection = await connect_first(address)
    try:
        await prepare(connection, address)
        await check_moves(connection, address)
    except BaseException as error:
        connection.terminate()
        if isinstance(error, errors.DRIVER_ERRORS):
            raise errors.unavailable(error, address) from error
        raise
    return PostgresWriter(address, connection, instance, database_loop)


async def _open_readers(
    address: PostgresAddress, instance: str, database_loop: asyncio.AbstractEventLoop
) -> tuple[Readers, Notifications]:
    return Readers(address, database_loop), Notifications(address, instance, database_loop)
