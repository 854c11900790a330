"""Attachments in a local folder."""

import asyncio
import fcntl
import hashlib
import os
import signal
import stat
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from internal.agent.domain.errors import NotFound, StoreCorrupt, StoreUnavailable
from internal.agent.domain.tasks import Attachment
from internal.agent.ports.attachments import Attachments
from internal.attachments.content import CHUNK_BYTES
from internal.attachments.local import LocalAttachments
from tests import ROOT
from tests.support.file_size_limit import limited_file_size

SHA256 = hashlib.sha256(b"content").hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "attachments"


@pytest.fixture
def store(folder: Path) -> Attachments:
    return LocalAttachments(folder)


def make(folder: Path) -> None:
    folder.mkdir(parents=True)


def entries(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def stored(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


async def test_stored_content_is_returned(store: Attachments) -> None:
    kept = await store.put("a b/ö.txt", "text/plain", b"content")
    assert kept == Attachment("a b/ö.txt", "text/plain", f"attachment:{SHA256}", SHA256, 7)
    assert await store.get(kept.sha256) == b"content"


@pytest.mark.parametrize("content", [b"", b"\0" * 3_000_000])
async def test_any_bytes_are_stored(store: Attachments, content: bytes) -> None:
    assert await store.get((await store.put("x", "", content)).sha256) == content


async def test_a_file_is_named_by_its_hash_and_private(store: Attachments, folder: Path) -> None:
    await store.put("x", "text/plain", b"content")
    path = folder / SHA256[:2] / SHA256
    assert stored(folder) == [path]
    assert [mode(each) for each in (path, path.parent, folder)] == [0o600, 0o700, 0o700]


async def test_equal_content_is_stored_once(store: Attachments, folder: Path) -> None:
    first = await store.put("one", "text/plain", b"content")
    written = stored(folder)[0].stat()
    again = await store.put("two", "text/html", b"content")
    assert first.uri == again.uri
    # not the time of access: the second call reads the file
    now = stored(folder)[0].stat()
    assert (now.st_ino, now.st_mtime_ns, now.st_ctime_ns, now.st_size) == (
        *(written.st_ino, written.st_mtime_ns, written.st_ctime_ns, written.st_size),
    )


async def test_concurrent_puts_of_equal_content_leave_one_file(
    store: Attachments, folder: Path
) -> None:
    async with asyncio.TaskGroup() as tasks:
        for number in range(16):
            tasks.create_task(store.put(str(number), "", b"content"))
    assert [path.name for path in stored(folder)] == [SHA256]
    assert await store.get(SHA256) == b"content"


async def test_a_damaged_file_is_rejected_and_replaced_by_the_next_put(
    store: Attachments, folder: Path
) -> None:
    await store.put("x", "", b"content")
    stored(folder)[0].write_bytes(b"con")
    with pytest.raises(StoreCorrupt, match="damaged"):
        await store.get(SHA256)
    await store.put("x", "", b"content")
    assert await store.get(SHA256) == b"content"


@pytest.mark.parametrize(
    "name",
    [
        *("", "a", "..", "../../etc/passwd", "/etc/passwd", "\0" * 64, "٣" * 64, "g" * 64),
        *(SHA256, SHA256.upper(), SHA256 + "0", SHA256[:-1], SHA256[:-1] + "\n", SHA256 + "\n"),
    ],
)
async def test_an_unknown_hash_is_not_found(store: Attachments, folder: Path, name: str) -> None:
    with pytest.raises(NotFound):
        await store.get(name)
    assert stored(folder) == []


async def test_a_name_that_is_not_a_hash_is_not_looked_up(store: Attachments, folder: Path) -> None:
    make(folder.parent)
    (folder.parent / "secret").write_bytes(b"content")
    for name in ("../secret", f"{folder.parent}/secret", "secret"):
        with pytest.raises(NotFound):
            await store.get(name)


async def test_symbolic_links_are_not_followed(
    store: Attachments, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").write_bytes(b"content")
    make(folder / SHA256[:2])
    (folder / SHA256[:2] / SHA256).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreUnavailable, match="cannot be read"):
        await store.get(SHA256)


async def test_a_folder_that_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = LocalAttachments(tmp_path / "file" / "attachments")
    with pytest.raises(StoreUnavailable, match="attachments cannot be written: "):
        await store.put("x", "", b"content")


async def test_a_failed_write_leaves_no_file(store: Attachments, folder: Path) -> None:
    with limited_file_size(), pytest.raises(StoreUnavailable, match="File too large"):
        await store.put("x", "", b"x" * 2_000)
    assert stored(folder) == []


async def test_a_removed_file_is_not_found_and_can_be_stored_again(
    store: Attachments, folder: Path
) -> None:
    kept = await store.put("x", "text/plain", b"content")
    for _ in range(2):
        async with store.removal() as remove:
            await remove(kept.sha256)
    assert stored(folder) == []
    with pytest.raises(NotFound):
        await store.get(kept.sha256)
    await store.put("x", "text/plain", b"content")
    assert await store.get(kept.sha256) == b"content"


async def test_what_a_killed_writer_left_is_removed(store: Attachments, folder: Path) -> None:
    code = (
        "import asyncio, os, sys\n"
        "from pathlib import Path\n"
        "from internal.attachments.local import LocalAttachments\n"
        "os.fsync = lambda _: os.kill(os.getpid(), 9)\n"
        "asyncio.run(LocalAttachments(Path(sys.argv[1])).put('x', '', b'content'))\n"
    )
    writer = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code, str(folder)), cwd=ROOT
    )
    assert await writer.wait() == -signal.SIGKILL
    [unfinished] = stored(folder)
    assert unfinished.read_bytes() == b"content"
    with pytest.raises(NotFound):
        await store.get(SHA256)
    await store.remove_unfinished()
    assert stored(folder) == []


async def test_what_another_process_still_writes_is_not_removed(folder: Path) -> None:
    received, more = asyncio.Event(), asyncio.Event()

    async def chunks() -> AsyncGenerator[bytes]:
        yield b"c" * CHUNK_BYTES
        received.set()
        await more.wait()
        yield b"end"

    putting = asyncio.create_task(
        LocalAttachments(folder).put_stream("x", "", chunks(), max_bytes=2 * CHUNK_BYTES)
    )
    await received.wait()
    await LocalAttachments(folder).remove_unfinished()
    more.set()
    kept = await putting
    assert kept.size == CHUNK_BYTES + 3
    assert await LocalAttachments(folder).size(kept.sha256) == kept.size


async def test_a_cancelled_stream_leaves_no_file(store: Attachments, folder: Path) -> None:
    received = asyncio.Event()

    async def chunks() -> AsyncGenerator[bytes]:
        yield b"c" * CHUNK_BYTES
        received.set()
        await asyncio.Event().wait()

    putting = asyncio.create_task(store.put_stream("x", "", chunks(), max_bytes=CHUNK_BYTES))
    await received.wait()
    putting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await putting
    assert stored(folder) == []


async def test_a_copy_is_a_file_of_its_own(store: Attachments, folder: Path) -> None:
    kept = await store.put("x", "", b"content")
    target = folder.parent / "copy"
    with target.open("w+b") as file:
        assert await store.copy_to(kept.sha256, file.fileno()) == kept.size
    assert target.stat().st_nlink == 1
    target.write_bytes(b"changed")
    assert await store.get(kept.sha256) == b"content"


async def test_a_damaged_file_is_neither_copied_nor_sent_completely(
    store: Attachments, folder: Path
) -> None:
    content = b"a" * (2 * CHUNK_BYTES)
    kept = await store.put("x", "", content)
    stored(folder)[0].write_bytes(content[:-1] + b"b")
    target = folder.parent / "copy"
    with target.open("w+b") as file, pytest.raises(StoreCorrupt):
        await store.copy_to(kept.sha256, file.fileno())
    assert target.read_bytes() == b""
    pieces = store.stream(kept.sha256)
    assert len(await anext(pieces)) < len(content)
    with pytest.raises(StoreCorrupt):
        await anext(pieces)


async def test_a_file_that_another_process_removes_is_not_found(store: Attachments) -> None:
    for name in (SHA256, "../secret"):
        with pytest.raises(NotFound):
            await store.size(name)
        with pytest.raises(NotFound):
            await anext(store.stream(name))
        with pytest.raises(NotFound):
            await store.copy_to(name, 0)


@contextmanager
def open_folder(folder: Path) -> Iterator[int]:
    opened = os.open(folder, os.O_RDONLY)
    yield opened
    os.close(opened)


async def test_nothing_is_stored_during_a_removal(folder: Path) -> None:
    """The lock also holds for another process, which a second store stands for."""
    kept = await LocalAttachments(folder).put("x", "text/plain", b"content")
    async with LocalAttachments(folder).removal() as remove:
        with open_folder(folder) as opened, pytest.raises(BlockingIOError):
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        putting = asyncio.create_task(LocalAttachments(folder).put("x", "", b"content"))
        await asyncio.sleep(0)
        await remove(kept.sha256)
    assert (await putting).sha256 == kept.sha256
    assert await LocalAttachments(folder).get(kept.sha256) == b"content"


async def test_a_cancelled_removal_does_not_keep_the_lock(folder: Path) -> None:
    store = LocalAttachments(folder)

    async def remove() -> None:
        async with store.removal():
            raise AssertionError("the lock is held by another removal")

    async with store.removal():
        waiting = asyncio.create_task(remove())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert (await store.put("x", "", b"content")).size == 7
