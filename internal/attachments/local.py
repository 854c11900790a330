"""Attachments in a local folder. Every file is named by the SHA-256 of its content."""

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import os
import re
import secrets
import stat
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar

from internal.agent.domain.errors import FileTooLarge, NotFound, StoreCorrupt, StoreUnavailable
from internal.agent.domain.tasks import Attachment
from internal.agent.domain.text import format_size
from internal.agent.ports.attachments import RegisterUse

CHUNK_BYTES = 1024 * 1024
"""How much of a file is held in memory."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_UNFINISHED = "unfinished"
_FICLONE = 0x40049409
"""The ioctl of Linux that lets two files share their blocks until one is written."""
_NO_CLONE = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.EPERM, errno.ENOSYS}
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

T = TypeVar("T")


class LocalAttachments:
    """Implements `Attachments`. Files have mode 600, in folders of their first two characters.

    A file is written to the folder `unfinished` and renamed. Its writer holds a lock on it, so
    that the files of killed writers are recognized.

    Args:
        folder: created with mode 700 when the first file is stored.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

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
        with _store_errors("written"):
            await _in_thread(lambda: self._put(sha256, content))
        return _attachment(name, media_type, sha256, len(content))

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
        """Store what `chunks` yields; see the port.

        Raises:
            FileTooLarge: there are more than `max_bytes`.
            StoreUnavailable: the folder is not writable; nothing was stored.
        """
        with _store_errors("written"):
            unfinished = await _in_thread(self._create)
        try:
            async for piece in _joined(chunks):
                if unfinished.size + len(piece) > max_bytes:
                    raise too_large(max_bytes)
                with _store_errors("written"):
                    await _in_thread(partial(unfinished.write, piece))
            return await self._finish(unfinished, name, media_type, register)
        finally:
            unfinished.close()

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
        with _store_errors("written"):
            unfinished = await _in_thread(self._create)

        def copy() -> None:
            for piece in _pieces(descriptor, 0, max_bytes + 1):
                if unfinished.size + len(piece) > max_bytes:
                    raise too_large(max_bytes)
                with _store_errors("written"):
                    unfinished.write(piece)

        try:
            await _in_thread(copy)
            return await self._finish(unfinished, name, media_type, register)
        finally:
            unfinished.close()

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
        file, size = await _in_thread(lambda: self._open(sha256))
        try:
            stop = size if end is None else min(end, size)
            pieces = _pieces(file.fileno(), start, stop)
            if start == 0 and stop == size:
                pieces = _verified(pieces, sha256)
            while True:
                with _store_errors("read"):
                    piece = await _in_thread(lambda: next(pieces, b""))
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
        return await _in_thread(lambda: self._copy_to(sha256, descriptor))

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

    async def remove_unfinished(self) -> None:
        """Remove what killed processes left of files that they were storing.

        Raises:
            StoreUnavailable: the folder cannot be read or written.
        """

        def remove() -> None:
            folder = self._folder / _UNFINISHED
            if not folder.is_dir() or not any(folder.iterdir()):
                return
            lock = self._lock(fcntl.LOCK_EX)  # no file is created meanwhile
            try:
                for path in folder.iterdir():
                    _unlink_unlocked(path)
            finally:
                os.close(lock)

        with _store_errors("removed"):
            await _in_thread(remove)

    @contextlib.asynccontextmanager
    async def removal(self) -> AsyncGenerator[Callable[[str], None]]:
        """Let no file become available while the block runs; yield a function that removes one.

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
        with _store_errors("removed"):
            self._path(sha256).unlink(missing_ok=True)

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

    def _create(self) -> "_Unfinished":
        lock = self._lock(fcntl.LOCK_SH)
        try:
            return _Unfinished(self._folder / _UNFINISHED)
        finally:
            os.close(lock)

    def _put(self, sha256: str, content: bytes) -> None:
        with contextlib.suppress(NotFound, StoreCorrupt):  # a damaged file is replaced
            lock = self._lock(fcntl.LOCK_SH)
            try:
                self._get(sha256)
                return
            finally:
                os.close(lock)
        unfinished = self._create()
        try:
            unfinished.write(content)
            self._rename(unfinished, sha256)
        finally:
            unfinished.close()

    async def _finish(
        self, unfinished: "_Unfinished", name: str, media_type: str, register: RegisterUse | None
    ) -> Attachment:
        sha256, size = unfinished.sha256, unfinished.size
        if register is not None:
            await register(sha256, size)
        with _store_errors("written"):
            await _in_thread(lambda: self._rename(unfinished, sha256))
        return _attachment(name, media_type, sha256, size)

    def _rename(self, unfinished: "_Unfinished", sha256: str) -> None:
        """Give a complete file its final name: fsync, rename, fsync of the folders."""
        unfinished.sync()
        path = self._path(sha256)
        lock = self._lock(fcntl.LOCK_SH)
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            unfinished.path.replace(path)
        finally:
            os.close(lock)
        for folder in (path.parent, self._folder):
            _sync(folder)

    def _get(self, sha256: str) -> bytes:
        file, size = self._open(sha256)
        with file, _store_errors("read"):
            return b"".join(_verified(_pieces(file.fileno(), 0, size), sha256))

    def _copy_to(self, sha256: str, descriptor: int) -> int:
        source, size = self._open(sha256)
        with source:
            try:
                _copy(source.fileno(), descriptor, size)
                for _ in _verified(_pieces(descriptor, 0, size), sha256):
                    pass
            except BaseException:
                os.ftruncate(descriptor, 0)
                raise
        return size

    def _open(self, sha256: str) -> tuple[BinaryIO, int]:
        if not _SHA256.fullmatch(sha256):
            raise NotFound("there is no such attachment")
        try:
            file = os.fdopen(os.open(self._path(sha256), _READ), "rb", buffering=0)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NotFound("there is no such attachment") from error
        except OSError as error:
            raise StoreUnavailable(f"an attachment cannot be read: {error.strerror}") from error
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            file.close()
            raise StoreUnavailable("an attachment cannot be read: it is not a file")
        return file, status.st_size

    def _path(self, sha256: str) -> Path:
        return self._folder / sha256[:2] / sha256


class _Unfinished:
    """A file that is being written, under a random name. `close` removes it under that name."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self.path = folder / secrets.token_hex(16)
        self.size = 0
        self._hash = hashlib.sha256()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._file = os.fdopen(os.open(self.path, flags, 0o600), "wb")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX)
        except BaseException:
            self.close()
            raise

    @property
    def sha256(self) -> str:
        """The hash of what was written."""
        return self._hash.hexdigest()

    def write(self, piece: bytes) -> None:
        self._file.write(piece)
        self._hash.update(piece)
        self.size += len(piece)

    def sync(self) -> None:
        """Return after the bytes would survive a power failure."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self.path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # of bytes that are not needed any more
            self._file.close()


def too_large(max_bytes: int) -> FileTooLarge:
    """Return the error of a file with too many bytes."""
    return FileTooLarge(f"The file is larger than {format_size(max_bytes)}.")


def _attachment(name: str, media_type: str, sha256: str, size: int) -> Attachment:
    return Attachment(name, media_type, f"attachment:{sha256}", sha256, size)


@contextlib.contextmanager
def _store_errors(done: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(f"attachments cannot be {done}: {error.strerror}") from error


async def _in_thread(function: Callable[[], T]) -> T:
    """Run a function in a thread. A caller that is cancelled waits until it returns."""
    running = asyncio.create_task(asyncio.to_thread(function))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])  # else its file is closed while it is written
        raise


async def _joined(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    """Join small chunks, so that a thread writes about `CHUNK_BYTES` at once."""
    pieces, size = list[bytes](), 0
    async for chunk in chunks:
        pieces.append(chunk)
        size += len(chunk)
        if size >= CHUNK_BYTES:
            yield b"".join(pieces)
            pieces, size = [], 0
    if pieces:
        yield b"".join(pieces)


def _pieces(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes of an open file, up to its end or to byte `end`."""
    while start < end:
        piece = os.pread(descriptor, min(CHUNK_BYTES, end - start), start)
        if not piece:
            return
        yield piece
        start += len(piece)


def _verified(pieces: Iterator[bytes], sha256: str) -> Iterator[bytes]:
    """Yield pieces, the last one only if all of them have the hash.

    Raises:
        StoreCorrupt: they do not have it.
    """
    digest, last = hashlib.sha256(), b""
    for piece in pieces:
        if last:
            yield last
        digest.update(piece)
        last = piece
    if digest.hexdigest() != sha256:
        raise StoreCorrupt(f"the attachment {sha256[:12]}… is damaged on disk")
    yield last


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


def _unlink_unlocked(path: Path) -> None:
    """Remove a file unless its writer, which holds a lock on it, is alive."""
    try:
        descriptor = os.open(path, _READ)
    except FileNotFoundError:  # renamed just now
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    else:
        path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _unlock(locking: asyncio.Task[int]) -> None:
    if not locking.cancelled() and locking.exception() is None:
        os.close(locking.result())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
