"""Chat settings, and the question of a sent message."""

from functools import partial

import msgspec

from internal.agent.domain.chats import ChatSettings, OutgoingMessage
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_facts import HARMLESS, HOSTILE, T0, T1

CHAT, OTHER = "lark:cli_a:oc_1", "lark:cli_a:oc_2"


async def test_chat_settings_are_replaced(database: Database, stores: Stores) -> None:
    assert await database.read(partial(stores.chats.get_settings, CHAT)) == ChatSettings()
    for wish in (
        ChatSettings("always"),
        ChatSettings("off", HOSTILE),
        ChatSettings(None, "claude-y"),
    ):
        await database.write(partial(stores.chats.save_settings, CHAT, wish))
        kept = await database.read(partial(stores.chats.get_settings, CHAT))
        assert kept == wish._replace(model=HARMLESS if wish.model == HOSTILE else wish.model)
    assert await database.read(partial(stores.chats.get_settings, OTHER)) == ChatSettings()


async def test_the_question_of_a_sent_message_is_found(database: Database, stores: Stores) -> None:
    question = OutgoingMessage(
        "question-1:asked", "lark", "cli_a", "oc_1", "om_0", "May I?", question_id="question-1"
    )
    answer = msgspec.structs.replace(question, key="run-1:answer", question_id="")
    for number, outgoing in enumerate((question, answer), 1):
        await database.write(partial(stores.outbox.add, outgoing, T0))
        assert await database.read(partial(stores.outbox.find_question, f"om_{number}")) == ""
        await database.write(partial(stores.outbox.mark_sent, number, f"om_{number}", T1))
    assert await database.read(partial(stores.outbox.find_question, "om_1")) == "question-1"
    assert await database.read(partial(stores.outbox.find_question, "om_2")) == ""
    assert await database.read(partial(stores.outbox.find_question, "")) == ""
