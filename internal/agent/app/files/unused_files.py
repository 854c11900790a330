"""Files that nothing uses any more, and their removal."""

import asyncio
import logging
from contextlib import aclosing
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from internal.agent.domain.errors import FilesUnavailable, Forbidden, StoreError
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import SessionId
from internal.agent.domain.principals import Principal
from internal.agent.ports.attachments import (
    Attachments,
    PartialUploads,
    SessionWorkspaces,
    StoredFile,
)
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores

MAX_SECONDS = 20.0
"""How long a part of a large store is searched."""
LOST_AFTER_SECONDS = 60.0
"""How long the removal of a file may take; then another process tries it again."""
REMOVAL_WAIT_SECONDS = 15.0
"""How long storing a file waits for its removal by another process."""
_POLL_SECONDS = 0.05
_BATCH = 500

logger = logging.getLogger(__name__)


class UnusedPart(NamedTuple):
    """Unused files in a part of the store; `next_cursor` continues after it, None at the end."""

    files: int
    size: int
    next_cursor: str | None


class UnusedFiles:
    """Removes the files of deleted sessions, expired uploads, and leftovers of killed processes.

    A file is removed while nothing becomes available in the store, after the database was asked
    whether anything uses it. It may be called at any time, by several processes at once, and be
    killed.

    Attributes:
        host: the name of this host, which removes its own folders of deleted sessions; "" if no
            other host uses the database.
    """

    host = ""

    def __init__(
        self,
        database: Database,
        stores: Stores,
        attachments: Attachments,
        workspaces: SessionWorkspaces,
        *,
        uploads: PartialUploads,
        clock: Clock,
    ) -> None:
        self._database = database
        self._files = stores.files
        self._attachments = attachments
        self._workspaces = workspaces
        self._uploads = uploads
        self._clock = clock

    async def remove_released(self) -> None:
        """Remove files that the database marks as unused, and leftovers of unfinished uploads.

        A failure with one file is logged; the next call tries again.

        Raises:
            StoreError: the database or the folder of uploads cannot be used.
            FilesUnavailable: the service that stores files does not answer.
        """
        await self._attachments.remove_unfinished()
        await self._uploads.remove_expired()
        await self._release_expired()
        for host in {"", self.host}:
            removals = partial(self._files.list_removals, "workspace", host)
            for name in await self._database.read(removals):
                await self._remove_workspace(SessionId(name), host)
        removals = partial(self._files.list_removals, "attachment", lost_before=self._lost_before())
        for sha256 in await self._database.read(removals):
            try:
                await self._remove(sha256)
            except StoreError:
                logger.exception("attachment cannot be removed", extra={"sha256": sha256})

    async def find(self, principal: Principal, cursor: str = "") -> UnusedPart:
        """Count the files of the store that nothing uses; the owner may.

        Raises:
            Forbidden: the principal is not the owner.
            StoreError, FilesUnavailable: the store cannot be read.
        """
        return await self._visit(principal, cursor, removes=False)

    async def remove(self, principal: Principal, cursor: str = "") -> UnusedPart:
        """Remove the files of the store that nothing uses, also those unknown to the database.

        Raises:
            Forbidden: the principal is not the owner.
            StoreError, FilesUnavailable: a file cannot be removed; those before it are.
        """
        part = await self._visit(principal, cursor, removes=True)
        if part.next_cursor is None:
            await self.remove_released()
        return part

    async def _visit(self, principal: Principal, cursor: str, *, removes: bool) -> UnusedPart:
        if not principal.may("owner"):
            raise Forbidden(
                "Only the owner may manage the files of everybody.",
                reason_code="unused_files_by_owner",
            )
        ends_at = self._clock.monotonic() + MAX_SECONDS
        count = size = 0
        batch: list[StoredFile] = []
        async with aclosing(self._attachments.stored(after=cursor)) as stored:
            async for file in stored:
                batch.append(file)
                if len(batch) < _BATCH:
                    continue
                unused = await self._process(batch, removes=removes)
                count, size = count + len(unused), size + sum(each.size for each in unused)
                batch = []
                if self._clock.monotonic() > ends_at:
                    return UnusedPart(count, size, file.sha256)
        unused = await self._process(batch, removes=removes)
        return UnusedPart(count + len(unused), size + sum(each.size for each in unused), None)

    async def _process(self, files: list[StoredFile], *, removes: bool) -> list[StoredFile]:
        """Return the unused files, or the removed ones."""
        if removes:
            await self._release_expired()
        names, now = [each.sha256 for each in files], rfc3339(self._clock.now())
        unused = await self._database.read(partial(self._files.find_unused, names, now))
        found = [each for each in files if each.sha256 in unused]
        if not removes:
            return found
        return [each for each in found if await self._remove(each.sha256)]

    async def _release_expired(self) -> None:
        now = rfc3339(self._clock.now())
        if await self._database.read(partial(self._files.has_expired, now)):
            await self._database.write(partial(self._files.release_expired, now))

    async def _remove(self, sha256: str) -> bool:
        """Remove a file, unless it is used again. Return whether it was removed."""
        now, lost = rfc3339(self._clock.now()), self._lost_before()
        begin = partial(self._files.begin_removal, sha256, now, lost_before=lost)
        async with self._attachments.removal() as remove:  # no file becomes available meanwhile
            if not await self._database.write(begin):
                return False
            await remove(sha256)
            await self._database.write(partial(self._files.end_removal, "attachment", sha256))
        return True

    def _lost_before(self) -> str:
        """Return the time before which a removal began that its process did not finish."""
        return _lost_before(self._clock) if self.host else rfc3339(self._clock.now())

    async def _remove_workspace(self, session_id: SessionId, host: str) -> None:
        try:
            await self._workspaces.remove(session_id)
        except StoreError:
            logger.exception("workspace cannot be removed", extra={"session_id": session_id})
            return
        end = partial(self._files.end_removal, "workspace", session_id, host)
        await self._database.write(end)


async def wait_for_removal(database: Database, stores: Stores, clock: Clock, sha256: str) -> None:
    """Return when no process of another host removes a file whose use is stored.

    Raises:
        FilesUnavailable: the removal takes too long; the file must not be stored now.
    """
    for _ in range(round(REMOVAL_WAIT_SECONDS / _POLL_SECONDS)):
        removed = partial(stores.files.is_being_removed, sha256, _lost_before(clock))
        if not await database.read(removed):
            return
        await asyncio.sleep(_POLL_SECONDS)
    raise FilesUnavailable("An equal file is being removed just now: try again in a minute")


def _lost_before(clock: Clock) -> str:
    return rfc3339(clock.now() - timedelta(seconds=LOST_AFTER_SECONDS))
