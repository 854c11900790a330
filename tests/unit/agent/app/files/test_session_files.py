"""Files that nothing uses are removed, also after a crash at any point."""

import asyncio
import hashlib
import os
import signal
import sys
from collections.abc import AsyncGenerator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from internal.agent.app.files.session_files import UPLOAD_TTL, SessionFiles
from internal.agent.domain.errors import FileTooLarge, NotFound, WrongHash
from internal.agent.domain.ids import SessionId
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.attachments.local import LocalAttachments
from internal.attachments.upload_folder import UploadFolder
from internal.sandbox.workspaces import Workspaces
from internal.storage.database_url import open_database
from internal.worktrees.worktrees import GitWorktrees
from tests import ROOT
from tests.support.movable_clock import MovableClock

ZEROS = "0" * 64
A, B = SessionId("session-a"), SessionId("session-b")


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def files(database: Database, stores: Stores, clock: MovableClock, tmp_path: Path) -> SessionFiles:
    return SessionFiles(
        database,
        stores,
        LocalAttachments(tmp_path / "attachments"),
        Workspaces(tmp_path, GitWorktrees()),
        uploads=UploadFolder(tmp_path / "uploads", quota=10),
        clock=clock,
    )


async def chunks(content: bytes) -> AsyncGenerator[bytes]:
    yield content


async def is_stored(files: SessionFiles, content: bytes) -> bool:
    try:
        await files.get(hashlib.sha256(content).hexdigest())
    except NotFound:
        return False
    return True


async def test_removal_is_finished_after_a_crash(
    database: Database, stores: Stores, files: SessionFiles, tmp_path: Path
) -> None:
    await files.put(A, "x", "text/plain", b"only a")
    await files.put(A, "x", "text/plain", b"both")
    await files.put(B, "x", "text/plain", b"both")
    workspace = tmp_path / "workspaces" / A
    workspace.mkdir(parents=True)
    await database.write(partial(stores.files.release_session, A))
    assert await is_stored(files, b"only a"), "the process died here"
    await files.remove_unused()
    assert not await is_stored(files, b"only a")
    assert await is_stored(files, b"both")
    assert not workspace.exists()
    assert await database.read(partial(stores.files.list_removals, "attachment")) == []
    assert await database.read(partial(stores.files.list_removals, "workspace")) == []


async def test_a_file_that_is_used_again_is_not_removed(
    database: Database, stores: Stores, files: SessionFiles
) -> None:
    await files.put(A, "x", "text/plain", b"content")
    await database.write(partial(stores.files.release_session, A))
    await files.put(B, "x", "text/plain", b"content")
    await files.remove_unused()
    assert await is_stored(files, b"content")
    await database.write(partial(stores.files.release_session, B))
    await files.remove_unused()
    assert not await is_stored(files, b"content")


async def test_an_upload_that_no_task_uses_expires(
    files: SessionFiles, clock: MovableClock
) -> None:
    await files.upload("local", "x", "text/plain", b"content")
    clock.advance(UPLOAD_TTL - timedelta(minutes=1))
    await files.remove_unused()
    assert await is_stored(files, b"content")
    sha256 = hashlib.sha256(b"content").hexdigest()
    assert await files.keep_uploaded(sha256, "lark:app:ann") == 7
    clock.advance(timedelta(minutes=2))
    await files.remove_unused()
    assert await is_stored(files, b"content"), "another principal looked it up for a task"
    clock.advance(UPLOAD_TTL)
    await files.remove_unused()
    assert not await is_stored(files, b"content")


async def test_a_file_that_cannot_be_removed_is_tried_again(
    database: Database, stores: Stores, files: SessionFiles, tmp_path: Path
) -> None:
    kept = await files.put(A, "x", "text/plain", b"content")
    path = tmp_path / "attachments" / kept.sha256[:2] / kept.sha256
    path.unlink()
    path.mkdir()  # unlink fails
    await database.write(partial(stores.files.release_session, A))
    await files.remove_unused()
    assert await database.read(partial(stores.files.list_removals, "attachment")) == [kept.sha256]
    path.rmdir()
    path.write_bytes(b"content")
    await files.remove_unused()
    assert not path.exists()


async def test_the_files_of_a_session_have_a_quota(
    database: Database, tmp_path: Path, clock: MovableClock
) -> None:
    folder = LocalAttachments(tmp_path / "attachments")
    files = SessionFiles(
        database,
        Stores(max_session_bytes=10),
        folder,
        Workspaces(tmp_path, GitWorktrees()),
        uploads=UploadFolder(tmp_path / "uploads", quota=10),
        clock=clock,
    )
    await files.put_stream(A, "x", "", chunks(b"sixsix"))
    await files.put_stream(A, "again", "", chunks(b"sixsix"))
    with pytest.raises(FileTooLarge, match=r"The files of this session would exceed 10 bytes\."):
        await files.put_stream(A, "x", "", chunks(b"fives"))
    assert not await is_stored(files, b"fives")
    await files.put_stream(B, "x", "", chunks(b"fives"))
    await files.put(A, "result.txt", "text/plain", b"a long result")
    with pytest.raises(FileTooLarge, match=r"Your uploads that no message uses yet"):
        await files.upload("local", "x", "", b"eleven byte")
    assert not await is_stored(files, b"eleven byte")


async def test_a_file_has_a_size_limit(
    database: Database, stores: Stores, tmp_path: Path, clock: MovableClock
) -> None:
    files = SessionFiles(
        database,
        stores,
        LocalAttachments(tmp_path / "attachments"),
        Workspaces(tmp_path, GitWorktrees()),
        uploads=UploadFolder(tmp_path / "uploads", quota=10),
        clock=clock,
        max_file_bytes=3,
    )
    (tmp_path / "four").write_bytes(b"four")
    with (tmp_path / "four").open("rb") as file:
        for storing in (
            files.put_stream(A, "x", "", chunks(b"four")),
            files.put_file(A, "x", "", file.fileno()),
            files.upload("local", "x", "", b"four"),
            files.upload_stream("local", "x", "", chunks(b"four")),
        ):
            with pytest.raises(FileTooLarge, match=r"The file is larger than 3 bytes\."):
                await storing
    assert (await files.upload("local", "x", "", b"two")).size == 3


async def test_an_upload_with_a_wrong_hash_is_not_stored(files: SessionFiles) -> None:
    with pytest.raises(WrongHash, match="do not have the given SHA-256"):
        await files.continue_upload("local", "x", "", chunks(b"content"), sha256=ZEROS, offset=0)
    assert not await is_stored(files, b"content")
    assert await files.received(ZEROS, "local") == (0, False)


async def test_a_hash_gives_no_access_to_the_file_of_another_person(files: SessionFiles) -> None:
    kept = await files.upload("local", "x", "", b"content")
    assert await files.received(kept.sha256, "local") == (kept.size, True)
    assert await files.received(kept.sha256, "lark:app:ann") == (0, False)
    assert await files.received(ZEROS, "local") == (0, False)


async def test_unfinished_uploads_have_a_quota_and_expire(
    files: SessionFiles, tmp_path: Path
) -> None:
    async def cut_off(content: bytes) -> AsyncGenerator[bytes]:
        yield content
        raise ConnectionError

    async def send(sha256: str, content: bytes, principal: str = "local") -> None:
        await files.continue_upload(principal, "x", "", cut_off(content), sha256=sha256, offset=0)

    for sha256, principal in ((ZEROS, "local"), ("1" * 64, "lark:app:ann")):
        with pytest.raises(ConnectionError):
            await send(sha256, b"sixsix", principal)
        assert await files.received(sha256, principal) == (6, False)
    with pytest.raises(FileTooLarge):
        await send("2" * 64, b"sixsix")
    await files.remove_unused()
    assert await files.received(ZEROS, "local") == (6, False)
    for path in (tmp_path / "uploads").glob("*/*"):
        os.utime(path, (0, 0))
    await files.remove_unused()
    assert await files.received(ZEROS, "local") == (0, False)


KILLED = """
import asyncio, os, sys
from pathlib import Path
from internal.agent.app.files.session_files import SessionFiles
from internal.agent.domain.ids import SessionId
from internal.agent.store.stores import Stores
from internal.attachments.local import LocalAttachments
from internal.attachments.upload_folder import UploadFolder
from internal.observability.clock import SystemClock
from internal.sandbox.workspaces import Workspaces
from internal.worktrees.worktrees import GitWorktrees
from internal.storage.database_url import open_database

async def main(folder, call):
    real, calls = os.fsync, 0
    def fsync(descriptor):
        nonlocal calls
        calls += 1
        if calls == call:
            os.kill(os.getpid(), 9)
        real(descriptor)
    async with open_database(folder / "larkspur.db") as database:
        attachments = LocalAttachments(folder / "attachments")
        uploads = UploadFolder(folder / "uploads", quota=0)
        files = SessionFiles(database, Stores(), attachments, Workspaces(folder, GitWorktrees()),
                             uploads=uploads, clock=SystemClock())
        async def chunks():
            yield b"content"
        os.fsync = fsync
        await files.put_stream(SessionId("session-a"), "x", "", chunks())
    print("stored")

asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
"""


@pytest.mark.parametrize("call", [1, 2, 3, 4])
@pytest.mark.first_rows(1)
async def test_every_file_is_known_when_the_process_is_killed_while_it_stores(
    tmp_path: Path, call: int
) -> None:
    """Killed at the n-th fsync: of the file, of its folder, of the store; then not at all."""
    writer = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", KILLED, str(tmp_path), str(call)),
        cwd=ROOT,
        stdout=asyncio.subprocess.DEVNULL,
    )
    assert await writer.wait() == (-signal.SIGKILL if call < 4 else 0)
    stores, clock = Stores(), MovableClock()
    async with open_database(tmp_path / "larkspur.db") as database:
        attachments = LocalAttachments(tmp_path / "attachments")
        files = SessionFiles(
            database,
            stores,
            attachments,
            Workspaces(tmp_path, GitWorktrees()),
            uploads=UploadFolder(tmp_path / "uploads", quota=10),
            clock=clock,
        )
        await files.remove_unused()
        assert await is_stored(files, b"content") is (call > 1)
        assert await database.read(partial(stores.files.count_bytes, A)) == 7
        await files.put_stream(A, "x", "", chunks(b"content"))
        await database.write(partial(stores.files.release_session, A))
        await files.remove_unused()
    assert not [path for path in (tmp_path / "attachments").rglob("*") if path.is_file()]


async def test_removal_and_storing_of_the_same_file_do_not_cross(
    database: Database, stores: Stores, files: SessionFiles
) -> None:
    for _ in range(20):
        await files.put_stream(A, "x", "", chunks(b"content"))
        await database.write(partial(stores.files.release_session, A))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(files.remove_unused())
            tasks.create_task(files.put_stream(B, "x", "", chunks(b"content")))
        await files.remove_unused()
        assert await is_stored(files, b"content")
        await database.write(partial(stores.files.release_session, B))
        await files.remove_unused()
        assert not await is_stored(files, b"content")
