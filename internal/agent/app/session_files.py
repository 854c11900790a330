"""The files of sessions: attachments, and the folders that Larkspur created."""

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator
from datetime import timedelta
from functools import partial

from internal.agent.domain.errors import StoreError
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import SessionId
from internal.agent.domain.tasks import Attachment
from internal.agent.ports.attachments import Attachments, SessionWorkspaces
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database, Write
from internal.agent.store.stores import Stores

UPLOAD_TTL = timedelta(days=1)
"""How long an uploaded file is kept that no task uses."""

logger = logging.getLogger(__name__)


class SessionFiles:
    """Stores files and removes those that nothing uses any more."""

    def __init__(
        self,
        database: Database,
        stores: Stores,
        attachments: Attachments,
        workspaces: SessionWorkspaces,
        *,
        clock: Clock,
    ) -> None:
        self._database = database
        self._stores = stores
        self._attachments = attachments
        self._workspaces = workspaces
        self._clock = clock

    async def put(
        self, session_id: SessionId, name: str, media_type: str, content: bytes
    ) -> Attachment:
        """Store a file of a session, which is removed with the session.

        Raises:
            StoreUnavailable: nothing was stored.
        """
        sha256 = await _hash(content)
        await self._database.write(partial(self._stores.files.add_use, sha256, session_id))
        return await self._attachments.put(name, media_type, content)

    async def upload(
        self, principal: str, name: str, media_type: str, content: bytes
    ) -> Attachment:
        """Store a file for a task that the principal submits within `UPLOAD_TTL`.

        Raises:
            StoreUnavailable: nothing was stored.
        """
        await self._keep_upload(await _hash(content), principal)
        return await self._attachments.put(name, media_type, content)

    async def get_uploaded(self, sha256: str, principal: str) -> bytes:
        """Return a stored file, and keep it for a task of the principal as `upload` does.

        Raises:
            NotFound: there is no such file.
        """
        await self._attachments.get(sha256)
        await self._keep_upload(sha256, principal)
        return await self._attachments.get(sha256)  # it may have been removed in between

    async def get(self, sha256: str) -> bytes:
        """Return a stored file.

        Raises:
            NotFound: there is no such file.
        """
        return await self._attachments.get(sha256)

    async def stream(
        self, sha256: str, *, start: int = 0, end: int | None = None
    ) -> AsyncGenerator[bytes]:
        """Yield a stored file in pieces, from byte `start` up to, without, byte `end`.

        Raises:
            NotFound: there is no such file.
        """
        content = await self._attachments.get(sha256)
        yield content[start:end]

    async def remove_unused(self) -> None:
        """Remove the files of deleted sessions and uploads that expired.

        A failure is logged; the files are removed by the next call.
        """
        try:
            await self._remove_unused()
        except StoreError:
            logger.exception("files cannot be removed")

    async def _remove_unused(self) -> None:
        files, now = self._stores.files, rfc3339(self._clock.now())
        if await self._database.read(partial(files.has_expired, now)):
            await self._database.write(partial(files.release_expired, now))
        for sha256 in await self._database.read(partial(files.list_removals, "attachment")):
            await self._remove_attachment(sha256)
        for name in await self._database.read(partial(files.list_removals, "workspace")):
            await self._remove_workspace(SessionId(name))

    async def _remove_attachment(self, sha256: str) -> None:
        files = self._stores.files
        async with self._attachments.removal() as remove:  # no file is stored meanwhile
            if await self._database.write(partial(files.cancel_removal_of_used, sha256)):
                return
            try:
                remove(sha256)
            except StoreError:
                logger.exception("attachment cannot be removed", extra={"sha256": sha256})
                return
            await self._database.write(partial(files.end_removal, "attachment", sha256))

    async def _remove_workspace(self, session_id: SessionId) -> None:
        try:
            await self._workspaces.remove(session_id)
        except StoreError:
            logger.exception("workspace cannot be removed", extra={"session_id": session_id})
            return
        end = partial(self._stores.files.end_removal, "workspace", session_id)
        await self._database.write(end)

    async def _keep_upload(self, sha256: str, principal: str) -> None:
        expires = rfc3339(self._clock.now() + UPLOAD_TTL)
        add = partial(self._stores.files.add_upload, sha256, principal, expires)
        await self._database.write(add)


def use_attachments(
    stores: Stores, attachments: tuple[Attachment, ...], session_id: SessionId, principal: str
) -> Write[None]:
    """Keep the attachments of a task as long as its session exists."""
    for attachment in attachments:
        yield from stores.files.add_use(attachment.sha256, session_id)
        yield from stores.files.end_upload(attachment.sha256, principal)


async def _hash(content: bytes) -> str:
    return (await asyncio.to_thread(hashlib.sha256, content)).hexdigest()
