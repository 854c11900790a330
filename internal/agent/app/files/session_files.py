"""The files of sessions: attachments, and the folders that Larkspur created."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterable
from datetime import timedelta
from functools import partial

from internal.agent.app.files.unused_files import UnusedFiles, wait_for_removal
from internal.agent.domain.errors import (
    FilesUnavailable,
    FileTooLarge,
    NotFound,
    StoreError,
    WrongHash,
)
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import SessionId
from internal.agent.domain.tasks import Attachment
from internal.agent.domain.text import format_size
from internal.agent.ports.attachments import (
    Attachments,
    PartialUploads,
    SessionWorkspaces,
)
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database, Write
from internal.agent.store.stores import Stores

MAX_FILE_BYTES = 100 * 1024 * 1024
UPLOAD_TTL = timedelta(days=1)
"""How long an uploaded file is kept that no task uses."""
REMOVAL_TIMEOUT_SECONDS = 10.0

logger = logging.getLogger(__name__)


class SessionFiles:
    """Stores and reads the files of sessions.

    The quota of the files of a session is that of `stores`.

    Attributes:
        unused: the files that nothing uses.
        max_file_bytes: the size of a file that people or tools store.
    """

    def __init__(
        self,
        database: Database,
        stores: Stores,
        attachments: Attachments,
        workspaces: SessionWorkspaces,
        *,
        uploads: PartialUploads,
        clock: Clock,
        max_file_bytes: int = MAX_FILE_BYTES,
    ) -> None:
        self._database = database
        self._stores = stores
        self._quota = stores.files.max_session_bytes
        self._attachments = attachments
        self._uploads = uploads
        self._clock = clock
        self.max_file_bytes = max_file_bytes
        self.unused = UnusedFiles(
            database, stores, attachments, workspaces, uploads=uploads, clock=clock
        )

    async def put(
        self, session_id: SessionId, name: str, media_type: str, content: bytes
    ) -> Attachment:
        """Store a file of a session, which is removed with the session.

        It counts against the quota of the session but is never refused: it is part of the log of a
        run, such as a long result.

        Raises:
            StoreUnavailable: nothing was stored.
        """
        register = partial(self._keep_in_session, session_id, None)
        return await self._attachments.put(name, media_type, content, register)

    async def put_stream(
        self,
        session_id: SessionId,
        name: str,
        media_type: str,
        chunks: AsyncIterable[bytes],
    ) -> Attachment:
        """Store a file of a session that is received piece by piece.

        Raises:
            FileTooLarge: it is larger than `max_file_bytes`, or the files of the session exceed
                their quota.
            StoreUnavailable: nothing was stored.
        """
        register = partial(self._keep_in_session, session_id, self._quota)
        return await self._attachments.put_stream(
            name, media_type, chunks, max_bytes=self.max_file_bytes, register=register
        )

    async def put_file(
        self,
        session_id: SessionId,
        name: str,
        media_type: str,
        descriptor: int,
    ) -> Attachment:
        """Store an open regular file for a session; it may change meanwhile.

        Raises:
            FileTooLarge: it is larger than `max_file_bytes`, or the files of the session exceed
                their quota.
            OSError: it cannot be read.
            StoreUnavailable: nothing was stored.
        """
        register = partial(self._keep_in_session, session_id, self._quota)
        return await self._attachments.put_file(
            name, media_type, descriptor, max_bytes=self.max_file_bytes, register=register
        )

    async def upload(
        self, principal: str, name: str, media_type: str, content: bytes
    ) -> Attachment:
        """Store a file for a task that the principal submits within `UPLOAD_TTL`.

        Raises:
            FileTooLarge: it is larger than `max_file_bytes`, or the uploads of the principal exceed
                their quota.
            StoreUnavailable: nothing was stored.
        """
        if len(content) > self.max_file_bytes:
            raise FileTooLarge(
                f"The file is larger than {format_size(self.max_file_bytes)}.",
                reason_code="file_too_large",
                limit=format_size(self.max_file_bytes),
            )
        register = partial(self._keep_upload, principal)
        return await self._attachments.put(name, media_type, content, register)

    async def upload_stream(
        self,
        principal: str,
        name: str,
        media_type: str,
        chunks: AsyncIterable[bytes],
    ) -> Attachment:
        """Store a file like `upload`, received piece by piece.

        Raises:
            FileTooLarge: it is larger than `max_file_bytes`, or the uploads of the principal exceed
                their quota.
            StoreUnavailable: nothing was stored.
        """
        register = partial(self._keep_upload, principal)
        return await self._attachments.put_stream(
            name, media_type, chunks, max_bytes=self.max_file_bytes, register=register
        )

    async def continue_upload(
        self,
        principal: str,
        name: str,
        media_type: str,
        chunks: AsyncIterable[bytes],
        *,
        sha256: str,
        offset: int,
    ) -> Attachment:
        """Store a file like `upload_stream`, and keep the received bytes if that fails.

        Raises:
            Conflict: `offset` is neither 0 nor the stored size of the upload, or another connection
                sends the same file.
            FileTooLarge: it is larger than `max_file_bytes`, or the uploads of the principal exceed
                their quota.
            WrongHash: the bytes do not have the given hash; the upload is discarded.
            StoreUnavailable: nothing was stored.
        """
        known = await self._find_own(sha256, principal)
        if known is not None:
            return Attachment(name, media_type, f"attachment:{sha256}", sha256, known)

        async def register(found: str, size: int) -> None:
            if found != sha256:
                upload.discard()
                raise WrongHash(
                    "The received bytes do not have the given SHA-256.", reason_code="wrong_hash"
                )
            await self._keep_upload(principal, found, size)

        limit = self.max_file_bytes
        async with self._uploads.open(principal, sha256, offset=offset, max_bytes=limit) as upload:
            await upload.append(chunks)
            stored = await self._attachments.put_file(
                name, media_type, upload.descriptor, max_bytes=limit, register=register
            )
            upload.discard()
        return stored

    async def received(self, sha256: str, principal: str) -> tuple[int, bool]:
        """Return how many bytes of an upload are stored, and whether it is complete."""
        known = await self._find_own(sha256, principal)
        if known is not None:
            return known, True
        return await self._uploads.received(principal, sha256), False

    async def _find_own(self, sha256: str, principal: str) -> int | None:
        """Return the size of a file that the principal has already, and keep it as an upload.

        None if there is none: knowing the hash of another person's file gives no access to it.
        """
        if not await self._database.read(
            partial(self._stores.files.has_use_of_owner, sha256, principal)
        ):
            return None
        with contextlib.suppress(NotFound):
            return await self.keep_uploaded(sha256, principal)
        return None

    async def keep_uploaded(self, sha256: str, principal: str) -> int:
        """Keep a stored file for a task of the principal as `upload` does; return its size.

        Raises:
            NotFound: there is no such file.
        """
        size = await self._attachments.size(sha256)
        await self._keep_upload(principal, sha256, size)
        return await self._attachments.size(sha256)  # it may have been removed in between

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
        stream = self._attachments.stream(sha256, start=start, end=end)
        async with contextlib.aclosing(stream) as pieces:
            async for piece in pieces:
                yield piece

    async def size(self, sha256: str) -> int:
        """Return the size of a stored file.

        Raises:
            NotFound: there is no such file.
        """
        return await self._attachments.size(sha256)

    async def copy_to(self, sha256: str, descriptor: int) -> int:
        """Copy a stored file into an empty file that is open for reading and writing.

        Raises:
            NotFound: there is no such file.
            OSError: the file cannot be written.
        """
        return await self._attachments.copy_to(sha256, descriptor)

    async def remove_unused(self) -> None:
        """Remove the files of deleted sessions and uploads that expired, within some seconds.

        A failure is logged, and the next call removes the rest.
        """
        try:
            async with asyncio.timeout(REMOVAL_TIMEOUT_SECONDS):
                await self.unused.remove_released()
        except TimeoutError:
            logger.info("files are removed later")
        except (StoreError, FilesUnavailable):
            logger.exception("files cannot be removed")

    async def _keep_in_session(
        self, session_id: SessionId, quota: int | None, sha256: str, size: int
    ) -> None:
        add = partial(self._stores.files.add_use, sha256, session_id, size=size, quota=quota)
        await self._database.write(add)
        await self._wait_for_removal(sha256)

    async def _wait_for_removal(self, sha256: str) -> None:
        if self.unused.host:  # else the store itself holds off removals
            await wait_for_removal(self._database, self._stores, self._clock, sha256)

    async def _keep_upload(self, principal: str, sha256: str, size: int) -> None:
        expires = rfc3339(self._clock.now() + UPLOAD_TTL)
        add = partial(
            self._stores.files.add_upload,
            *(sha256, principal, expires),
            size=size,
            quota=self._quota,
        )
        await self._database.write(add)
        await self._wait_for_removal(sha256)


def use_attachments(
    stores: Stores, attachments: tuple[Attachment, ...], session_id: SessionId, principal: str
) -> Write[None]:
    """Keep the attachments of a task as long as its session exists.

    Raises:
        FileTooLarge: the files of the session are larger than its quota.
    """
    quota = stores.files.max_session_bytes
    for attachment in attachments:
        if not attachment.is_stored:
            continue
        yield from stores.files.add_use(
            attachment.sha256, session_id, size=attachment.size, quota=quota
        )
        yield from stores.files.end_upload(attachment.sha256, principal)
