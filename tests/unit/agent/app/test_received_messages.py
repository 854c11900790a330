"""Record of the messages received from an account."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from internal.agent.app.received_messages import ActiveChat, ReceivedMessages
from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from tests.support.store_records import T0


@pytest.fixture
async def database(tmp_path: Path) -> AsyncGenerator[Database]:
    async with open_database(tmp_path / "larkspur.db") as opened:
        yield opened


async def test_unknown_messages_are_those_that_the_account_did_not_receive(
    database: Database,
) -> None:
    stores = Stores()
    row = InboundMessage("lark", "a", "om_1", "oc_1", "lark:a:ou_1", '{"text": "hi"}', T0)
    received = ReceivedMessages(database, stores, "lark", "a")
    await database.write(partial(stores.inbox.accept, row))
    assert await received.find_unknown(["om_1", "om_2"]) == {"om_2"}
    other = ReceivedMessages(database, stores, "lark", "b")
    assert await other.find_unknown(["om_1"]) == {"om_1"}
    assert await received.list_active_chats(9, messages=9) == []
    assign = partial(stores.inbox.assign, row, SessionId("s"), RunId("r"), steer=False)
    await database.write(assign)
    [chat] = await received.list_active_chats(9, messages=9)
    assert chat == ActiveChat("oc_1", chat.newest)
    assert [each.message_id for each in chat.newest] == ["om_1"]


async def test_the_time_of_a_check_is_kept(database: Database) -> None:
    received = ReceivedMessages(database, Stores(), "lark", "a")
    assert await received.get_checked() is None
    checked = datetime(2026, 1, 31, 8, tzinfo=UTC)
    await received.save_checked(checked)
    assert await received.get_checked() == checked
