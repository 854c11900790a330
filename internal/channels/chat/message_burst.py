"""Bursts: several messages of one person within a moment, which become one task."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from internal.agent.domain.chats import InboundMessage
from internal.channels.chat.transport import IncomingMessage

MAX_MESSAGES = 20
"""Messages in a burst."""


class BurstMessage(NamedTuple):
    """A message that may belong to a burst: its row and what it says."""

    row: InboundMessage
    incoming: IncomingMessage


class BurstEnd(NamedTuple):
    """A message that ends a burst at once, such as a command: it must not wait for it."""


BurstItem = BurstMessage | BurstEnd | None
"""A later message of the chat as a burst sees it; None if the burst ignores the message."""
ReadLater = Callable[[], Awaitable[Sequence[BurstItem]]]
"""Returns what the later messages of the chat are that wait to be processed, oldest first."""


class BurstCollector:
    """Waits for the further messages of bursts. They stay in the inbox meanwhile.

    `seconds_since` returns how long ago a time (RFC 3339) was.
    """

    def __init__(self, seconds_since: Callable[[str], float], gather_ms: int) -> None:
        self._seconds_since, self._moment = seconds_since, gather_ms / 1000
        self._arrived: dict[str, asyncio.Event] = {}

    def notify(self, chat_id: str = "") -> None:
        """Look at the waiting messages of a chat, or of all chats, again."""
        for name, event in self._arrived.items():
            if chat_id in {"", name}:
                event.set()

    async def collect(self, first: InboundMessage, read_later: ReadLater) -> list[BurstMessage]:
        """Return the messages that follow a first one within the moment.

        A message belongs to the burst if it was received within the moment after the one before it.
        The wait ends with the moment, with `MAX_MESSAGES` messages, or with a message that must not
        wait.
        """
        if not self._moment:
            return []
        arrived = self._arrived.setdefault(first.chat_id, asyncio.Event())
        try:
            while True:
                arrived.clear()
                found, is_over = self._take(first, await read_later())
                last = found[-1].row if found else first
                # after the clock was set back the end is far away
                wait = min(self._moment - self._seconds_since(last.received), self._moment)
                if is_over or wait <= 0:
                    return found
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await arrived.wait()
        finally:
            del self._arrived[first.chat_id]

    def _take(
        self, first: InboundMessage, later: Sequence[BurstItem]
    ) -> tuple[list[BurstMessage], bool]:
        """Return the messages of a burst so far, and whether no more can follow."""
        found: list[BurstMessage] = []
        last = first
        for each in later:
            match each:
                case BurstEnd():
                    return found, True
                case BurstMessage(row) if _seconds_between(last, row) <= self._moment:
                    found.append(each)
                    last = row
                    if len(found) + 1 >= MAX_MESSAGES:
                        return found, True
                case BurstMessage():
                    return found, True
                case None:
                    pass
        return found, False


def _seconds_between(first: InboundMessage, second: InboundMessage) -> float:
    between = datetime.fromisoformat(second.received) - datetime.fromisoformat(first.received)
    return between.total_seconds()
