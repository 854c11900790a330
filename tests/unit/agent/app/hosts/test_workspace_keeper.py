"""The archives of workspaces when something fails, and when nothing has changed."""

from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import pytest

from internal.agent.app.hosts.host import Host
from internal.agent.app.hosts.workspace_keeper import SavedWorkspace, WorkspaceKeeper
from internal.agent.domain.errors import LarkspurError, StoreUnavailable
from internal.agent.domain.ids import SessionId
from internal.agent.store.database import Database
from internal.agent.store.files import WorkspaceArchive
from internal.agent.store.stores import Stores
from internal.attachments.local import LocalAttachments
from internal.attachments.s3 import S3Attachments
from internal.attachments.s3_client import S3Client
from internal.observability.clock import SystemClock
from internal.sandbox.workspace_archives import FolderArchives
from internal.tools.commands.background import BackgroundCommandPool
from internal.tools.instruction_trust import InstructionTrust
from tests.support.s3_server import S3Server, s3_server
from tests.support.store_records import T0, a_session, a_task

ID = SessionId("session-1")
TASK = a_task(session_id=ID)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[S3Server]:
    async with s3_server(tmp_path / "server") as server:
        yield server


@pytest.fixture
async def keeper(
    database: Database, stores: Stores, tmp_path: Path, server: S3Server
) -> AsyncGenerator[WorkspaceKeeper]:
    root = tmp_path / "one"
    (root / "workspaces" / ID).mkdir(parents=True)
    await database.write(lambda: stores.sessions.add(a_session(ID)))
    await database.write(partial(stores.hosts.bind, ID, "one"))
    clock, client = SystemClock(), S3Client(server.bucket())
    yield WorkspaceKeeper(
        Host("one", "archive", str(root)),
        database,
        stores,
        clock=clock,
        archives=FolderArchives(root),
        attachments=S3Attachments(client, "", tmp_path / "spool"),
        commands=BackgroundCommandPool(clock, InstructionTrust(root)),
    )
    client.close()


@pytest.fixture
def workspace(tmp_path: Path, keeper: WorkspaceKeeper) -> Path:
    assert keeper.host.name == "one"
    return tmp_path / "one" / "workspaces" / ID


async def stored(database: Database, saved: SavedWorkspace) -> None:
    assert saved.also is not None
    await database.write(saved.also)


async def state(database: Database, stores: Stores) -> tuple[WorkspaceArchive | None, str]:
    archive = await database.read(partial(stores.hosts.get_archive, ID))
    return archive, await database.read(partial(stores.hosts.get_of_session, ID))


async def test_unchanged_files_are_archived_once(
    database: Database, stores: Stores, keeper: WorkspaceKeeper, workspace: Path, server: S3Server
) -> None:
    (workspace / "a").write_text("1")
    await stored(database, await keeper.save(TASK))
    first, host = await state(database, stores)
    assert first is not None
    assert host == ""
    assert [each.name for each in server.objects()] == [first.sha256]
    await database.write(partial(stores.hosts.bind, ID, "one"))
    await stored(database, await keeper.save(TASK))
    assert await state(database, stores) == (first, "")
    (workspace / "a").write_text("22")
    await stored(database, await keeper.save(TASK))
    second, _ = await state(database, stores)
    assert second is not None
    assert second.version != first.version


async def test_a_session_without_files_needs_no_archive(
    database: Database, stores: Stores, keeper: WorkspaceKeeper, server: S3Server
) -> None:
    await stored(database, await keeper.save(TASK))
    assert await state(database, stores) == (None, "")
    assert server.objects() == []


async def test_files_that_cannot_be_stored_stay_on_the_host(
    database: Database, stores: Stores, keeper: WorkspaceKeeper, workspace: Path, server: S3Server
) -> None:
    (workspace / "a").write_text("1")
    await server.stop()
    saved = await keeper.save(TASK)
    assert saved.also is None
    [event] = saved.events
    assert event.text.startswith("The files of this session stay on host one, which executes its")
    assert "cannot be reached" in event.text
    keeper.save_later(TASK)
    await keeper.save_unsaved()
    assert await state(database, stores) == (None, "one")
    await server.start()
    keeper.save_later(TASK)
    await keeper.save_unsaved()
    assert (await state(database, stores))[1] == ""


async def test_a_run_waits_while_its_archive_cannot_be_read(
    database: Database, stores: Stores, keeper: WorkspaceKeeper, workspace: Path, server: S3Server
) -> None:
    (workspace / "a").write_text("1")
    await stored(database, await keeper.save(TASK))
    assert await database.write(partial(stores.hosts.move, ID, "", "moved"))
    await server.stop()
    with pytest.raises(StoreUnavailable, match="The files of the session: attachments cannot be"):
        await keeper.restore(TASK)
    await server.start()
    (workspace / "a").write_text("of nobody")
    await keeper.restore(TASK)
    assert (workspace / "a").read_text() == "1"


async def test_a_lost_archive_is_reported(
    database: Database, stores: Stores, keeper: WorkspaceKeeper, workspace: Path
) -> None:
    (workspace / "a").write_text("1")
    lost = WorkspaceArchive("v1", "0" * 64, T0)
    await database.write(partial(stores.hosts.save_archive, ID, lost))
    with pytest.raises(LarkspurError, match="The files of this session cannot be restored"):
        await keeper.restore(TASK)
    assert (workspace / "a").read_text() == "1"


async def test_what_another_host_has_taken_over_is_not_stored(
    database: Database, stores: Stores, keeper: WorkspaceKeeper, workspace: Path
) -> None:
    (workspace / "a").write_text("1")
    assert await database.write(partial(stores.hosts.move, ID, "two", "moved"))
    keeper.save_later(TASK)
    await keeper.save_unsaved()
    assert await state(database, stores) == (None, "two")


async def test_other_hosts_do_nothing(tmp_path: Path, database: Database, stores: Stores) -> None:
    clock = SystemClock()
    keeper = WorkspaceKeeper(
        Host(),
        database,
        stores,
        clock=clock,
        archives=FolderArchives(tmp_path / "one"),
        attachments=LocalAttachments(tmp_path / "attachments"),
        commands=BackgroundCommandPool(clock, InstructionTrust(tmp_path)),
    )
    await keeper.restore(TASK)
    assert await keeper.save(TASK) == SavedWorkspace()
    keeper.save_later(TASK)
    await keeper.save_unsaved()
    assert await database.read(partial(stores.hosts.get_archive, ID)) is None
