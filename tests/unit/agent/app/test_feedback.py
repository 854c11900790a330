"""Feedback on the answers of tasks by reactions on messages."""

from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import pytest
from msgspec import structs

from internal.agent.app.feedback import AnswerRating, list_feedback, rate_answer
from internal.agent.domain.chats import InboundMessage, OutgoingMessage
from internal.agent.domain.ids import TaskId
from internal.agent.domain.tasks import Rating
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from tests.support.store_records import T0, a_run, a_session, a_task


class Answered:
    """A task with its answer sent as the message `m1`."""

    def __init__(self, database: Database, stores: Stores) -> None:
        self.database, self.stores, self._count = database, stores, 0

    async def rate(
        self, rating: Rating | None, who: str = "mei", message_id: str = "m1"
    ) -> TaskId | None:
        self._count += 1
        row = InboundMessage("echo", "a", f"r{self._count}", "m1", who, "{}", T0)
        await self.database.write(partial(self.stores.inbox.accept, row))
        given = AnswerRating(message_id, who, rating, T0, row)
        task_id, events = await self.database.write(
            partial(rate_answer, self.stores, given, now=T0)
        )
        assert bool(events) == (task_id is not None)
        state = await self.database.read(
            partial(self.stores.inbox.get_state, "echo", "a", row.message_id)
        )
        assert state is not None
        assert state.status == "handled"
        return task_id

    async def ratings(self) -> list[tuple[Rating | None, str, str]]:
        found = await self.database.read(partial(list_feedback, self.stores, 9))
        return [(each.rating, each.comment, each.by) for each in found]


@pytest.fixture
async def answered(tmp_path: Path) -> AsyncGenerator[Answered]:
    stores = Stores()
    async with open_database(tmp_path / "larkspur.db") as database:
        await database.write(partial(stores.sessions.add, a_session(channel="echo")))
        task = structs.replace(a_task(), status="completed", stop_reason="final_answer")
        await database.write(partial(stores.tasks.add, task, None))
        await database.write(partial(stores.runs.add, a_run(), T0))
        reply = OutgoingMessage("run-1:answer", "echo", "a", "c", "m0", "42", run_id="run-1")
        await database.write(partial(stores.outbox.add, reply, T0))
        await database.write(partial(stores.outbox.mark_sent, 1, "m1", T0))
        yield Answered(database, stores)


async def test_only_its_person_takes_a_rating_back(answered: Answered) -> None:
    assert await answered.rate("up") == "task-1"
    assert await answered.rate("up") is None
    assert await answered.rate(None, who="li") is None
    assert await answered.ratings() == [("up", "", "mei")]
    assert await answered.rate("down", who="li") == "task-1"
    assert await answered.rate(None) is None
    assert await answered.rate(None, who="li") == "task-1"
    assert await answered.ratings() == []


async def test_other_messages_are_not_rated(answered: Answered) -> None:
    assert await answered.rate("up", message_id="m0") is None
    assert await answered.ratings() == []
