"""Run displays: one owner at a time."""

from functools import partial

from internal.agent.domain.chats import RunDisplay
from internal.agent.domain.ids import RunId
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, T1, T2, T3

CHANNEL = "lark:app"
RUN = RunId("run-1")


async def test_a_run_display_has_one_owner(database: Database, stores: Stores) -> None:
    async def claim(owner: str, now: str, until: str = T2) -> RunDisplay | None:
        return await database.write(
            lambda: stores.run_displays.claim(RUN, CHANNEL, owner, lease_until=until, now=now)
        )

    assert await claim("one", T0) == RunDisplay(RUN, 0, "")
    assert await claim("two", T1) is None
    shown = RunDisplay(RUN, 7, '{"card": "om_1"}')
    assert await database.write(
        lambda: stores.run_displays.save(shown, CHANNEL, "one", lease_until=T2)
    )
    assert not await database.write(
        lambda: stores.run_displays.save(shown, CHANNEL, "two", lease_until=T2)
    )
    assert await claim("one", T1) == shown
    assert await claim("two", T3, "2027") == shown
    assert not await database.write(
        lambda: stores.run_displays.save(shown, CHANNEL, "one", lease_until=T2)
    )
    assert not await database.write(lambda: stores.run_displays.close(shown, CHANNEL, "one"))
    assert await database.write(lambda: stores.run_displays.close(shown, CHANNEL, "two"))
    assert await claim("two", T3, "2028") is None


async def test_an_abandoned_run_display_is_listed(database: Database, stores: Stores) -> None:
    for run, owner, until in (("run-1", "dead", T1), ("run-2", "alive", T3)):
        claim = partial(
            stores.run_displays.claim, RunId(run), CHANNEL, owner, lease_until=until, now=T0
        )
        await database.write(claim)
    found = await database.read(lambda: stores.run_displays.list_abandoned(CHANNEL, T2))
    assert found == [RunDisplay(RUN, 0, "")]
    assert await database.read(lambda: stores.run_displays.list_abandoned("elsewhere", T2)) == []
