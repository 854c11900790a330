"""Usage and its sums."""

from collections.abc import Callable
from functools import partial

from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.tasks import Session
from internal.agent.domain.usage import Usage, UsageKey, UsageSum
from internal.agent.store.database import Database, Row
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, T1


async def test_usage_is_stored(
    database: Database, stores: Stores, select: Callable[[str], list[Row]]
) -> None:
    session, run = SessionId("session-1"), RunId("run-1")
    for model, cost, now in (("big", 0.5, T0), ("unknown", None, T0), ("big", 0.25, T1)):
        await database.write(
            partial(
                stores.usage.add, session, run, model, usage=Usage(1, 2, 3, 4), cost=cost, now=now
            )
        )

    used = "input_tokens, output_tokens, cache_read_tokens, cache_write_tokens"
    rows = select(f"select model, cost, recorded, {used} from usage order by number")  # noqa: S608 - our own names
    assert rows == [
        ("big", 0.5, T0, 1, 2, 3, 4),
        ("unknown", None, T0, 1, 2, 3, 4),
        ("big", 0.25, T1, 1, 2, 3, 4),
    ]


async def test_sums_by_day_session_and_model(database: Database, stores: Stores) -> None:
    mine, other, run = SessionId("session-1"), SessionId("session-2"), RunId("run-1")
    for session, owner in ((mine, "me"), (other, "you")):
        kept = Session(session, "", "cli", owner, T0, T0)
        await database.write(partial(stores.sessions.add, kept))
    for session, model, cost, now in (
        (mine, "big", 0.5, "2026-01-31T08:00:00.000Z"),
        (mine, "free", None, "2026-02-01T08:00:00.000Z"),
        (other, "big", 0.25, "2026-02-01T09:00:00.000Z"),
    ):
        await database.write(
            partial(
                stores.usage.add, session, run, model, usage=Usage(1, 2, 3, 4), cost=cost, now=now
            )
        )

    async def sums(by: UsageKey, session: SessionId | None, who: str | None) -> list[UsageSum]:
        return await database.read(partial(stores.usage.sum_by, by, session, who, limit=50))

    one, two = Usage(1, 2, 3, 4), Usage(2, 4, 6, 8)
    assert await sums("day", None, None) == [
        UsageSum("2026-02-01", two, 0.25),
        UsageSum("2026-01-31", one, 0.5),
    ]
    assert await sums("session", None, None) == [
        UsageSum(other, one, 0.25),
        UsageSum(mine, two, 0.5),
    ]
    assert await sums("model", mine, None) == [
        UsageSum("free", one, None),
        UsageSum("big", one, 0.5),
    ]
    assert await sums("model", None, "you") == [UsageSum("big", one, 0.25)]
    assert await database.read(partial(stores.usage.sum_by, "model", None, None, limit=1)) == [
        UsageSum("big", two, 0.75)
    ]
