"""Lessons about model servers."""

from functools import partial

from msgspec.structs import replace

from internal.agent.domain.lessons import Lesson
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, T1

BLIND = Lesson(
    provider="openai",
    address="http://127.0.0.1:8000/v1",
    model="qwen",
    kind="picture",
    change={"pictures": False},
    words="qwen is not a multimodal model\0",
    version="vllm/0.9",
    learned=T0,
)
SMALL = replace(BLIND, model="", kind="body_size", change={"max_body_bytes": 1_000_000}, words="")


async def test_a_lesson_is_returned_as_it_was_saved(database: Database, stores: Stores) -> None:
    assert await database.read(stores.lessons.list_all) == []
    await database.write(partial(stores.lessons.save, [BLIND, SMALL]))

    stored = replace(BLIND, words="qwen is not a multimodal model\ufffd")  # PostgreSQL has no NUL
    assert await database.read(stores.lessons.list_all) == [SMALL, stored]


async def test_a_newer_lesson_about_the_same_replaces_the_older_one(
    database: Database, stores: Stores
) -> None:
    smaller = replace(SMALL, change={"max_body_bytes": 500_000}, learned=T1)
    for each in (SMALL, smaller):
        await database.write(partial(stores.lessons.save, [each]))

    assert await database.read(stores.lessons.list_all) == [smaller]


async def test_removed_lessons_are_counted_and_others_stay(
    database: Database, stores: Stores
) -> None:
    await database.write(partial(stores.lessons.save, [BLIND, SMALL]))
    remove = partial(stores.lessons.remove, [BLIND.key, BLIND.key._replace(model="other")])

    assert await database.write(remove) == 1
    assert await database.read(stores.lessons.list_all) == [SMALL]
