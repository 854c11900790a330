"""The wishes of chats in a table."""

from internal.agent.ports.chats import ChatWish
from internal.agent.ports.database import Read, Statement, Write
from internal.storage.stores.text import plain


class ChatStore:
    """Fills `Chats`."""

    def wish(self, chat: str, /) -> Read[ChatWish]:
        """Return what is wished for a chat."""
        rows = yield Statement("chat_wish", (chat,))
        return ChatWish(rows[0][0] or None, rows[0][1]) if rows else ChatWish()

    def keep(self, chat: str, wish: ChatWish, /) -> Write[None]:
        """Store the wish of a chat in place of the last one."""
        yield Statement("keep_chat_wish", (chat, wish.plan_review or "", plain(wish.model)))
