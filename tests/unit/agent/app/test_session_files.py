"""Files that nothing uses are removed, also after a crash at any point."""

import hashlib
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from internal.agent.app.session_files import UPLOAD_TTL, SessionFiles
from internal.agent.domain.errors import NotFound
from internal.agent.domain.ids import SessionId
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.attachments.local import LocalAttachments
from internal.sandbox.workspaces import Workspaces
from tests.support.movable_clock import MovableClock

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
        Workspaces(tmp_path),
        clock=clock,
    )


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
    assert await files.get_uploaded(sha256, "lark:app:ann") == b"content"
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
