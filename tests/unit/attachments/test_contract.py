"""Contract of all attachment stores."""

import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest

from internal.agent.domain.errors import FileTooLarge, InvalidRequest, NotFound
from internal.agent.ports.attachments import Attachments
from internal.attachments.content import CHUNK_BYTES
from internal.attachments.local import LocalAttachments
from internal.attachments.s3 import S3Attachments
from internal.attachments.s3_client import S3Client
from tests.support.s3_server import s3_server

LARGE = os.urandom(CHUNK_BYTES) * 2 + b"end"


@pytest.fixture(params=["local", "s3"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Attachments]:
    if request.param == "local":
        yield LocalAttachments(tmp_path / "attachments")
        return
    async with s3_server(tmp_path / "server") as server:
        client = S3Client(server.bucket())
        yield S3Attachments(client, "larkspur", tmp_path / "spool")
        client.close()


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
@pytest.mark.first_rows(6)
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


async def test_a_removed_file_is_not_found_and_can_be_stored_again(store: Attachments) -> None:
    kept = await store.put("a", "", b"content")
    for _ in range(2):
        async with store.removal() as remove:
            await remove(kept.sha256)
        with pytest.raises(NotFound):
            await store.get(kept.sha256)
    assert await store.put("a", "", b"content") == kept
    assert await store.get(kept.sha256) == b"content"


async def test_stored_files_are_listed(store: Attachments) -> None:
    assert [each async for each in store.stored()] == []
    kept = [await store.put("a", "", content) for content in (b"", b"content", LARGE)]
    expected = sorted((one.sha256, one.size) for one in kept)
    assert [each async for each in store.stored()] == expected
    after = store.stored(after=expected[0][0])
    assert [each async for each in after] == expected[1:]


@pytest.mark.parametrize("name", ["", "../secret", "a" * 64, "A" * 64, "a" * 63 + "\n"])
async def test_what_is_not_stored_is_not_found(store: Attachments, name: str) -> None:
    for reading in (store.get(name), store.size(name), anext(store.stream(name, start=1))):
        with pytest.raises(NotFound):
            await reading
    with pytest.raises(NotFound):
        await store.copy_to(name, 0)


async def test_nothing_becomes_available_during_a_removal(store: Attachments) -> None:
    kept = await store.put("a", "", b"content")
    registered = asyncio.Event()

    async def register(_sha256: str, _size: int) -> None:
        registered.set()

    async with store.removal() as remove:
        putting = asyncio.create_task(store.put("a", "", b"content", register))
        await registered.wait()
        await remove(kept.sha256)
        with pytest.raises(NotFound):
            await store.size(kept.sha256)
    await putting
    assert await store.get(kept.sha256) == b"content"


async def test_concurrent_puts_of_equal_content_leave_one_file(store: Attachments) -> None:
    async with asyncio.TaskGroup() as tasks:
        for number in range(16):
            tasks.create_task(store.put(str(number), "", LARGE))
    assert len([each async for each in store.stored()]) == 1
    assert await store.get(hashlib.sha256(LARGE).hexdigest()) == LARGE


async def test_a_cancelled_stream_stores_nothing(store: Attachments) -> None:
    received = asyncio.Event()

    async def chunks() -> AsyncGenerator[bytes]:
        yield LARGE
        received.set()
        await asyncio.Event().wait()

    putting = asyncio.create_task(store.put_stream("a", "", chunks(), max_bytes=2 * len(LARGE)))
    await received.wait()
    putting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await putting
    assert [each async for each in store.stored()] == []


async def test_a_reader_that_stops_early_leaves_the_store_usable(store: Attachments) -> None:
    kept = await store.put("a", "", LARGE)
    for _ in range(12):
        async with aclosing(store.stream(kept.sha256)) as pieces:
            assert LARGE.startswith(await anext(pieces))
    assert await store.get(kept.sha256) == LARGE


async def test_a_store_is_identified_by_the_first_id(store: Attachments) -> None:
    assert await store.identify() == ""
    assert await store.identify("one") == "one"
    assert await store.identify("two") == await store.identify() == "one"
    assert [each async for each in store.stored()] == []
