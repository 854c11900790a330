"""Received messages of a chat account, recorded to find messages that were not delivered."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.tasks import Channel
from internal.agent.store.chats import SessionMessage
from internal.agent.store.database import Database, Read
from internal.agent.store.stores import Stores


class ActiveChat(NamedTuple):
    """A chat that has sessions, and its newest messages that are part of one, newest first."""

    chat_id: str
    newest: tuple[SessionMessage, ...]


class ReceivedMessages:
    """The received messages of one account, and until when none of them is missing."""

    def __init__(self, database: Database, stores: Stores, channel: Channel, app: str) -> None:
        self._database, self._inbox = database, stores.inbox
        self._account = channel, app

    async def list_active_chats(self, limit: int, *, messages: int) -> list[ActiveChat]:
        """Return chats with sessions, the most recently active first, with so many messages."""

        def work() -> Read[list[ActiveChat]]:
            found: list[ActiveChat] = []
            for chat_id in (yield from self._inbox.list_active_chats(*self._account, limit)):
                newest = self._inbox.list_newest_of_chat(*self._account, chat_id, messages)
                found.append(ActiveChat(chat_id, tuple((yield from newest))))
            return found

        return await self._database.read(work)

    async def find_unknown(self, message_ids: Sequence[str]) -> frozenset[str]:
        """Return which of these messages were not received."""

        def work() -> Read[frozenset[str]]:
            unknown: set[str] = set()
            for each in message_ids:
                _, received = yield from self._inbox.get_times(*self._account, each)
                if not received:
                    unknown.add(each)
            return frozenset(unknown)

        return await self._database.read(work)

    async def get_checked(self) -> datetime | None:
        """Return until when no message is missing; None before the first check."""
        mark = await self._database.read(partial(self._inbox.get_history_mark, *self._account))
        return datetime.fromisoformat(mark) if mark else None

    async def save_checked(self, checked: datetime) -> None:
        """Store until when no message is missing; a time before the stored one is ignored."""
        save = partial(self._inbox.save_history_mark, *self._account, rfc3339(checked))
        await self._database.write(save)
