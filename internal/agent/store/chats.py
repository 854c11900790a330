"""Settings that the people of a chat chose for its tasks."""

from internal.agent.domain.chats import ChatSettings
from internal.agent.store.database import Read, Statement, Write
from internal.agent.store.encoding import storable


class ChatStore:
    """Chat settings."""

    def get_settings(self, chat: str, /) -> Read[ChatSettings]:
        """Return the settings of a chat, empty ones when none are stored."""
        rows = yield Statement("chat_settings", (chat,))
        return ChatSettings(rows[0][0] or None, rows[0][1]) if rows else ChatSettings()

    def save_settings(self, chat: str, settings: ChatSettings, /) -> Write[None]:
        """Insert or replace the settings of a chat."""
        values = (chat, settings.plan_review or "", storable(settings.model))
        yield Statement("upsert_chat_settings", values)
