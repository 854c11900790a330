"""Election of one of two processes to do the work."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from internal.agent.app.background_task import background_task
from internal.agent.app.processes.leadership import Leadership
from internal.agent.app.supervision import Supervisor
from internal.agent.domain.ids import RunId
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.observability.clock import SystemClock
from tests.support.leaderships import make_leaderships

ACCOUNT = "lark:a"


class Process:
    """A process that works while it leads."""

    def __init__(self, database: Database, stores: Stores, owner: str, seconds: float) -> None:
        made = make_leaderships(database, stores, owner=owner, seconds=seconds)
        self.leadership: Leadership = made.of_account(ACCOUNT)
        self.works = asyncio.Event()
        self.rests = asyncio.Event()

    async def work(self) -> None:
        self.rests.clear()
        self.works.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.works.clear()
            self.rests.set()


@asynccontextmanager
async def running(process: Process) -> AsyncGenerator[None]:
    run = process.leadership.run(process.work, Supervisor(SystemClock()))
    async with asyncio.timeout(30), background_task(run):
        yield


async def test_the_second_process_leads_when_the_first_one_leaves(
    database: Database, stores: Stores
) -> None:
    one, two = (Process(database, stores, name, 30.0) for name in ("one", "two"))
    async with running(two):
        await two.works.wait()
        async with running(one):
            assert await two.leadership.is_held()
            assert not one.works.is_set()
    async with running(one):
        await one.works.wait()
        assert not await two.leadership.is_held()
        assert two.leadership.held is None


@pytest.mark.first_rows(1)
async def test_a_silent_leader_is_replaced_and_its_displays_are_free(
    database: Database, stores: Stores
) -> None:
    displays = stores.run_displays
    show = partial(displays.claim, RunId("r"), ACCOUNT, "one", lease_until="9999", now="2000")
    shown = await database.write(show)
    assert shown is not None
    one, two = (Process(database, stores, name, 0.2) for name in ("one", "two"))
    async with running(one):
        await one.works.wait()  # nobody renews its lease
        async with running(two):
            await two.works.wait()
            await one.rests.wait()
            assert two.leadership.held == (ACCOUNT, 2)
            assert not await database.write(
                partial(displays.save, shown, ACCOUNT, "one", lease_until="9999")
            )


async def test_a_deposed_leader_stops_its_work(database: Database, stores: Stores) -> None:
    one = Process(database, stores, "one", 30.0)
    async with running(one):
        await one.works.wait()
        held = one.leadership.held
        seen = await database.read(partial(stores.leaderships.get, ACCOUNT))
        await database.write(partial(stores.leaderships.claim, ACCOUNT, "two", "9999", seen))
        assert one.leadership.held == held, "it does not know yet"
        assert not await one.leadership.is_held()
        await one.rests.wait()
