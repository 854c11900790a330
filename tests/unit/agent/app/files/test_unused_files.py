"""Files that nothing uses any more."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from internal.agent.app.files.session_files import UPLOAD_TTL, SessionFiles
from internal.agent.app.files.unused_files import LOST_AFTER_SECONDS, MAX_SECONDS
from internal.agent.domain.errors import FilesUnavailable, Forbidden
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import SessionId
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.attachments.local import LocalAttachments
from internal.attachments.s3 import S3Attachments
from internal.attachments.s3_client import S3Client
from internal.attachments.upload_folder import UploadFolder
from internal.sandbox.workspaces import Workspaces
from internal.worktrees.worktrees import GitWorktrees
from tests.support.movable_clock import MovableClock
from tests.support.s3_server import S3Server, s3_server

A, B = SessionId("session-a"), SessionId("session-b")


class JumpingClock(MovableClock):
    """A clock on which every reading is later than a search may last."""

    readings = 0

    def monotonic(self) -> float:
        self.readings += 1
        return self.readings * (MAX_SECONDS + 1)


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def store(tmp_path: Path) -> LocalAttachments:
    return LocalAttachments(tmp_path / "attachments")


@pytest.fixture
def files(
    database: Database,
    stores: Stores,
    store: LocalAttachments,
    clock: MovableClock,
    tmp_path: Path,
) -> SessionFiles:
    return SessionFiles(
        database,
        stores,
        store,
        Workspaces(tmp_path, GitWorktrees()),
        uploads=UploadFolder(tmp_path / "uploads", quota=10),
        clock=clock,
    )


async def names(store: LocalAttachments) -> set[str]:
    return {each.sha256 async for each in store.stored()}


async def test_what_nothing_uses_is_counted_and_removed(
    database: Database,
    stores: Stores,
    files: SessionFiles,
    store: LocalAttachments,
    clock: MovableClock,
) -> None:
    used = await files.put(A, "x", "", b"used by a session")
    await files.put(B, "x", "", b"of a deleted session")
    await database.write(partial(stores.files.release_session, B))
    await files.upload("local", "x", "", b"expired")
    clock.advance(UPLOAD_TTL + timedelta(seconds=1))
    uploaded = await files.upload("local", "x", "", b"uploaded")
    await store.put("x", "", b"unknown")
    size = len(b"of a deleted session" + b"expired" + b"unknown")
    assert await files.unused.find(LOCAL_OWNER) == (3, size, None)
    assert len(await names(store)) == 5
    assert await files.unused.remove(LOCAL_OWNER) == (3, size, None)
    assert await names(store) == {used.sha256, uploaded.sha256}
    assert await files.unused.remove(LOCAL_OWNER) == (0, 0, None)
    assert await database.read(partial(stores.files.list_removals, "attachment")) == []


@pytest.mark.parametrize("removes", [False, True])
@pytest.mark.first_rows(1)
async def test_a_large_store_is_searched_in_parts(
    database: Database, stores: Stores, store: LocalAttachments, tmp_path: Path, removes: bool
) -> None:
    for number in range(501):
        await store.put("x", "", b"%d" % number)
    files = SessionFiles(
        database,
        stores,
        store,
        Workspaces(tmp_path, GitWorktrees()),
        uploads=UploadFolder(tmp_path / "uploads", quota=10),
        clock=JumpingClock(),
    )
    search = files.unused.remove if removes else files.unused.find
    count, _, cursor = await search(LOCAL_OWNER)
    assert (count, bool(cursor)) == (500, True)
    assert (await search(LOCAL_OWNER, cursor or ""))[0::2] == (1, None)
    assert len(await names(store)) == (0 if removes else 501)


async def test_only_the_owner_may_see_and_remove_the_files_of_everybody(
    files: SessionFiles,
) -> None:
    operator = Principal("lark:app:ann", "Ann", frozenset({"talk", "operate"}))
    for search in (files.unused.find, files.unused.remove):
        with pytest.raises(Forbidden):
            await search(operator)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[S3Server]:
    async with s3_server(tmp_path / "server") as server:
        yield server


async def test_files_are_removed_when_the_bucket_answers_again(
    database: Database, stores: Stores, clock: MovableClock, tmp_path: Path, server: S3Server
) -> None:
    client = S3Client(server.bucket())
    files = SessionFiles(
        database,
        stores,
        S3Attachments(client, "", tmp_path / "attachments"),
        Workspaces(tmp_path, GitWorktrees()),
        uploads=UploadFolder(tmp_path / "uploads", quota=10),
        clock=clock,
    )
    for content in (b"one", b"two"):
        await files.put(A, "x", "", content)
    (workspace := tmp_path / "workspaces" / A).mkdir(parents=True)
    await database.write(partial(stores.files.release_session, A))
    await server.stop()
    with pytest.raises(FilesUnavailable, match="cannot be reached"):
        await files.unused.remove_released()
    assert not workspace.exists(), "folders are not in the bucket"
    await files.remove_unused()
    assert len(await database.read(partial(stores.files.list_removals, "attachment"))) == 2
    await server.start()
    await files.unused.remove_released()
    assert server.objects() == []
    assert await database.read(partial(stores.files.list_removals, "attachment")) == []
    client.close()


async def test_a_file_that_another_host_removes_is_stored_afterwards(
    database: Database,
    stores: Stores,
    files: SessionFiles,
    store: LocalAttachments,
    clock: MovableClock,
) -> None:
    files.unused.host = "two"
    sha256 = hashlib.sha256(b"content").hexdigest()
    now, lost = rfc3339(clock.now()), rfc3339(clock.now() - timedelta(seconds=1))
    assert await database.write(partial(stores.files.begin_removal, sha256, now, lost_before=lost))
    storing = asyncio.create_task(files.put(A, "x", "", b"content"))
    async with asyncio.timeout(30):
        while not await database.read(partial(stores.files.count_bytes, A)):
            pass
    assert await names(store) == set()
    await database.write(partial(stores.files.end_removal, "attachment", sha256))
    assert (await storing).sha256 == sha256
    assert await names(store) == {sha256}


async def test_a_removal_that_its_host_did_not_finish_is_taken_over(
    database: Database,
    stores: Stores,
    files: SessionFiles,
    store: LocalAttachments,
    clock: MovableClock,
) -> None:
    files.unused.host = "two"
    kept = await files.put(A, "x", "", b"content")
    await database.write(partial(stores.files.release_session, A))
    now = rfc3339(clock.now())
    assert await database.write(
        partial(stores.files.begin_removal, kept.sha256, now, lost_before="")
    )
    await files.unused.remove_released()
    assert await names(store) == {kept.sha256}
    clock.advance(timedelta(seconds=LOST_AFTER_SECONDS + 1))
    await files.unused.remove_released()
    assert await names(store) == set()
