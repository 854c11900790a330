"""Counts of repaired calls."""

from functools import partial

from internal.agent.store.call_repairs import CallRepairs
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, T1


async def test_the_repairs_of_replies_add_up(database: Database, stores: Stores) -> None:
    add = stores.call_repairs.add
    await database.write(partial(add, "openai", "qwen", ["null", "tool_name", "null"], now=T0))
    await database.write(partial(add, "openai", "qwen", ["null"], now=T1))
    await database.write(partial(add, "openai", "glm", ["null"], now=T1))

    assert await database.read(stores.call_repairs.list_all) == [
        CallRepairs("openai", "glm", "null", 1, T1),
        CallRepairs("openai", "qwen", "null", 3, T1),
        CallRepairs("openai", "qwen", "tool_name", 1, T0),
    ]
