"""The contract of `Database`, on every kind of database."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial

import pytest

from internal.agent.domain.errors import Conflict, StoreError
from internal.agent.domain.ids import SessionId
from internal.agent.domain.tasks import SessionListFilter
from internal.agent.store.database import (
    Batch,
    Database,
    Lookup,
    Read,
    Row,
    Statement,
    Step,
    Write,
)
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, a_session


class Overslept(Exception):
    """Error raised by units of work in these tests."""


async def ids(database: Database, stores: Stores) -> list[str]:
    page = await database.read(
        lambda: stores.sessions.list_page(None, SessionListFilter(), None, 999)
    )
    return sorted(summary.session.id for summary in page.sessions)


def add(stores: Stores, *names: str, then: Exception | None = None) -> Callable[[], Write[str]]:
    def work() -> Write[str]:
        for name in names:
            yield from stores.sessions.add(a_session(name))
        if then is not None:
            raise then
        return names[-1]

    return work


async def test_the_result_of_the_work_is_returned(database: Database, stores: Stores) -> None:
    assert await database.write(add(stores, "a", "b")) == "b"
    assert await ids(database, stores) == ["a", "b"]


async def test_failing_work_is_rolled_back_alone(database: Database, stores: Stores) -> None:
    works = [
        add(stores, "a"),
        add(stores, "b", then=Overslept("late")),
        add(stores, "c"),
        add(stores, "d", "a"),
        add(stores, "e"),
    ]

    async with asyncio.TaskGroup() as tasks:
        jobs = [tasks.create_task(outcome(database.write(work))) for work in works]

    results = [job.result() for job in jobs]
    assert [results[n] for n in (0, 2, 4)] == ["a", "c", "e"]
    assert isinstance(results[1], Overslept)
    assert isinstance(results[3], Conflict)
    assert await ids(database, stores) == ["a", "c", "e"]


async def outcome(writing: object) -> object:
    try:
        return await writing  # type: ignore[misc] # what `write` returns is awaitable
    except (Overslept, StoreError, Conflict) as error:
        return error


async def test_work_is_executed_in_call_order(database: Database, stores: Stores) -> None:
    order: list[int] = []

    def work(number: int) -> Write[None]:
        order.append(number)
        yield from stores.sessions.add(a_session(str(number)))

    async with asyncio.TaskGroup() as tasks:
        for number in range(50):
            tasks.create_task(database.write(partial(work, number)))

    assert order == list(range(50))


async def test_later_work_sees_the_rows_of_earlier_work_in_the_same_commit(
    database: Database, stores: Stores
) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(database.write(add(stores, "a")))
        seen = tasks.create_task(database.write(lambda: stores.sessions.get(SessionId("a"))))

    assert seen.result() is not None


async def test_a_cancelled_caller_does_not_undo_its_work(
    database: Database, stores: Stores
) -> None:
    started, go = threading.Event(), threading.Event()

    def work() -> Write[None]:
        started.set()
        assert go.wait(30)
        yield from stores.sessions.add(a_session("slow"))

    writing = asyncio.create_task(database.write(work))
    queued = asyncio.create_task(database.write(add(stores, "queued")))
    await asyncio.to_thread(started.wait, 30)
    writing.cancel()
    queued.cancel()
    done, _ = await asyncio.wait([writing, queued])
    assert all(task.cancelled() for task in done)
    go.set()

    await database.write(add(stores, "behind"))

    assert await ids(database, stores) == ["behind", "queued", "slow"]


async def test_a_read_sees_one_snapshot(database: Database, stores: Stores) -> None:
    looked, go = threading.Event(), threading.Event()

    def twice() -> Read[tuple[bool, bool]]:
        first = yield from stores.sessions.get(SessionId("a"))
        looked.set()
        assert go.wait(30)
        second = yield from stores.sessions.get(SessionId("a"))
        return first is None, second is None

    reading = asyncio.create_task(database.read(twice))
    await asyncio.to_thread(looked.wait, 30)
    await database.write(add(stores, "a"))
    go.set()

    assert await reading == (True, True)
    assert await ids(database, stores) == ["a"]


SHORT_OR_NOT = pytest.mark.parametrize("is_short", [True, False])


@SHORT_OR_NOT
async def test_a_read_cannot_write(database: Database, stores: Stores, *, is_short: bool) -> None:
    with pytest.raises(StoreError):
        await database.read(add(stores, "a"), is_short=is_short)

    assert await ids(database, stores) == []


@SHORT_OR_NOT
async def test_an_exception_in_a_read_is_raised(
    database: Database, stores: Stores, *, is_short: bool
) -> None:
    def work() -> Read[None]:
        yield from stores.events.get_bounds()
        raise Overslept("late")

    with pytest.raises(Overslept):
        await database.read(work, is_short=is_short)
    assert await ids(database, stores) == [], "the reader goes on"


async def test_work_without_statements(database: Database) -> None:
    def work() -> Write[int]:
        yield from ()
        return 7

    assert await database.write(work) == 7
    assert await database.read(work) == 7
    assert await database.read(work, is_short=True) == 7


async def test_an_invalid_statement_fails_its_work_only(database: Database, stores: Stores) -> None:
    def wrong(statement: Step) -> Write[None]:
        yield from stores.sessions.add(a_session("a"))
        yield statement

    for statement in (
        Statement("insert_message", ("session", None, None, None, None)),
        Batch("insert_message", [("session", None, None, None, None)]),
        Statement("session"),
        Lookup("session", [("a",), ()]),
    ):
        with pytest.raises(StoreError):
            await database.write(partial(wrong, statement))
    with pytest.raises(KeyError):
        await database.write(lambda: wrong(Statement("no_such_query")))

    assert await ids(database, stores) == []


async def test_a_batch_returns_no_rows(database: Database) -> None:
    def work() -> Write[object]:
        return (
            yield Batch(
                "insert_session",
                [
                    (name, "web", "local", T0, T0, "", "", False, False, "", "", "")
                    for name in ("a", "b")
                ],
            )
        )

    assert await database.write(work) == []


async def test_a_lookup_returns_the_rows_of_all_values_in_order(
    database: Database, stores: Stores
) -> None:
    for name in ("a", "b", "c"):
        await database.write(add(stores, name))

    def work() -> Read[list[Row]]:
        return (yield Lookup("session", [("c",), ("none",), ("a",), ("c",)]))

    def nothing() -> Read[list[Row]]:
        return (yield Lookup("session", []))

    assert [row[0] for row in await database.read(work)] == ["c", "a", "c"]
    assert [row[0] for row in await database.write(work)] == ["c", "a", "c"]
    assert await database.read(nothing) == []
