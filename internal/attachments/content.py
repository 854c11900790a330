"""Pieces of file content: reading, joining and verifying them."""

import asyncio
import contextlib
import hashlib
import os
import re
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterator
from concurrent.futures import Executor
from typing import TypeVar

from internal.agent.app.background_task import wait_until_done
from internal.agent.domain.errors import FileTooLarge, StoreCorrupt, StoreUnavailable
from internal.agent.domain.tasks import Attachment
from internal.agent.domain.text import format_size

CHUNK_BYTES = 1024 * 1024
"""Maximum part of a file that is held in memory."""
SHA256 = re.compile(r"[0-9a-f]{64}")

T = TypeVar("T")


def attachment(name: str, media_type: str, sha256: str, size: int) -> Attachment:
    """Return the attachment of stored content."""
    return Attachment(name, media_type, f"attachment:{sha256}", sha256, size)


def too_large(max_bytes: int) -> FileTooLarge:
    """Return the error of a file with too many bytes."""
    return FileTooLarge(
        f"The file is larger than {format_size(max_bytes)}.",
        reason_code="file_too_large",
        limit=format_size(max_bytes),
    )


def damaged(sha256: str) -> StoreCorrupt:
    """Return the error of a file whose bytes do not have their hash."""
    return StoreCorrupt(f"the attachment {sha256[:12]}… is damaged")


@contextlib.contextmanager
def store_errors(done: str) -> Generator[None]:
    """Raise errors of the file system as StoreUnavailable."""
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(f"attachments cannot be {done}: {error.strerror}") from error


async def in_thread(
    function: Callable[[], T],
    executor: Executor | None = None,
    on_cancel: Callable[[], None] = lambda: None,
) -> T:
    """Run a function in a thread. A caller that is cancelled waits until it returns.

    `on_cancel` may make it return earlier.
    """
    # else its file is closed while it is written
    running = asyncio.get_running_loop().run_in_executor(executor, function)
    return await wait_until_done(running, on_cancel)


async def joined(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
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


def pieces(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes of an open file, up to its end or to byte `end`."""
    while start < end:
        piece = os.pread(descriptor, min(CHUNK_BYTES, end - start), start)
        if not piece:
            return
        yield piece
        start += len(piece)


def verified(parts: Iterator[bytes], sha256: str) -> Iterator[bytes]:
    """Yield pieces, the last one only if all of them have the hash.

    Raises:
        StoreCorrupt: they do not have it.
    """
    digest, last = hashlib.sha256(), b""
    for piece in parts:
        if last:
            yield last
        digest.update(piece)
        last = piece
    if digest.hexdigest() != sha256:
        raise damaged(sha256)
    yield last
