"""Uploads whose client lost the connection: the received part, until the rest arrives."""

import asyncio
import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import AsyncGenerator, AsyncIterable
from functools import partial
from pathlib import Path

from internal.agent.app.background_task import open_to_completion
from internal.agent.domain.errors import Conflict, StoreUnavailable
from internal.attachments.content import too_large

MAX_AGE_SECONDS = 24 * 3600
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class UploadFolder:
    """Implements `PartialUploads`: a file per upload, in a folder per principal.

    The file is locked while it is open.

    Args:
        folder: created with mode 700 when the first upload starts.
        quota: bytes of all unfinished uploads of a principal.
    """

    def __init__(self, folder: Path, *, quota: int) -> None:
        self._folder = folder
        self._quota = quota

    async def received(self, principal: str, sha256: str, /) -> int:
        """Return how many bytes of an upload are stored, 0 if there is none."""
        try:
            return (await asyncio.to_thread(self._path(principal, sha256).stat)).st_size
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise StoreUnavailable(f"uploads cannot be read: {error.strerror}") from error

    @contextlib.asynccontextmanager
    async def open(
        self, principal: str, sha256: str, /, *, offset: int, max_bytes: int
    ) -> AsyncGenerator["UploadFile"]:
        """Continue an upload at `offset`, or start it with offset 0; one connection at a time.

        The received part stays when the block fails, until `discard`.

        Raises:
            Conflict: `offset` is not the stored size, or another connection sends the same file.
            StoreUnavailable: the folder cannot be written.
        """
        path = self._path(principal, sha256)
        try:
            upload = await open_to_completion(
                partial(self._open, path, offset, max_bytes),
                lambda opened: os.close(opened.descriptor),
            )
        except OSError as error:
            raise StoreUnavailable(f"uploads cannot be written: {error.strerror}") from error
        try:
            yield upload
        finally:
            os.close(upload.descriptor)

    async def remove_expired(self) -> None:
        """Remove uploads to which nothing was added for a day.

        Raises:
            StoreUnavailable: the folder cannot be read or written.
        """
        try:
            await asyncio.to_thread(self._remove_expired)
        except OSError as error:
            raise StoreUnavailable(f"uploads cannot be removed: {error.strerror}") from error

    def _open(self, path: Path, offset: int, max_bytes: int) -> "UploadFile":
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, _FLAGS, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Conflict(
                    "Another connection uploads this file. Try again later.",
                    reason_code="upload_elsewhere",
                ) from error
            size = _size_at(descriptor, offset)
            others = sum(each.stat().st_size for each in path.parent.iterdir()) - size
        except BaseException:
            os.close(descriptor)
            raise
        return UploadFile(path, descriptor, size, min(max_bytes, self._quota - others))

    def _remove_expired(self) -> None:
        for path in self._folder.glob("*/*"):
            if time.time() - path.stat().st_mtime > MAX_AGE_SECONDS:
                path.unlink(missing_ok=True)

    def _path(self, principal: str, sha256: str) -> Path:
        return self._folder / hashlib.sha256(principal.encode()).hexdigest()[:32] / sha256


def _size_at(descriptor: int, offset: int) -> int:
    """Return the size of an upload, which continues at its end or starts anew."""
    if offset == 0:
        os.ftruncate(descriptor, 0)
    size = os.fstat(descriptor).st_size
    if size != offset:
        raise Conflict(
            f"{size:,} bytes of this upload are stored: continue at {size}.",
            reason_code="upload_position",
            size=size,
        )
    return size


class UploadFile:
    """An open upload. Everything that was received is in the file `descriptor`."""

    def __init__(self, path: Path, descriptor: int, size: int, max_bytes: int) -> None:
        self.descriptor = descriptor
        self._path = path
        self._size = size
        self._max_bytes = max_bytes

    async def append(self, chunks: AsyncIterable[bytes], /) -> None:
        """Append the received bytes.

        Raises:
            FileTooLarge: there are more bytes than allowed; the upload is discarded.
            StoreUnavailable: the file cannot be written.
        """
        async for chunk in chunks:
            self._size += len(chunk)
            if self._size > self._max_bytes:
                self.discard()
                raise too_large(self._max_bytes)
            try:  # chunks of a connection are small; the system writes them to the disk later
                os.pwrite(self.descriptor, chunk, self._size - len(chunk))
            except OSError as error:
                raise StoreUnavailable(f"uploads cannot be written: {error.strerror}") from error

    def discard(self) -> None:
        """Remove the received part."""
        self._path.unlink(missing_ok=True)
