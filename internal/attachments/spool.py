"""Files that are being stored, and the lock between storing and removing."""

import asyncio
import contextlib
import fcntl
import hashlib
import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterable, Generator
from functools import partial
from pathlib import Path

from internal.agent.app.background_task import wait_shielded
from internal.agent.domain.errors import StoreUnavailable
from internal.attachments.content import in_thread, joined, pieces, store_errors, too_large

READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_UNFINISHED = "unfinished"


class Spool:
    """The folder `unfinished`, to which content is written until its hash is known.

    Its writer holds a lock on a file, so that the files of killed writers are recognized. All
    processes that share a database share the folder and its lock.

    Args:
        folder: created with mode 700 when the first file is stored.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.asynccontextmanager
    async def receive(
        self, chunks: AsyncIterable[bytes], *, max_bytes: int
    ) -> AsyncGenerator["SpoolFile"]:
        """Write the bytes of `chunks` to a file that is removed after the block.

        Raises:
            FileTooLarge: there are more than `max_bytes`.
            StoreUnavailable: the folder is not writable.
        """
        async with self._created() as file:
            async for piece in joined(chunks):
                if file.size + len(piece) > max_bytes:
                    raise too_large(max_bytes)
                with store_errors("written"):
                    await in_thread(partial(file.write, piece))
            yield file

    @contextlib.asynccontextmanager
    async def copy(self, descriptor: int, *, max_bytes: int) -> AsyncGenerator["SpoolFile"]:
        """Copy an open regular file to a file that is removed after the block.

        Raises:
            FileTooLarge: it has more than `max_bytes`.
            OSError: it cannot be read.
            StoreUnavailable: the folder is not writable.
        """
        async with self._created() as file:

            def write() -> None:
                for piece in pieces(descriptor, 0, max_bytes + 1):
                    if file.size + len(piece) > max_bytes:
                        raise too_large(max_bytes)
                    with store_errors("written"):
                        file.write(piece)

            await in_thread(write)
            yield file

    def create(self) -> "SpoolFile":
        """Create a file, which the caller closes."""
        with self.shared():
            return SpoolFile(self._folder / _UNFINISHED)

    @contextlib.contextmanager
    def shared(self) -> Generator[None]:
        """Hold off removals, of all processes, in a block."""
        lock = self._lock(fcntl.LOCK_SH)
        try:
            yield
        finally:
            os.close(lock)

    @contextlib.asynccontextmanager
    async def exclusive(self) -> AsyncGenerator[None]:
        """Hold off everything that uses `shared`, of all processes, in a block.

        Raises:
            StoreUnavailable: the folder cannot be locked.
        """
        locking = asyncio.create_task(asyncio.to_thread(self._lock, fcntl.LOCK_EX))
        try:
            lock = await wait_shielded(locking)
        except asyncio.CancelledError:
            locking.add_done_callback(_unlock)  # the thread goes on and takes the lock
            raise
        except OSError as error:
            raise StoreUnavailable(f"attachments cannot be locked: {error.strerror}") from error
        try:
            yield
        finally:
            os.close(lock)

    async def remove_unfinished(self) -> None:
        """Remove the incomplete files that killed processes left.

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

        with store_errors("removed"):
            await in_thread(remove)

    @contextlib.asynccontextmanager
    async def _created(self) -> AsyncGenerator["SpoolFile"]:
        with store_errors("written"):
            file = await in_thread(self.create)
        try:
            yield file
        finally:
            file.close()

    def _lock(self, mode: int) -> int:
        """Lock the folder against other processes. Closing the returned descriptor releases it."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, mode)
        except BaseException:
            os.close(lock)
            raise
        return lock


class SpoolFile:
    """A file that is being written, under a random name. `close` removes it under that name."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self.path = folder / secrets.token_hex(16)
        self.size = 0
        self._hash = hashlib.sha256()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self.file = os.fdopen(os.open(self.path, flags, 0o600), "w+b")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX)
        except BaseException:
            self.close()
            raise

    @property
    def sha256(self) -> str:
        """The hash of the written bytes."""
        return self._hash.hexdigest()

    def write(self, piece: bytes) -> None:
        """Add bytes."""
        self.file.write(piece)
        self._hash.update(piece)
        self.size += len(piece)

    def sync(self) -> None:
        """Return after the bytes would survive a power failure."""
        self.file.flush()
        os.fsync(self.file.fileno())

    def close(self) -> None:
        """Remove the file, unless it was renamed."""
        self.path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # of bytes that are not needed any more
            self.file.close()


def _unlink_unlocked(path: Path) -> None:
    """Remove a file unless its writer, which holds a lock on it, is alive."""
    try:
        descriptor = os.open(path, READ_FLAGS)
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
