"""Chat settings."""

from functools import partial

from internal.agent.domain.chats import ChatSettings
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import CLEANED, HOSTILE

CHAT, OTHER = "lark:cli_a:oc_1", "lark:cli_a:oc_2"


async def test_chat_settings_are_replaced(database: Database, stores: Stores) -> None:
    assert await database.read(partial(stores.chats.get_settings, CHAT)) == ChatSettings()
    for settings in (
        ChatSettings("always"),
        ChatSettings("off", HOSTILE),
        ChatSettings(None, "claude-y"),
    ):
        await database.write(partial(stores.chats.save_settings, CHAT, settings))
        stored = await database.read(partial(stores.chats.get_settings, CHAT))
        assert stored == settings._replace(
            model=CLEANED if settings.model == HOSTILE else settings.model
        )
    assert await database.read(partial(stores.chats.get_settings, OTHER)) == ChatSettings()
