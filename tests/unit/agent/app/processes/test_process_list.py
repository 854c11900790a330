"""The list of processes: the work of each, and the ended ones."""

from collections.abc import AsyncGenerator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from internal.agent.app.processes.process_list import ProcessList
from internal.agent.domain.errors import Forbidden
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.agent.ports.runtime import ProcessIdentity
from internal.agent.store.database import Database
from internal.agent.store.runs import ProcessEntry, Role
from internal.agent.store.stores import Stores
from internal.observability.processes import SystemProcesses
from internal.storage.database_url import open_database
from tests.support.movable_clock import MovableClock
from tests.support.store_records import a_run, add_running_run

PROCESSES = SystemProcesses()
HERE = PROCESSES.current("gateway-1")
ELSEWHERE = HERE._replace(name="worker-1", namespace="another", boot="another", host="build-2")
LEASE = 30.0


class Parts:
    """A list, and the database that it is of."""

    def __init__(self, database: Database) -> None:
        self.database, self.stores, self.clock = database, Stores(), MovableClock()
        self.list = ProcessList(
            database, self.stores, self.clock, processes=PROCESSES, lease_seconds=LEASE
        )

    def at(self, seconds: float) -> str:
        return rfc3339(self.clock.now() + timedelta(seconds=seconds))

    async def add(self, process: ProcessIdentity, role: Role, lease: str) -> None:
        entry = ProcessEntry(str(process), role, process.host, process.pid, "1.0", "2026", lease)
        await self.database.write(partial(self.stores.processes.add, entry))


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncGenerator[Parts]:
    async with open_database(tmp_path / "larkspur.db") as database:
        yield Parts(database)


async def test_a_process_is_shown_with_its_runs_and_what_it_leads(parts: Parts) -> None:
    await parts.add(HERE, "gateway", parts.at(LEASE - 4))
    await add_running_run(parts.database, parts.stores, a_run(), str(HERE))
    for name in ("webhooks", "lark:cli_a1"):
        lead = partial(parts.stores.leaderships.claim, name, str(HERE), parts.at(9), None)
        await parts.database.write(lead)
    [view] = await parts.list.list_all(LOCAL_OWNER)
    assert (view.role, view.pid, view.version) == ("gateway", HERE.pid, "1.0")
    assert (view.runs, view.leads) == (1, ("lark:cli_a1", "webhooks"))
    assert not view.has_ended
    assert 4 <= view.lease_age_seconds < 5
    assert view.name == f"gateway {HERE.pid} on {HERE.host}"
    assert view.detail == (
        "larkspur 1.0, 1 active run, leads lark:cli_a1 and webhooks, lease renewed 4 s ago"
    )


async def test_a_process_has_ended_when_its_lease_is_over(parts: Parts) -> None:
    await parts.add(ELSEWHERE, "worker", parts.at(1.4))
    [view] = await parts.list.read()
    assert not view.has_ended
    assert view.detail == "larkspur 1.0, 0 active runs, lease renewed 29 s ago"
    parts.clock.advance(timedelta(seconds=3))
    [view] = await parts.list.read()
    assert view.has_ended
    assert view.detail == "larkspur 1.0, 0 active runs, ended, lease renewed 32 s ago"


async def test_a_dead_process_of_this_machine_has_ended_before_its_lease(parts: Parts) -> None:
    await parts.add(HERE._replace(start="1"), "channels", parts.at(LEASE))
    [view] = await parts.list.read()
    assert view.has_ended
    assert view.name.startswith("gateway without runs ")


async def test_only_the_owner_reads_the_list(parts: Parts) -> None:
    with pytest.raises(Forbidden):
        await parts.list.list_all(Principal("lark:mei", "Mei", frozenset({"talk"})))
