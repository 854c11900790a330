"""The lessons of all model servers: in memory, and in a database that processes share.

Nothing is read or written for a request as long as nothing was refused.
"""

import logging
import re
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from internal.agent.domain.errors import StoreError
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.lessons import Lesson, LessonKey
from internal.agent.domain.react.deferred_tools import MAX_TOOLS
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores

READ_SECONDS = 2.0
"""Shortest time between two readings of lessons after commits of other processes."""

MAX_AGE_SECONDS = 10.0
"""After this time lessons in use are read again: somebody may have forgotten them."""

_MESSAGE = '{"type":"lessons"}'
"""Tells other processes to read the lessons; versions that do not know it ignore it."""

logger = logging.getLogger(__name__)


class ModelServer(NamedTuple):
    """A model server: the provider of the settings and the base URL."""

    provider: str
    address: str


def server_at(provider: str, address: str) -> ModelServer:
    """Return the server at an address, without the user and password that it may have."""
    return ModelServer(provider, re.sub(r"//[^/@]*@", "//", address.rstrip("/")))


class _Storage(NamedTuple):
    database: Database
    stores: Stores


class LessonBook:
    """The lessons of all servers. `revision` grows with each change.

    Args:
        now: the time, for the dates of lessons.
        read_seconds: lessons are read at most so often after commits of other processes.
    """

    def __init__(
        self,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self.revision = 0
        self._now, self._read_seconds = now, read_seconds
        self._lessons: dict[LessonKey, Lesson] = {}
        self._storage: _Storage | None = None
        self._is_stale = False
        self._read_at = 0.0

    @asynccontextmanager
    async def stored_in(self, database: Database, stores: Stores) -> AsyncGenerator[None]:
        """Share the lessons with all processes of a database, for the length of a block."""
        with ExitStack() as stack:
            if database.messages is None:
                stack.enter_context(database.watch(self._expire))
            else:
                stack.enter_context(database.messages.listen(self._heed))
            self._storage = _Storage(database, stores)
            self._is_stale, self._read_at = True, 0.0
            try:
                yield
            finally:
                self._storage = None

    async def refresh(self) -> None:
        """Read what other processes have learned or forgotten, if they may have."""
        if self._storage is None or not (self._is_stale or self._lessons):
            return
        age = time.monotonic() - self._read_at
        if age > (self._read_seconds if self._is_stale else MAX_AGE_SECONDS) or not self._read_at:
            await self._read(self._storage)

    async def reread(self) -> bool:
        """Read the lessons now, before a refusal teaches one; return whether there are others."""
        before = self.revision
        if self._storage is not None:
            await self._read(self._storage)
        return self.revision != before

    def list_of(self, server: ModelServer, model: str) -> list[Lesson]:
        """Return the lessons about a model and about its server."""
        return [
            each
            for each in self._lessons.values()
            if (each.provider, each.address) == server and each.model in {"", model}
        ]

    def max_tools(self, provider: str, model: str) -> int:
        """Return how many tools a request to a model of a provider may have."""
        limits = [
            each.change.get("max_tools")
            for each in self._lessons.values()
            if each.kind == "tool_count" and (each.provider, each.model) == (provider, model)
        ]
        return min((limit for limit in limits if isinstance(limit, int)), default=MAX_TOOLS)

    async def learn(self, lessons: Iterable[Lesson], forgotten: Collection[LessonKey] = ()) -> None:
        """Keep lessons, and remove others. Lessons that cannot be stored are kept in memory.

        The date of the lessons is set here.
        """
        dated = [replace(each, learned=rfc3339(self._now())) for each in lessons]
        for each in dated:
            fields = {**each.key._asdict(), "change": each.change, "words": each.words}
            fields["lesson"] = fields.pop("name")  # `name` is that of the logger
            logger.info("lesson learned from a refusal", extra=fields)
        known = {**self._lessons, **{each.key: each for each in dated}}
        self._replace({key: each for key, each in known.items() if key not in forgotten})
        storage = self._storage
        if storage is None or not (dated or forgotten):
            return
        try:
            if forgotten:
                await storage.database.write(partial(storage.stores.lessons.remove, forgotten))
            if dated:
                await storage.database.write(partial(storage.stores.lessons.save, dated))
        except StoreError as error:
            logger.warning("lesson not stored", extra={"reason": str(error)})
        else:
            self._tell(storage)

    async def observe_version(self, server: ModelServer, version: str) -> None:
        """Forget the lessons of a server that has another version now.

        A server that states no version keeps its lessons.
        """
        if not version or not self._lessons:
            return
        old = [
            each.key
            for each in self._lessons.values()
            if (each.provider, each.address) == server and each.version not in {"", version}
        ]
        if old:
            fields = {"address": server.address, "version": version, "count": len(old)}
            logger.info("the server was changed, lessons forgotten", extra=fields)
            await self.learn((), old)

    async def _read(self, storage: _Storage) -> None:
        self._is_stale, self._read_at = False, time.monotonic()
        try:
            lessons = await storage.database.read(storage.stores.lessons.list_all, is_short=True)
        except StoreError as error:
            logger.warning("lessons not read", extra={"reason": str(error)})
            return
        self._replace({each.key: each for each in lessons})

    def _replace(self, lessons: Mapping[LessonKey, Lesson]) -> None:
        if lessons != self._lessons:
            self._lessons = dict(lessons)
            self.revision += 1

    def _tell(self, storage: _Storage) -> None:
        if storage.database.messages is not None:
            storage.database.messages.send(_MESSAGE)

    def _heed(self, text: str) -> None:
        if text == _MESSAGE:
            self._is_stale, self._read_at = True, 0.0

    def _expire(self) -> None:
        self._is_stale = True
