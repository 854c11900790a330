"""What every store of attachments does."""

import hashlib
import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from internal.agent.domain.errors import FileTooLarge, InvalidRequest, NotFound
from internal.agent.ports.attachments import Attachments
from internal.attachments.local import CHUNK_BYTES, LocalAttachments

LARGE = os.urandom(CHUNK_BYTES) * 2 + b"end"


@pytest.fixture
def store(tmp_path: Path) -> Attachments:
    return LocalAttachments(tmp_path / "attachments")


async def in_chunks(content: bytes, size: int = 70_000) -> AsyncGenerator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


async def read(store: Attachments, sha256: str, *, start: int = 0, end: int | None = None) -> bytes:
    return b"".join([piece async for piece in store.stream(sha256, start=start, end=end)])


@pytest.mark.parametrize("content", [b"", b"content", LARGE], ids=len)
async def test_a_stream_is_stored(store: Attachments, content: bytes) -> None:
    kept = await store.put_stream("a.bin", "x/y", in_chunks(content), max_bytes=len(content))
    assert kept.sha256 == hashlib.sha256(content).hexdigest()
    assert (kept.name, kept.media_type, kept.size) == ("a.bin", "x/y", len(content))
    assert kept == await store.put("a.bin", "x/y", content)
    assert await store.get(kept.sha256) == await read(store, kept.sha256) == content
    assert await store.size(kept.sha256) == len(content)


@pytest.mark.parametrize("content", [b"", b"content", LARGE], ids=len)
async def test_an_open_file_is_stored(store: Attachments, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "source").write_bytes(content)
    with (tmp_path / "source").open("rb") as file:
        kept = await store.put_file("a", "", file.fileno(), max_bytes=len(content))
    assert await store.get(kept.sha256) == content


async def test_what_is_too_large_is_not_stored(store: Attachments, tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(LARGE)
    limit = len(LARGE) - 1
    with pytest.raises(FileTooLarge, match=r"The file is larger than 2\.0 MB\."):
        await store.put_stream("a", "", in_chunks(LARGE), max_bytes=limit)
    with (tmp_path / "source").open("rb") as file, pytest.raises(FileTooLarge):
        await store.put_file("a", "", file.fileno(), max_bytes=limit)
    with pytest.raises(NotFound):
        await store.size(hashlib.sha256(LARGE).hexdigest())


@pytest.mark.parametrize(
    ("start", "end"), [(0, 1), (5, None), (CHUNK_BYTES - 1, CHUNK_BYTES + 1), (3, 3), (1, 10**9)]
)
async def test_a_part_is_read(store: Attachments, start: int, end: int | None) -> None:
    kept = await store.put("a", "", LARGE)
    assert await read(store, kept.sha256, start=start, end=end) == LARGE[start:end]


async def test_the_use_is_stored_before_the_file_is_found(store: Attachments) -> None:
    seen: list[int] = []

    async def register(sha256: str, size: int) -> None:
        with pytest.raises(NotFound):
            await store.size(sha256)
        seen.append(size)

    await store.put("a", "", b"one", register)
    await store.put_stream("a", "", in_chunks(b"second"), max_bytes=9, register=register)
    assert seen == [3, 6]


async def test_a_file_whose_use_is_refused_is_not_stored(store: Attachments) -> None:
    async def register(_sha256: str, _size: int) -> None:
        raise InvalidRequest("no")

    with pytest.raises(InvalidRequest):
        await store.put_stream("a", "", in_chunks(LARGE), max_bytes=len(LARGE), register=register)
    with pytest.raises(NotFound):
        await store.size(hashlib.sha256(LARGE).hexdigest())


@pytest.mark.parametrize("content", [b"", LARGE], ids=len)
async def test_a_file_is_copied(store: Attachments, tmp_path: Path, content: bytes) -> None:
    kept = await store.put("a", "", content)
    with (tmp_path / "copy").open("w+b") as file:
        assert await store.copy_to(kept.sha256, file.fileno()) == len(content)
    assert (tmp_path / "copy").read_bytes() == content
