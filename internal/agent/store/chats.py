"""What the agent asks of the store of chats: how the tasks of a chat are wanted."""

from internal.agent.domain.chats import ChatSettings
from internal.agent.store.database import Read, Statement, Write
from internal.agent.store.encoding import plain


class ChatStore:
    """Fills `Chats`."""

    def get_settings(self, chat: str, /) -> Read[ChatSettings]:
        """Return what is wished for a chat."""
        rows = yield Statement("chat_wish", (chat,))
        return ChatSettings(rows[0][0] or None, rows[0][1]) if rows else ChatSettings()

    def save_settings(self, chat: str, wish: ChatSettings, /) -> Write[None]:
        """Store the wish of a chat in place of the last one."""
        yield Statement("keep_chat_wish", (chat, wish.plan_review or "", plain(wish.model)))
