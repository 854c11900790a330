"""Messages that Lark did not deliver, read from the histories of chats and threads."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import msgspec

from internal.agent.app.received_messages import ActiveChat, ReceivedMessages
from internal.agent.ports.runtime import Clock
from internal.channels.chat.transport import OnMessage, ReceivedMessage
from internal.channels.lark.api import LarkApi, as_datetime, as_json, read_milliseconds
from internal.channels.lark.events import EventEnvelope, LarkMessage

Sleep = Callable[[float], Awaitable[None]]

_SAMPLE = 10
"""Number of messages that determine the threads of a chat and the length of its silences."""
_MIN_GAPS = 2
"""A usual silence is known from so many gaps between messages."""
_MINUTE_SECONDS = 60.0


class HistoryLimits(NamedTuple):
    """Limits of a search for missed messages.

    It covers the most recently active `chats` and `threads`, up to `pages` of 50 messages each,
    with a maximum number of calls per minute.
    """

    chats: int = 30
    threads: int = 20
    pages: int = 4
    calls_per_minute: int = 30


class HistoryPlace(NamedTuple):
    """A chat or a thread whose history is looked up.

    `newest` is the time of its newest message that is part of a session, and `usual_silence` the
    mean of the seconds between the newest ones, None if unknown. `tenant_key` is the app's tenant.
    """

    kind: Literal["chat", "thread"]
    container: str
    chat_id: str
    is_direct: bool
    tenant_key: str
    newest: datetime
    usual_silence: float | None = None


class MissedMessages(NamedTuple):
    """The messages of a place that were not received, oldest first.

    `is_complete` is False if there are earlier ones, which were not looked up.
    """

    messages: tuple[ReceivedMessage, ...]
    is_complete: bool


class CallBudget:
    """Delays calls so that at most `limit` are made in a minute."""

    def __init__(self, limit: int, clock: Clock, sleep: Sleep = asyncio.sleep) -> None:
        self._clock, self._sleep = clock, sleep
        self._made: deque[float] = deque(maxlen=limit)

    async def take(self) -> None:
        """Return when a call may be made."""
        if len(self._made) == self._made.maxlen:
            wait = self._made[0] + _MINUTE_SECONDS - self._clock.monotonic()
            if wait > 0:
                await self._sleep(wait)
        self._made.append(self._clock.monotonic())


class ChatHistories:
    """Finds and stores the messages of an account that were not delivered."""

    def __init__(self, api: LarkApi, app_id: str, clock: Clock, limits: HistoryLimits) -> None:
        self._api, self._app_id, self._limits = api, app_id, limits
        self._budget = CallBudget(limits.calls_per_minute, clock)

    async def list_places(self, received: ReceivedMessages) -> list[HistoryPlace]:
        """Return the chats with sessions and threads in them, the most recently active first."""
        chats = await received.list_active_chats(self._limits.chats, messages=_SAMPLE)
        places: dict[tuple[str, str], HistoryPlace] = {}
        threads = 0
        for place in sorted(_places(chats), key=lambda each: each.newest, reverse=True):
            if (place.kind, place.container) in places:
                continue
            threads += place.kind == "thread"
            if place.kind == "chat" or threads <= self._limits.threads:
                places[place.kind, place.container] = place
        return [*places.values()]

    async def find(
        self,
        received: ReceivedMessages,
        place: HistoryPlace,
        since: datetime,
        *,
        pages: int | None = None,
    ) -> MissedMessages:
        """Return the messages written in a place since a time and not received.

        At most `pages` are read, else as many as the limits allow. Recalled messages and messages
        that the bot has replied to are left out.

        Raises:
            LarkRejected: the history cannot be read.
            LarkUnavailable: it cannot be read for now.
        """
        items, is_complete = await self._read(place, since, pages or self._limits.pages)
        answered = {each.get("parent_id") for each in items if self._is_own(each)}
        events: dict[str, ReceivedMessage] = {}
        for item in reversed(items):
            if not _is_from_person(item) or item["message_id"] in answered:
                continue
            # without a time it counts as written at the earliest one: it acts on nothing newer
            written = _written_at(item) or since
            if written >= since:
                events[item["message_id"]] = self._as_received(item, place, written)
        unknown = await received.find_unknown([*events])
        missed = tuple(event for name, event in events.items() if name in unknown)
        return MissedMessages(missed, is_complete)

    async def store(self, missed: MissedMessages, on_message: OnMessage) -> int:
        """Store missed messages in their order; return how many.

        Raises:
            StoreError: the database cannot be used.
        """
        for message in missed.messages:
            await asyncio.wrap_future(on_message(message))
        return len(missed.messages)

    async def _read(
        self, place: HistoryPlace, since: datetime, pages: int
    ) -> tuple[list[Mapping[str, Any]], bool]:
        """Return the messages since a time, newest first, and whether these are all."""
        items: list[Mapping[str, Any]] = []
        token = ""
        for _ in range(pages):
            await self._budget.take()
            page = await self._api.message_page(
                place.kind, place.container, since=since.timestamp(), token=token
            )
            items += page.items
            token = page.following
            oldest = _written_at(items[-1]) if items else None
            # the history of a thread cannot be limited by time
            if not token or (oldest is not None and oldest < since):
                return items, True
        return items, False

    def _is_own(self, item: Mapping[str, Any]) -> bool:
        sender = item.get("sender")
        return isinstance(sender, Mapping) and sender.get("id") == self._app_id

    def _as_received(
        self, item: Mapping[str, Any], place: HistoryPlace, written: datetime
    ) -> ReceivedMessage:
        """Return a message of the history as the event that was not delivered."""
        message_id, sender = str(item["message_id"]), item["sender"]
        milliseconds = str(int(written.timestamp() * 1000))
        header = {
            "event_id": f"history:{message_id}",
            "event_type": "im.message.receive_v1",
            "create_time": milliseconds,
            "tenant_key": place.tenant_key,
            "app_id": self._app_id,
        }
        body = item.get("body")
        message = {
            "message_id": message_id,
            "chat_id": place.chat_id,
            "chat_type": "p2p" if place.is_direct else "group",
            "message_type": _text(item, "msg_type"),
            "content": _text(body, "content") if isinstance(body, Mapping) else "",
            "create_time": milliseconds,
            "mentions": [*_mentions(item.get("mentions"))],
            **{name: _text(item, name) for name in ("parent_id", "root_id", "thread_id")},
        }
        event = {
            "sender": {
                "sender_id": {"open_id": sender["id"]},
                "sender_type": "user",
                "tenant_key": _text(sender, "tenant_key"),
            },
            "message": message,
        }
        raw = as_json({"schema": "2.0", "header": header, "event": event})
        return ReceivedMessage(message_id, place.chat_id, sender["id"], raw, written)


def _places(chats: Sequence[ActiveChat]) -> Iterator[HistoryPlace]:
    """Yield a place for each chat, and one for each of its messages that is in a thread."""
    for chat in chats:
        known: list[tuple[LarkMessage, datetime]] = []
        tenant_key = ""
        for stored in chat.newest:
            try:
                envelope = EventEnvelope(stored.raw)
                event = envelope.read()
            except msgspec.DecodeError:
                continue
            written = as_datetime(event.created) if isinstance(event, LarkMessage) else None
            if isinstance(event, LarkMessage) and written is not None:
                known.append((event, written))
                tenant_key = tenant_key or envelope.header.tenant_key
        if not known:
            continue
        place = HistoryPlace(
            "chat",
            chat.chat_id,
            chat.chat_id,
            is_direct=known[0][0].direct,
            tenant_key=tenant_key,
            newest=max(written for _, written in known),
            usual_silence=_usual_silence([written for _, written in known]),
        )
        yield place
        for message, written in known:
            if message.thread_id:
                thread = message.thread_id
                yield place._replace(kind="thread", container=thread, newest=written)


def _usual_silence(times: Sequence[datetime]) -> float | None:
    """Return the mean of the seconds between messages, None if there are too few."""
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(sorted(times))]
    return sum(gaps) / len(gaps) if len(gaps) >= _MIN_GAPS else None


def _is_from_person(item: Mapping[str, Any]) -> bool:
    sender = item.get("sender")
    return (
        isinstance(sender, Mapping)
        and sender.get("sender_type") == "user"
        and sender.get("id_type") == "open_id"
        and bool(_text(sender, "id"))
        and bool(_text(item, "message_id"))
        and item.get("msg_type") != "system"
        and item.get("deleted") is not True
    )


def _written_at(item: Mapping[str, Any]) -> datetime | None:
    return as_datetime(read_milliseconds(_text(item, "create_time")))


def _mentions(listed: object) -> Iterator[dict[str, Any]]:
    """Yield mentions in the form of events, which nest the ids."""
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, Mapping):
            names = {name: _text(each, name) for name in ("key", "name", "tenant_key")}
            yield {**names, "id": {"open_id": _text(each, "id")}}


def _text(item: Mapping[str, Any], name: str) -> str:
    value = item.get(name)
    return value if isinstance(value, str) else ""
