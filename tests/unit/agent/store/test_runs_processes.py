"""The processes of a database, and who leads."""

from functools import partial

from internal.agent.store.database import Database
from internal.agent.store.runs import LeaderFence, LeadershipRow, ProcessEntry
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, T1

ONE = ProcessEntry("one", "gateway", "host", 1, "1.0", T1, T0)
TWO = ProcessEntry("two", "worker", "host", 2, "1.0", T0, T0)


async def test_processes_are_listed_by_their_start(database: Database, stores: Stores) -> None:
    processes = stores.processes
    for entry in (ONE, TWO, ONE._replace(lease_until=T1)):
        await database.write(partial(processes.add, entry))
    assert await database.read(processes.list_all) == [TWO, ONE._replace(lease_until=T1)]
    await database.write(partial(processes.renew, "nobody", T1))
    await database.write(partial(processes.renew, "two", T1))
    await database.write(partial(processes.remove_ended, TWO))  # it was renewed since
    await database.write(partial(processes.remove, "one"))
    assert await database.read(processes.list_all) == [TWO._replace(lease_until=T1)]
    await database.write(partial(processes.remove_ended, TWO._replace(lease_until=T1)))
    assert await database.read(processes.list_all) == []


async def test_one_owner_leads_at_a_time(database: Database, stores: Stores) -> None:
    leaderships = stores.leaderships
    get = partial(leaderships.get, "lark:a")
    assert await database.read(get) is None
    claimed = await database.write(partial(leaderships.claim, "lark:a", "one", T0, None))
    assert claimed == LeaderFence("lark:a", 1)
    assert not await database.write(partial(leaderships.claim, "lark:a", "two", T0, None))
    seen = await database.read(get)
    assert seen == LeadershipRow("one", 1, T0)

    await database.write(partial(leaderships.renew, "one", T1))
    late = partial(leaderships.claim, "lark:a", "two", T0, seen)
    assert not await database.write(late), "it was renewed since"
    seen = await database.read(get)
    assert await database.write(partial(leaderships.claim, "lark:a", "two", T1, seen)) == (
        "lark:a",
        2,
    )
    await database.write(partial(leaderships.release, claimed))
    assert await database.read(get) == LeadershipRow("two", 2, T1)
    await database.write(leaderships.release_all)
    assert await database.read(get) == LeadershipRow("", 3, "")
