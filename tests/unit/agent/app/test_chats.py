"""The settings and the current session of a chat."""

from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import pytest

from internal.agent.app.chats import Chats
from internal.agent.domain.chats import ChatSettings
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from tests.support.store_records import T0, a_run, a_session, a_task


@pytest.fixture
async def chats(tmp_path: Path) -> AsyncGenerator[Chats]:
    stores = Stores()
    async with open_database(tmp_path / "larkspur.db") as database:
        session = a_session(channel="echo", scope="echo-1")
        await database.write(partial(stores.sessions.add, session))
        await database.write(partial(stores.tasks.add, a_task(), None))
        await database.write(partial(stores.runs.add, a_run(), T0))
        yield Chats(database, stores)


async def test_settings_are_replaced(chats: Chats) -> None:
    assert await chats.get_settings("echo:a:1") == ChatSettings()
    await chats.save_settings("echo:a:1", ChatSettings("always", "big-1"))
    assert await chats.get_settings("echo:a:1") == ChatSettings("always", "big-1")
    assert await chats.get_settings("echo:a:2") == ChatSettings()


async def test_the_current_session_and_its_unfinished_runs(chats: Chats) -> None:
    session = await chats.get_session("echo", "echo-1")
    assert session is not None
    [(run, task)] = await chats.list_unfinished("echo", "echo-1")
    assert (run.id, task.instruction) == ("run-1", "count")
    assert await chats.get_session("echo", "echo-2") is None
    assert await chats.list_unfinished("echo", "echo-2") == []


@pytest.mark.parametrize(("name", "found"), [("run-1", True), ("task-1", True), ("run-9", False)])
async def test_a_run_is_found_by_its_id_or_its_task(chats: Chats, name: str, found: bool) -> None:
    assert (await chats.find_run(name) is not None) is found
