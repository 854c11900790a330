"""Attachments in a local folder. Every file is named by the SHA-256 of its content."""

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from internal.agent.domain.errors import NotFound, StoreCorrupt, StoreUnavailable
from internal.agent.domain.tasks import Attachment
from internal.agent.ports.attachments import RegisterUse, RemoveFile, StoredFile
from internal.attachments.content import (
    SHA256,
    attachment,
    in_thread,
    pieces,
    store_errors,
    verified,
)
from internal.attachments.marker import find_marker
from internal.attachments.spool import READ_FLAGS, Spool, SpoolFile

_FICLONE = 0x40049409
"""The ioctl of Linux that lets two files share their blocks until one is written."""
_NO_CLONE = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.EPERM, errno.ENOSYS}
_LISTED_AT_ONCE = 1000


class LocalAttachments:
    """Implements `Attachments`. Files have mode 600, in folders of their first two characters.

    A file is written to a spool and renamed.

    Args:
        folder: created with mode 700 when the first file is stored.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._spool = Spool(folder)

    async def put(
        self, name: str, media_type: str, content: bytes, /, register: RegisterUse | None = None
    ) -> Attachment:
        """Store the content; see the port. After it returns the content survives a power failure.

        Raises:
            StoreUnavailable: the folder is not writable; nothing was stored.
        """
        sha256 = await asyncio.to_thread(lambda: hashlib.sha256(content).hexdigest())
        if register is not None:
            await register(sha256, len(content))
        with store_errors("written"):
            await in_thread(lambda: self._put(sha256, content))
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
            StoreUnavailable: the folder is not writable; nothing was stored.
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
            StoreUnavailable: the folder is not writable; nothing was stored.
        """
        async with self._spool.copy(descriptor, max_bytes=max_bytes) as file:
            await self._publish(file, register)
            return attachment(name, media_type, file.sha256, file.size)

    async def get(self, sha256: str, /) -> bytes:
        """Return the content, verified by its hash.

        Raises:
            NotFound: nothing is stored with this hash.
            StoreCorrupt: the file is damaged.
            StoreUnavailable: it cannot be read.
        """
        return await asyncio.to_thread(self._get, sha256)

    async def stream(
        self, sha256: str, /, *, start: int = 0, end: int | None = None
    ) -> AsyncGenerator[bytes]:
        """Yield a part of the content; see the port.

        Raises:
            NotFound: nothing is stored with this hash.
            StoreCorrupt: the file is damaged.
            StoreUnavailable: it cannot be read.
        """
        file, size = await in_thread(lambda: self._open(sha256))
        try:
            stop = size if end is None else min(end, size)
            parts = pieces(file.fileno(), start, stop)
            if start == 0 and stop == size:
                parts = verified(parts, sha256)
            while True:
                with store_errors("read"):
                    piece = await in_thread(lambda: next(parts, b""))
                if not piece:
                    return
                yield piece
        finally:
            file.close()

    async def copy_to(self, sha256: str, descriptor: int, /) -> int:
        """Write the content to an empty open file; see the port.

        Raises:
            NotFound: nothing is stored with this hash.
            StoreCorrupt: the stored file is damaged.
            OSError: the file cannot be written.
        """
        return await in_thread(lambda: self._copy_to(sha256, descriptor))

    async def size(self, sha256: str, /) -> int:
        """Return the number of bytes.

        Raises:
            NotFound: nothing is stored with this hash.
            StoreUnavailable: it cannot be read.
        """

        def measure() -> int:
            file, size = self._open(sha256)
            file.close()
            return size

        return await asyncio.to_thread(measure)

    async def url(self, _sha256: str, _name: str, _media_type: str, /) -> None:
        """Return None: a folder has no URLs."""

    async def stored(self, *, after: str = "") -> AsyncGenerator[StoredFile]:
        """Yield the stored files with greater hashes; see the port.

        Raises:
            StoreUnavailable: the folder cannot be read.
        """
        found = self._find_files(after)
        while True:
            with store_errors("listed"):
                batch = await in_thread(lambda: list(islice(found, _LISTED_AT_ONCE)))
            if not batch:
                return
            for each in batch:
                yield each

    async def remove_unfinished(self) -> None:
        """Remove the incomplete files that killed processes left.

        Raises:
            StoreUnavailable: the folder cannot be read or written.
        """
        await self._spool.remove_unfinished()

    async def identify(self, new: str = "", /) -> str:
        """Return the id of the folder; see the port.

        Raises:
            StoreUnavailable: it cannot be read or written.
        """
        return await asyncio.to_thread(find_marker, self._folder, new)

    @contextlib.asynccontextmanager
    async def removal(self) -> AsyncGenerator[RemoveFile]:
        """Let no file become available while the block runs; yield a function that removes one.

        Raises:
            StoreUnavailable: the folder cannot be locked.
        """
        async with self._spool.exclusive():
            yield self._remove

    async def _remove(self, sha256: str) -> None:
        with store_errors("removed"):  # not in a thread: all may wait for the lock
            self._path(sha256).unlink(missing_ok=True)

    def _put(self, sha256: str, content: bytes) -> None:
        with contextlib.suppress(NotFound, StoreCorrupt), self._spool.shared():
            self._get(sha256)
            return
        file = self._spool.create()  # also in place of a damaged one
        try:
            file.write(content)
            self._rename(file, sha256)
        finally:
            file.close()

    async def _publish(self, file: SpoolFile, register: RegisterUse | None) -> None:
        sha256 = file.sha256
        if register is not None:
            await register(sha256, file.size)
        with store_errors("written"):
            await in_thread(lambda: self._rename(file, sha256))

    def _rename(self, file: SpoolFile, sha256: str) -> None:
        """Give a complete file its final name: fsync, rename, fsync of the folders."""
        file.sync()
        path = self._path(sha256)
        with self._spool.shared():
            path.parent.mkdir(mode=0o700, exist_ok=True)
            file.path.replace(path)
        for folder in (path.parent, self._folder):
            _sync(folder)

    def _get(self, sha256: str) -> bytes:
        file, size = self._open(sha256)
        with file, store_errors("read"):
            return b"".join(verified(pieces(file.fileno(), 0, size), sha256))

    def _copy_to(self, sha256: str, descriptor: int) -> int:
        source, size = self._open(sha256)
        with source:
            try:
                _copy(source.fileno(), descriptor, size)
                for _ in verified(pieces(descriptor, 0, size), sha256):
                    pass
            except BaseException:
                os.ftruncate(descriptor, 0)
                raise
        return size

    def _open(self, sha256: str) -> tuple[BinaryIO, int]:
        if not SHA256.fullmatch(sha256):
            raise NotFound("there is no such attachment", reason_code="no_attachment")
        try:
            file = os.fdopen(os.open(self._path(sha256), READ_FLAGS), "rb", buffering=0)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NotFound("there is no such attachment", reason_code="no_attachment") from error
        except OSError as error:
            raise StoreUnavailable(f"an attachment cannot be read: {error.strerror}") from error
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            file.close()
            raise StoreUnavailable("an attachment cannot be read: it is not a file")
        return file, status.st_size

    def _find_files(self, after: str) -> Iterator[StoredFile]:
        for folder in sorted(self._folder.glob("[0-9a-f][0-9a-f]")):
            if folder.name < after[:2]:
                continue
            for path in sorted(folder.iterdir()):
                if path.name > after and SHA256.fullmatch(path.name):
                    with contextlib.suppress(FileNotFoundError):  # removed just now
                        yield StoredFile(path.name, path.lstat().st_size)

    def _path(self, sha256: str) -> Path:
        return self._folder / sha256[:2] / sha256


def _copy(source: int, target: int, size: int) -> None:
    """Copy a file into an empty one; where the file system can, they share their blocks."""
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError as error:
        if error.errno not in _NO_CLONE:
            raise
    else:
        return
    copied = 0
    while copied < size:
        sent = os.sendfile(target, source, copied, size - copied)
        if sent == 0:
            return  # shorter than it was: the hash differs
        copied += sent


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
