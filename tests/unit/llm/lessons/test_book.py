"""Lessons that processes share by a database."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest

from internal.agent.domain.errors import StoreUnavailable
from internal.agent.domain.lessons import Lesson
from internal.agent.store.database import Database, Read, Write
from internal.agent.store.stores import Stores
from internal.llm.lessons.book import LessonBook, server_at
from internal.llm.lessons.changes import apply_lessons
from internal.model_providers.dialect import Dialect
from internal.storage.database_url import open_database
from tests.support.database_wrapper import DatabaseWrapper

T = TypeVar("T")
SERVER = server_at("openai", "http://me:secret@127.0.0.1:8000/v1/")


def lesson(kind: str = "picture", **fields: Any) -> Lesson:
    return Lesson(**{**SERVER._asdict(), "model": "m", "kind": kind, **fields})


async def learned(book: LessonBook, *lessons: Lesson) -> Sequence[Lesson]:
    await book.learn(lessons)
    return book.list_of(SERVER, "m")


async def test_a_lesson_has_the_date_on_which_it_was_learned() -> None:
    book = LessonBook(lambda: datetime(2026, 11, 28, tzinfo=UTC))
    [known] = await learned(book, lesson())
    assert known.learned == "2026-11-28T00:00:00.000Z"


async def test_an_address_has_no_password() -> None:
    assert SERVER.address == "http://127.0.0.1:8000/v1"


async def test_lessons_outlive_the_process_that_learned_them(
    database: Database, stores: Stores
) -> None:
    async with (one := LessonBook()).stored_in(database, stores):
        await learned(one, lesson(change={"pictures": False}))
    async with (two := LessonBook()).stored_in(database, stores):
        assert two.list_of(SERVER, "m") == []
        await two.refresh()
        assert [each.change for each in two.list_of(SERVER, "m")] == [{"pictures": False}]


async def test_lessons_of_a_server_are_forgotten_when_its_version_changes(
    database: Database, stores: Stores
) -> None:
    async with (book := LessonBook()).stored_in(database, stores):
        kept = lesson("field", name="temperature")
        await learned(book, lesson(version="vllm/0.8"), kept)
        await book.observe_version(SERVER, "")
        await book.observe_version(SERVER, "vllm/0.8")
        assert len(book.list_of(SERVER, "m")) == 2
        await book.observe_version(SERVER, "vllm/0.9")
        assert [each.kind for each in book.list_of(SERVER, "m")] == ["field"]
        stored = await database.read(stores.lessons.list_all)
        assert [each.kind for each in stored] == ["field"]


async def test_what_another_process_forgot_is_forgotten(database: Database, stores: Stores) -> None:
    async with (
        (one := LessonBook()).stored_in(database, stores),
        (two := LessonBook()).stored_in(database, stores),
    ):
        [known] = await learned(one, lesson())
        await two.reread()
        await two.learn((), [known.key])
        assert await one.reread()
        assert one.list_of(SERVER, "m") == []


async def test_two_processes_use_the_lessons_of_each_other(address: str, stores: Stores) -> None:
    async with open_database(address) as here, open_database(address) as there:
        one, two = LessonBook(read_seconds=0.0), LessonBook(read_seconds=0.0)
        async with one.stored_in(here, stores), two.stored_in(there, stores):
            await two.refresh()
            heard = asyncio.Event()
            with listening(there, heard.set):
                await connected(here, there)
                heard.clear()
                await learned(one, lesson())
                async with asyncio.timeout(30):
                    while not two.list_of(SERVER, "m"):
                        await heard.wait()
                        heard.clear()
                        await two.refresh()  # as before each request


async def connected(here: Database, there: Database) -> None:
    """Wait until messages of one database arrive at the other: they are lost before."""
    if here.messages is None or there.messages is None:
        return
    arrived = asyncio.Event()
    with there.messages.listen(lambda _: arrived.set()):
        async with asyncio.timeout(30):
            while not arrived.is_set():
                here.messages.send("anybody there?")
                with suppress(TimeoutError):
                    await asyncio.wait_for(arrived.wait(), 0.1)


def listening(database: Database, hear: Callable[[], None]) -> AbstractContextManager[None]:
    """Call back when another process has committed, or sends a message where it can."""
    if database.messages is None:
        return database.watch(hear)
    return database.messages.listen(lambda _: hear())


async def test_nothing_is_read_or_written_while_nothing_was_refused(
    database: Database, stores: Stores
) -> None:
    counted = _CountedDatabase(database)
    async with (book := LessonBook(read_seconds=0.0)).stored_in(counted, stores):
        for _ in range(9):
            await book.refresh()
            await book.observe_version(SERVER, "vllm/0.9")
    assert counted.count == 1  # at the first request


class _CountedDatabase(DatabaseWrapper):
    count = 0

    async def read(self, work: Callable[[], Read[T]], /, *, is_short: bool = False) -> T:
        self.count += 1
        return await super().read(work, is_short=is_short)


class _BrokenDatabase(DatabaseWrapper):
    async def write(self, work: Callable[[], Write[T]], /) -> T:
        raise StoreUnavailable("disk full")


def test_what_a_newer_version_learned_changes_nothing() -> None:
    lessons = [
        lesson(change={"hologram": False}),
        lesson("field", change={"limit_field": "max_words"}),
        lesson("tool_schema", name="mcp__a__b", change={"reason": 1}),
    ]
    dialect = Dialect(withheld_tools=frozenset({"mcp__a__b"}))
    assert apply_lessons(Dialect(), lessons) == dialect


async def test_a_lesson_that_cannot_be_stored_is_kept_in_memory(
    database: Database, stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    async with (book := LessonBook()).stored_in(_BrokenDatabase(database), stores):
        assert len(await learned(book, lesson())) == 1
    assert "disk full" in str([record.__dict__ for record in caplog.records])
