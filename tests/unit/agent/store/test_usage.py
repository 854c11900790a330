"""Usage and its sums."""

from collections.abc import Callable
from functools import partial

from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.tasks import Run, Session
from internal.agent.domain.usage import PersonUsage, Usage, UsageKey, UsageSum
from internal.agent.store.database import Database, Row
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, T1


def run_of(session: str, number: int = 1) -> Run:
    task = TaskId(f"task-{number}")
    return Run(RunId(f"run-{session}-{number}"), task, SessionId(session), "lane", "running", 1, 0)


async def test_a_run_has_one_row_for_each_model(
    database: Database, stores: Stores, select: Callable[[str], list[Row]]
) -> None:
    save, run = stores.usage.save, run_of("session-1")
    for model, cost, now in (("big", 0.5, T0), ("unknown", None, T0), ("big", 0.75, T1)):
        used = Usage(1, 2, 3, 4 if now == T0 else 5)
        await database.write(partial(save, run, "me", model, usage=used, cost=cost, now=now))

    columns = "input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, principal"
    rows = select(f"select model, cost, recorded, {columns} from usage order by number")  # noqa: S608 - our own names
    assert rows == [("big", 0.75, T1, 1, 2, 3, 5, "me"), ("unknown", None, T0, 1, 2, 3, 4, "me")]


async def test_a_request_after_a_run_is_added_to_its_usage(
    database: Database, stores: Stores, select: Callable[[str], list[Row]]
) -> None:
    run, used = run_of("session-1"), Usage(1, 2, 3, 4)
    for write, model, cost in (
        (stores.usage.save, "big", 0.5),
        (stores.usage.add, "big", 0.25),
        (stores.usage.add, "small", None),
    ):
        await database.write(partial(write, run, "me", model, usage=used, cost=cost, now=T0))

    columns = "model, cost, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens"
    rows = select(f"select {columns} from usage order by number")  # noqa: S608 - our own names
    assert rows == [("big", 0.75, 2, 4, 6, 8), ("small", None, 1, 2, 3, 4)]


async def test_requests_without_a_run_have_one_row_a_day_and_no_session(
    database: Database, stores: Stores, select: Callable[[str], list[Row]]
) -> None:
    later = "2026-02-01T00:00:00.000Z"
    for principal, now in (("me", T0), ("me", T0), ("you", T0), ("me", later)):
        add = partial(stores.usage.add_of_person, principal, "small", usage=Usage(1, 2, 3, 4))
        await database.write(partial(add, cost=0.5, now=now))
    assert select("select count(*) from usage") == [(3,)]

    async def sums(key: UsageKey) -> list[UsageSum]:
        return await database.read(partial(stores.usage.sum_by, key, None, None, limit=9))

    assert await sums("model") == [UsageSum("small", Usage(4, 8, 12, 16), 2.0)]
    assert [(each.key, each.cost) for each in await sums("day")] == [
        (later[:10], 0.5),
        (T0[:10], 1.5),
    ]
    assert await sums("session") == []
    used = await database.read(partial(stores.usage.get_of_person, "me", T0[:10]))
    assert used.cost == 1.5

    await database.write(partial(stores.usage.remove_old, 0, 9, later))
    assert await sums("model") == [UsageSum("small", Usage(1, 2, 3, 4), 0.5)]


async def test_the_usage_of_a_person_is_summed_since_a_day(
    database: Database, stores: Stores
) -> None:
    later = "2026-02-01T00:00:00.000Z"
    uses = (("me", "big", 0.5, T0), ("me", "big", 0.25, later), ("me", "unknown", None, later))
    for number, (principal, model, cost, now) in enumerate((*uses, ("you", "big", 9.0, later))):
        run = run_of("session-1", number)
        save = partial(stores.usage.save, run, principal, model, usage=Usage(1, 2, 3, 4), cost=cost)
        await database.write(partial(save, now=now))

    async def used(day: str) -> PersonUsage:
        return await database.read(partial(stores.usage.get_of_person, "me", day))

    assert await used("2026-01-31") == PersonUsage(0.75, 10)
    assert await used("2026-02-01") == PersonUsage(0.25, 10)
    assert await used("2026-02-02") == PersonUsage(0.0, 0)


async def test_sums_by_day_session_and_model(database: Database, stores: Stores) -> None:
    mine, other = SessionId("session-1"), SessionId("session-2")
    for session, owner in ((mine, "me"), (other, "you")):
        kept = Session(session, "", "cli", owner, T0, T0)
        await database.write(partial(stores.sessions.add, kept))
    for session, model, cost, now in (
        (mine, "big", 0.5, "2026-01-31T08:00:00.000Z"),
        (mine, "free", None, "2026-02-01T08:00:00.000Z"),
        (other, "big", 0.25, "2026-02-01T09:00:00.000Z"),
    ):
        save = partial(stores.usage.save, run_of(session), "me", model, cost=cost, now=now)
        await database.write(partial(save, usage=Usage(1, 2, 3, 4)))

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
