"""Attachments in a bucket of S3. Every object is named by the SHA-256 of its content."""

import asyncio
import contextlib
import hashlib
import io
import os
from collections.abc import AsyncGenerator, AsyncIterable
from functools import partial
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from internal.agent.domain.errors import NotFound
from internal.agent.domain.tasks import Attachment
from internal.agent.ports.attachments import RegisterUse, RemoveFile, StoredFile
from internal.attachments.content import SHA256, attachment, damaged, in_thread, store_errors
from internal.attachments.marker import MARKER_FILE
from internal.attachments.s3_client import S3Client
from internal.attachments.spool import Spool, SpoolFile


class S3Attachments:
    """Implements `Attachments` with objects named PREFIX/SHA256.

    A stream is written to a spool on this machine until its hash is known. No other program, and no
    Larkspur with another database, may use the prefix: objects that this database does not know
    count as unused.

    Args:
        client: the bucket; the caller closes it.
        prefix: the beginning of all keys, without a slash at its end; may be empty.
        folder: the spool, created with mode 700 when the first file is stored.
    """

    def __init__(self, client: S3Client, prefix: str, folder: Path) -> None:
        self._client = client
        self._prefix = f"{prefix}/" if prefix else ""
        self._spool = Spool(folder)

    async def put(
        self, name: str, media_type: str, content: bytes, /, register: RegisterUse | None = None
    ) -> Attachment:
        """Store the content; see the port.

        Raises:
            FilesUnavailable, StoreUnavailable: nothing was stored.
        """
        sha256 = await asyncio.to_thread(lambda: hashlib.sha256(content).hexdigest())
        if register is not None:
            await register(sha256, len(content))
        await self._upload(sha256, io.BytesIO(content), len(content))
        return attachment(name, media_type, sha256, len(content))

    async def put_stream(
        self,
        name: str,
        media_type: str,
        chunks: AsyncIterable[bytes],
        /,
        *,
        max_bytes: int,
        register: RegisterUse | None = None,
    ) -> Attachment:
        """Store the bytes of `chunks`; see the port.

        Raises:
            FileTooLarge: there are more than `max_bytes`.
            FilesUnavailable, StoreUnavailable: nothing was stored.
        """
        async with self._spool.receive(chunks, max_bytes=max_bytes) as file:
            await self._publish(file, register)
            return attachment(name, media_type, file.sha256, file.size)

    async def put_file(
        self,
        name: str,
        media_type: str,
        descriptor: int,
        /,
        *,
        max_bytes: int,
        register: RegisterUse | None = None,
    ) -> Attachment:
        """Store an open regular file; see the port.

        Raises:
            FileTooLarge: it has more than `max_bytes`.
            OSError: it cannot be read.
            FilesUnavailable, StoreUnavailable: nothing was stored.
        """
        async with self._spool.copy(descriptor, max_bytes=max_bytes) as file:
            await self._publish(file, register)
            return attachment(name, media_type, file.sha256, file.size)

    async def get(self, sha256: str, /) -> bytes:
        """Return the content, verified by its hash.

        Raises:
            NotFound: nothing is stored with this hash.
            StoreCorrupt: the object is damaged.
            FilesUnavailable: it cannot be read.
        """
        return b"".join([piece async for piece in self.stream(sha256)])

    async def stream(
        self, sha256: str, /, *, start: int = 0, end: int | None = None
    ) -> AsyncGenerator[bytes]:
        """Yield a part of the content; see the port.

        Raises:
            NotFound: nothing is stored with this hash.
            StoreCorrupt: the object is damaged.
            FilesUnavailable: it cannot be read.
        """
        key, length = self._key(sha256), 0
        if start or end is not None:
            size = await self._client.size(key)
            stop = size if end is None else min(end, size)
            if start >= stop:
                return
            length = stop - start if start or stop < size else 0
        async with contextlib.aclosing(self._client.read(key, start, length)) as parts:
            async for piece in parts if length else _verified(parts, sha256):
                yield piece

    async def copy_to(self, sha256: str, descriptor: int, /) -> int:
        """Write the content to an empty open file; see the port.

        Raises:
            NotFound: nothing is stored with this hash.
            StoreCorrupt: the object is damaged.
            FilesUnavailable: it cannot be read.
            OSError: the file cannot be written.
        """
        size = 0
        try:
            async with contextlib.aclosing(self.stream(sha256)) as parts:
                async for piece in parts:
                    await in_thread(partial(_write, descriptor, piece, size))
                    size += len(piece)
        except BaseException:
            if os.fstat(descriptor).st_size:
                os.ftruncate(descriptor, 0)
            raise
        return size

    async def size(self, sha256: str, /) -> int:
        """Return the number of bytes.

        Raises:
            NotFound: nothing is stored with this hash.
            FilesUnavailable: it cannot be read.
        """
        return await self._client.size(self._key(sha256))

    async def url(self, sha256: str, name: str, media_type: str, /) -> str:
        """Return a URL that downloads the file for some minutes; it need not exist."""
        return await self._client.url(
            self._key(sha256),
            {
                "response-content-disposition": f"attachment; filename*=UTF-8''{quote(name, '')}",
                "response-content-type": media_type or "application/octet-stream",
            },
        )

    async def stored(self, *, after: str = "") -> AsyncGenerator[StoredFile]:
        """Yield the stored files with greater hashes; see the port.

        Raises:
            FilesUnavailable: the bucket cannot be read.
        """
        start = f"{self._prefix}{after}" if after else ""
        async with contextlib.aclosing(self._client.list(self._prefix, start)) as objects:
            async for key, size in objects:
                sha256 = key.removeprefix(self._prefix)
                if SHA256.fullmatch(sha256):
                    yield StoredFile(sha256, size)

    async def remove_unfinished(self) -> None:
        """Remove the incomplete files that killed processes left.

        Raises:
            StoreUnavailable: the spool cannot be read or written.
        """
        await self._spool.remove_unfinished()

    async def identify(self, new: str = "", /) -> str:
        """Return the id of the keys with this prefix; see the port.

        Raises:
            FilesUnavailable: it cannot be read or written.
        """
        key = f"{self._prefix}{MARKER_FILE}"
        for _ in range(2):
            try:
                found = b"".join([piece async for piece in self._client.read(key)])
                return found.decode("ascii", "replace").strip()
            except NotFound:
                if not new:
                    break
            content = new.encode("ascii")
            await self._client.upload(key, io.BytesIO(content), len(content))
        return ""

    @contextlib.asynccontextmanager
    async def removal(self) -> AsyncGenerator[RemoveFile]:
        """Let no upload begin while the block runs; yield a function that removes a file.

        Raises:
            StoreUnavailable: the spool cannot be locked.
        """
        async with self._spool.exclusive():
            yield self._remove

    async def _remove(self, sha256: str) -> None:
        await self._client.remove(self._key(sha256))

    async def _publish(self, file: SpoolFile, register: RegisterUse | None) -> None:
        sha256 = file.sha256
        if register is not None:
            await register(sha256, file.size)
        file.file.seek(0)
        await self._upload(sha256, file.file, file.size)

    async def _upload(self, sha256: str, file: BinaryIO, size: int) -> None:
        """Store content whose use is stored, unless the bucket has it."""
        with store_errors("written"):
            await in_thread(self._wait_for_removal)
        await self._client.upload(self._key(sha256), file, size)

    def _wait_for_removal(self) -> None:
        """Return when a removal that did not see the use has ended; later ones see it."""
        with self._spool.shared():
            pass

    def _key(self, sha256: str) -> str:
        if not SHA256.fullmatch(sha256):
            raise NotFound("there is no such attachment", reason_code="no_attachment")
        return f"{self._prefix}{sha256}"


async def _verified(parts: AsyncIterable[bytes], sha256: str) -> AsyncGenerator[bytes]:
    """Yield pieces, the last one only if all of them have the hash.

    Raises:
        StoreCorrupt: they do not have it.
    """
    digest, last = hashlib.sha256(), b""
    async for piece in parts:
        if last:
            yield last
        digest.update(piece)
        last = piece
    if digest.hexdigest() != sha256:
        raise damaged(sha256)
    yield last


def _write(descriptor: int, piece: bytes, offset: int) -> None:
    while piece:
        written = os.pwrite(descriptor, piece, offset)
        piece, offset = piece[written:], offset + written
