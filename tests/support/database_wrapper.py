"""A database that passes everything on to another one: subclasses change a part."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import TypeVar

from internal.agent.ports.runtime import ProcessMessages
from internal.agent.store.database import Database, DatabaseState, Read, Write

T = TypeVar("T")


class DatabaseWrapper:
    """Wraps a real database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def state(self) -> DatabaseState:
        return self._database.state

    @property
    def messages(self) -> ProcessMessages | None:
        return self._database.messages

    async def write(self, work: Callable[[], Write[T]], /) -> T:
        return await self._database.write(work)

    def submit(self, work: Callable[[], Write[T]], /) -> Future[T]:
        return self._database.submit(work)

    async def read(self, work: Callable[[], Read[T]], /, *, is_short: bool = False) -> T:
        return await self._database.read(work, is_short=is_short)

    def watch(self, callback: Callable[[], None], /) -> AbstractContextManager[None]:
        return self._database.watch(callback)
