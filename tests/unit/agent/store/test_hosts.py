"""On which host the files of a session are, and who may claim its runs."""

from functools import partial

import pytest

from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.tasks import Run
from internal.agent.store.database import Database
from internal.agent.store.files import HostRow, StrandedRun, WorkspaceArchive
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, T1, T2, a_run, a_session, add_run

SESSION = SessionId("session-1")
ARCHIVE = WorkspaceArchive("v1", "hash-1", T1)


@pytest.fixture
async def run(database: Database, stores: Stores) -> Run:
    await database.write(lambda: stores.sessions.add(a_session()))
    return await add_run(database, stores, a_run())


async def bind(database: Database, stores: Stores, host: str) -> None:
    await database.write(partial(stores.hosts.bind, SESSION, host))


async def claim(database: Database, stores: Stores, run: Run, host: str) -> Run | None:
    work = partial(stores.runs.claim, run.id, "worker", lease_until=T1, now=T0, host=host)
    return await database.write(work)


async def ready(database: Database, stores: Stores, host: str) -> list[str]:
    found = await database.read(partial(stores.runs.list_ready, "worker", T0, 9, host=host))
    return [each.id for each in found]


async def test_only_the_host_of_a_session_claims_its_runs(
    database: Database, stores: Stores, run: Run
) -> None:
    await bind(database, stores, "one")
    await bind(database, stores, "two")  # it is bound already
    assert await ready(database, stores, "two") == []
    assert await claim(database, stores, run, "two") is None
    assert await ready(database, stores, "one") == [run.id]
    assert await claim(database, stores, run, "one") is not None


@pytest.mark.parametrize(("bound", "host"), [("one", ""), ("", "two"), ("", "")])
async def test_other_runs_are_claimed_by_anybody(
    database: Database, stores: Stores, run: Run, bound: str, host: str
) -> None:
    if bound:
        await bind(database, stores, bound)
    assert await ready(database, stores, host) == [run.id]
    assert await claim(database, stores, run, host) is not None


async def test_the_host_of_a_crashed_run_is_the_same(
    database: Database, stores: Stores, run: Run
) -> None:
    await bind(database, stores, "one")
    claimed = await claim(database, stores, run, "one")
    assert claimed is not None
    requeue = partial(
        stores.runs.requeue_failed, run.id, claimed.fence, not_before="", crashed=True
    )
    assert await database.write(requeue)
    for host, expected in (("two", None), ("one", run.id), ("", run.id)):
        read = partial(stores.runs.get_ready_crashed, "worker", T0, host=host)
        found = await database.read(read)
        assert (found and found.id) == expected


async def test_a_session_is_released_when_no_run_of_it_is_running(
    database: Database, stores: Stores, run: Run
) -> None:
    await bind(database, stores, "one")
    claimed = await claim(database, stores, run, "one")
    assert claimed is not None

    async def release(host: str) -> str:
        await database.write(partial(stores.hosts.release, SESSION, host))
        return await database.read(partial(stores.hosts.get_of_session, SESSION))

    assert await release("one") == "one"
    assert not await database.write(partial(stores.hosts.move, SESSION, "two", "v2"))
    await database.write(partial(stores.runs.pause, run.id, claimed.fence))
    assert await release("two") == "one"
    assert await release("one") == ""


async def test_a_missing_host_is_told_of_once_until_the_session_is_moved(
    database: Database, stores: Stores, run: Run
) -> None:
    async def stranded(before: str = T1) -> list[StrandedRun]:
        return await database.read(partial(stores.hosts.list_stranded, before, 9))

    async def tell() -> bool:
        return await database.write(partial(stores.hosts.set_told, run.id, "one"))

    assert await stranded() == []
    await bind(database, stores, "one")
    assert await stranded() == [StrandedRun(run.id, run.task_id, SESSION, "one", "")]
    await database.write(partial(stores.hosts.save, HostRow("one", "m", T0)))
    assert [each.seen for each in await stranded()] == [T0]
    assert await stranded(T0) == []
    assert await tell()
    assert not await tell()
    assert await stranded() == []
    await database.write(partial(stores.hosts.renew, "one", T2))
    assert await database.write(partial(stores.hosts.move, SESSION, "", "v2"))
    await bind(database, stores, "one")
    assert [each.run_id for each in await stranded("9")] == [RunId("run-1")]


async def test_the_newest_archive_is_kept_and_moving_makes_it_newer(
    database: Database, stores: Stores, run: Run
) -> None:
    assert run.session_id == SESSION
    get = partial(stores.hosts.get_archive, SESSION)
    assert await database.read(get) is None
    for archive in (ARCHIVE, ARCHIVE._replace(version="v2", sha256="hash-2")):
        await database.write(partial(stores.hosts.save_archive, SESSION, archive))
        assert await database.read(get) == archive
    assert await database.write(partial(stores.hosts.move, SESSION, "two", "v3"))
    assert await database.read(get) == WorkspaceArchive("v3", "hash-2", T1)
    assert await database.read(partial(stores.hosts.get_of_session, SESSION)) == "two"


async def test_an_archive_is_removed_with_the_next_one_and_with_its_session(
    database: Database, stores: Stores
) -> None:
    for number in (1, 2):
        add = partial(stores.files.add_archive, SESSION, f"hash-{number}", 10)
        await database.write(add)
        await database.write(partial(stores.files.replace_archive, SESSION, f"hash-{number}"))
    removals = partial(stores.files.list_removals, "attachment")
    assert await database.read(removals) == ["hash-1"]
    assert await database.read(partial(stores.files.count_bytes, SESSION)) == 0
    await database.write(partial(stores.hosts.save_archive, SESSION, ARCHIVE))
    await database.write(partial(stores.files.release_session, SESSION))
    assert await database.read(removals) == ["hash-1", "hash-2"]
    assert await database.read(partial(stores.hosts.get_archive, SESSION)) is None


async def test_every_host_removes_the_folders_of_a_deleted_session(
    database: Database, stores: Stores
) -> None:
    for name in ("one", "two"):
        await database.write(partial(stores.hosts.save, HostRow(name, name, T0)))
    await database.write(partial(stores.files.release_session, SESSION))
    await database.write(partial(stores.files.end_removal, "workspace", SESSION, "one"))
    for host, expected in (("", [SESSION]), ("one", []), ("two", [SESSION]), ("three", [])):
        removals = partial(stores.files.list_removals, "workspace", host)
        assert await database.read(removals) == expected
