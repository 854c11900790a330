"""Attachments in a local folder. Every file is named by the SHA-256 of its content."""

import asyncio
import contextlib
import fcntl
import hashlib
import os
import re
import secrets
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

from internal.agent.domain.errors import NotFound, StoreCorrupt, StoreUnavailable
from internal.agent.domain.tasks import Attachment

_SHA256 = re.compile(r"[0-9a-f]{64}")


class LocalAttachments:
    """Implements `Attachments`. Files have mode 600, in folders of their first two characters.

    Args:
        folder: created with mode 700 when the first file is stored.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, name: str, media_type: str, content: bytes, /) -> Attachment:
        """Store the content; see the port. After it returns the content survives a power failure.

        Raises:
            StoreUnavailable: the folder is not writable; nothing was stored.
        """
        sha256 = await asyncio.to_thread(self._put, content)
        return Attachment(name, media_type, f"attachment:{sha256}", sha256, len(content))

    async def get(self, sha256: str, /) -> bytes:
        """Return the content, verified by its hash.

        Raises:
            NotFound: nothing is stored with this hash.
            StoreCorrupt: the file is damaged.
            StoreUnavailable: it cannot be read.
        """
        if not _SHA256.fullmatch(sha256):
            raise NotFound("there is no such attachment")
        return await asyncio.to_thread(self._get, sha256)

    @contextlib.asynccontextmanager
    async def removal(self) -> AsyncGenerator[Callable[[str], None]]:
        """Hold off every `put` while the block runs, and yield a function that removes a file.

        Raises:
            StoreUnavailable: the folder cannot be locked.
        """
        locking = asyncio.create_task(asyncio.to_thread(self._lock, fcntl.LOCK_EX))
        try:
            lock = await asyncio.shield(locking)
        except asyncio.CancelledError:
            locking.add_done_callback(_unlock)  # the thread goes on and takes the lock
            raise
        except OSError as error:
            raise StoreUnavailable(f"attachments cannot be locked: {error.strerror}") from error
        try:
            yield self._remove
        finally:
            os.close(lock)

    def _remove(self, sha256: str) -> None:
        path = self._path(sha256)
        try:
            for unfinished in path.parent.glob(_temporary_name(path, "*")):
                unfinished.unlink(missing_ok=True)  # its writer was killed
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreUnavailable(f"an attachment cannot be removed: {error.strerror}") from error

    def _lock(self, mode: int) -> int:
        """Lock the folder against other processes, and return what to close for the release."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, mode)
        except BaseException:
            os.close(lock)
            raise
        return lock

    def _put(self, content: bytes) -> str:
        sha256 = hashlib.sha256(content).hexdigest()
        try:
            lock = self._lock(fcntl.LOCK_SH)
            try:
                with contextlib.suppress(NotFound, StoreCorrupt):  # a damaged file is replaced
                    self._get(sha256)
                    return sha256
                self._write(self._path(sha256), content)
            finally:
                os.close(lock)
        except OSError as error:
            raise StoreUnavailable(f"attachments cannot be written: {error.strerror}") from error
        return sha256

    def _get(self, sha256: str) -> bytes:
        try:
            descriptor = os.open(self._path(sha256), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                content = file.read()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NotFound("there is no such attachment") from error
        except OSError as error:
            raise StoreUnavailable(f"an attachment cannot be read: {error.strerror}") from error
        if hashlib.sha256(content).hexdigest() != sha256:
            raise StoreCorrupt(f"the attachment {sha256[:12]}… is damaged on disk")
        return content

    def _path(self, sha256: str) -> Path:
        return self._folder / sha256[:2] / sha256

    def _write(self, path: Path, content: bytes) -> None:
        """Write the file atomically: temporary file, fsync, rename, fsync of the folders."""
        path.parent.mkdir(mode=0o700, exist_ok=True)
        temporary = path.with_name(_temporary_name(path, secrets.token_hex(8)))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        for folder in (path.parent, self._folder):
            _sync(folder)


def _temporary_name(path: Path, unique: str) -> str:
    return f".{path.name}-{unique}"


def _unlock(locking: asyncio.Task[int]) -> None:
    if not locking.cancelled() and locking.exception() is None:
        os.close(locking.result())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
