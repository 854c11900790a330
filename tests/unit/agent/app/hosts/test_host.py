"""Binding of sessions to hosts."""

from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from internal.agent.app.hosts.host import ONLY_HOST, Host, Location, WorkspaceUse
from internal.agent.domain.delegation.subtask import Subtask
from internal.agent.domain.errors import LeaseLost, RunHandedOver
from internal.agent.domain.ids import RunId, TaskId
from internal.agent.domain.tasks import Attachment, Run, RunSpec
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from tests.support.store_records import a_run, a_session, a_task, add_running_run

OWN, NAMED = RunSpec(), RunSpec(workspace="/srv/project")
SHARED = RunSpec(workspace="/mnt/team/project")
APART = RunSpec(workspace="/srv/project", own_folder=True)


@pytest.mark.parametrize(
    ("location", "spec", "binds", "archives"),
    [
        ("host", OWN, False, False),
        ("host", APART, True, False),
        ("host", NAMED, True, False),
        ("shared", OWN, False, False),
        ("shared", NAMED, True, False),
        ("shared", SHARED, False, False),
        ("shared", RunSpec(workspace="/mnt/team/../project"), True, False),
        ("shared", RunSpec(workspace="/mnt/team-2"), True, False),
        ("shared", APART, False, False),
        ("archive", OWN, True, True),
        ("archive", NAMED, True, False),
        ("archive", SHARED, True, False),
        ("archive", APART, True, True),
    ],
)
def test_a_host_is_bound_to_the_folders_that_others_do_not_have(
    location: Location, spec: RunSpec, binds: bool, archives: bool
) -> None:
    host, task = Host("one", location, "/mnt/team"), a_task(spec=spec)
    assert (host.binds(task), host.archives(task)) == (binds, archives)


def test_a_session_with_files_from_the_beginning_is_bound_at_once() -> None:
    host, file = Host("one", "host", "/srv"), Attachment("a.txt", "text/plain", "a", "0" * 64, 1)
    assert host.binds(a_task(attachments=(file,)))
    assert Host("one", "host", "/srv", has_hooks=True).binds(a_task())
    place = Subtask(TaskId("task-0"), RunId("run-0"), "call", 1, 1, "", "", workspace="worktree")
    assert host.binds(a_task(), place)
    assert not host.binds(a_task(), msgspec.structs.replace(place, workspace="shared"))


def test_the_only_host_archives_nothing() -> None:
    assert not ONLY_HOST.archives(a_task())
    assert not Host("", "archive", "/mnt/team").archives(a_task())


STORES = Stores()


@pytest.fixture
async def database(tmp_path: Path) -> AsyncGenerator[Database]:
    async with open_database(tmp_path / "larkspur.db") as opened:
        await opened.write(partial(STORES.sessions.add, a_session()))
        yield opened


async def host_of(database: Database, run: Run) -> str:
    return await database.read(partial(STORES.hosts.get_of_session, run.session_id))


def use_of(database: Database, host: Host, run: Run, **fields: Any) -> WorkspaceUse:
    return WorkspaceUse(host, run, a_task(**fields), database=database, stores=STORES)


async def test_the_first_use_binds_the_session(database: Database) -> None:
    run = await add_running_run(database, STORES, a_run())
    use = use_of(database, Host("one"), run)
    assert await host_of(database, run) == ""
    await use.begin()
    assert await host_of(database, run) == "one"
    await use_of(database, Host("one"), run).begin()  # the files are here


async def test_a_run_is_handed_over_to_the_host_that_used_files_first(database: Database) -> None:
    run = await add_running_run(database, STORES, a_run())
    await database.write(partial(STORES.hosts.bind, run.session_id, "two"))
    with pytest.raises(RunHandedOver, match="are on host two"):
        await use_of(database, Host("one"), run).begin()
    assert await host_of(database, run) == "two"


async def test_a_terminal_works_where_it_is(database: Database) -> None:
    run = await add_running_run(database, STORES, a_run(terminal=True, owner="worker"))
    await use_of(database, Host("one"), run).begin()
    assert await host_of(database, run) == "one"
    await use_of(database, Host("two"), run).begin()
    assert await host_of(database, run) == "one"


async def test_a_session_that_the_claim_bound_is_not_bound_again(database: Database) -> None:
    run = await add_running_run(database, STORES, a_run())
    await use_of(database, Host("one"), run, spec=NAMED).begin()
    assert await host_of(database, run) == ""


async def test_a_run_that_another_process_took_over_binds_nothing(database: Database) -> None:
    run = await add_running_run(database, STORES, a_run())
    older = msgspec.structs.replace(run, fence=run.fence - 1)
    with pytest.raises(LeaseLost):
        await use_of(database, Host("one"), older).begin()
    assert await host_of(database, run) == ""


@pytest.mark.parametrize("host", [ONLY_HOST, Host("one", "shared"), Host("one", "archive")])
async def test_other_locations_bind_nothing_at_the_first_use(
    database: Database, host: Host
) -> None:
    run = await add_running_run(database, STORES, a_run())
    await use_of(database, host, run).begin()
    assert await host_of(database, run) == ""
