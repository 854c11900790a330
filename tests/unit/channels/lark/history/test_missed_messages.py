"""Places with a history to look up, and the messages of a history as events."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from internal.agent.app.received_messages import ActiveChat, ReceivedMessages
from internal.agent.store.chats import SessionMessage
from internal.channels.lark.api import LarkApi, MessagePage
from internal.channels.lark.events import LarkMessage, read_event
from internal.channels.lark.history.missed_messages import (
    CallBudget,
    ChatHistories,
    HistoryLimits,
    HistoryPlace,
)
from internal.observability.clock import SystemClock

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
PLACE = HistoryPlace("chat", "oc_1", "oc_1", is_direct=True, tenant_key="tk_1", newest=NOON)


def at(seconds: int) -> str:
    return str(int(NOON.timestamp() + seconds) * 1000)


class FakeApi(LarkApi):
    """Pages of a history, newest first."""

    def __init__(self, *pages: Sequence[Any]) -> None:
        self.pages = pages
        self.tokens: list[str] = []

    async def message_page(
        self, kind: str, container: str, *, since: float, token: str = ""
    ) -> MessagePage:
        self.tokens.append(token)
        number = int(token or 0)
        more = number + 1 < len(self.pages)
        return MessagePage([*self.pages[number]], str(number + 1) if more else "")


class FakeReceived(ReceivedMessages):
    def __init__(self, chats: Sequence[ActiveChat] = (), known: Sequence[str] = ()) -> None:
        self.chats, self.known = [*chats], known

    async def list_active_chats(self, limit: int, *, messages: int) -> list[ActiveChat]:
        return self.chats[:limit]

    async def find_unknown(self, message_ids: Sequence[str]) -> frozenset[str]:
        return frozenset(message_ids) - {*self.known}


def histories(api: LarkApi, limits: HistoryLimits | None = None) -> ChatHistories:
    return ChatHistories(api, "cli_1", SystemClock(), limits or HistoryLimits())


def item(message_id: str, seconds: int = 0, **changes: Any) -> Mapping[str, Any]:
    sender = {"id": "ou_1", "id_type": "open_id", "sender_type": "user", "tenant_key": "tk_1"}
    body = {"content": '{"text":"@_user_1 hi"}'}
    mention = {"key": "@_user_1", "id": "ou_bot", "id_type": "open_id", "name": "Bot"}
    fields = {"message_id": message_id, "msg_type": "text", "create_time": at(seconds)}
    return {**fields, "sender": sender, "body": body, "mentions": [mention], **changes}


async def test_a_message_of_a_history_is_read_as_its_event_would_be() -> None:
    api = FakeApi([item("om_1", 5, root_id="om_0", parent_id="om_0", thread_id="omt_1")])
    missed = await histories(api).find(FakeReceived(), PLACE, NOON)
    [message] = missed.messages
    assert (message.message_id, message.chat_id, message.user_id) == ("om_1", "oc_1", "ou_1")
    assert message.sent_at is not None
    assert (message.sent_at - NOON).total_seconds() == 5
    event = read_event(message.raw)
    assert isinstance(event, LarkMessage)
    assert event.direct
    assert not event.is_external
    assert event.mentioned("ou_bot")
    assert (event.root_id, event.parent_id, event.thread_id) == ("om_0", "om_0", "omt_1")


async def test_only_what_people_wrote_and_nobody_took_or_answered_is_missed() -> None:
    app = {"id": "cli_1", "id_type": "app_id", "sender_type": "app"}
    api = FakeApi(
        [
            item("om_7", 7),
            item("om_6", 6, sender=app, parent_id="om_4"),
            item("om_5", 5, deleted=True),
            item("om_4", 4),
            item("om_3", 3),
            item("om_3", 3),
            item("om_2", 2, msg_type="system"),
            item("om_1", 1),
            item("om_0", -1),
        ]
    )
    missed = await histories(api).find(FakeReceived(known=["om_1"]), PLACE, NOON)
    assert [each.message_id for each in missed.messages] == ["om_3", "om_7"]
    assert missed.is_complete


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"message_id": "om_1"},
        item("om_1", sender=None),
        item("om_1", sender={"id": 7, "id_type": "open_id", "sender_type": "user"}),
        item("om_1", sender={"id": "u1", "id_type": "user_id", "sender_type": "user"}),
        item("", 1),
        {**item("om_1"), "message_id": 7},
    ],
)
async def test_an_unreadable_entry_is_left_out(broken: Mapping[str, Any]) -> None:
    api = FakeApi([broken, item("om_2", body=None, mentions={"key": 1}, create_time="soon")])
    missed = await histories(api).find(FakeReceived(), PLACE, NOON)
    [message] = missed.messages
    assert message.message_id == "om_2"
    assert message.sent_at == NOON  # without a time of its own it acts on nothing newer
    assert read_event(message.raw) is not None


async def test_as_many_pages_are_read_as_the_limits_allow() -> None:
    api = FakeApi([item("om_3", 3)], [item("om_2", 2)], [item("om_1", 1)])
    found = histories(api, HistoryLimits(pages=2))
    missed = await found.find(FakeReceived(), PLACE, NOON)
    assert [each.message_id for each in missed.messages] == ["om_2", "om_3"]
    assert not missed.is_complete
    thread = FakeApi([item("om_3", 3), item("om_0", -1)], [item("om_00", -2)])
    assert (await histories(thread).find(FakeReceived(), PLACE, NOON)).is_complete
    assert thread.tokens == [""]


def stored(message_id: str, seconds: int, *, thread_id: str = "", direct: bool = False) -> Any:
    raw = {
        "header": {"event_type": "im.message.receive_v1", "tenant_key": "tk_1"},
        "event": {
            "message": {
                "message_id": message_id,
                "chat_id": "oc_1",
                "chat_type": "p2p" if direct else "group",
                "create_time": at(seconds),
                "thread_id": thread_id,
            }
        },
    }
    return SessionMessage(message_id, msgspec.json.encode(raw).decode(), "")


async def test_places_are_chats_and_their_threads_by_their_newest_message() -> None:
    newest = (stored("om_3", 90, thread_id="omt_1"), stored("om_2", 30), stored("om_1", 0))
    chats = [
        ActiveChat("oc_1", newest),
        ActiveChat("oc_2", (stored("om_4", 40, direct=True),)),
        ActiveChat("oc_3", (SessionMessage("x", "not JSON", ""), SessionMessage("y", "{}", ""))),
    ]
    places = await histories(FakeApi()).list_places(FakeReceived(chats))
    assert [(each.kind, each.container) for each in places] == [
        ("chat", "oc_1"),
        ("thread", "omt_1"),
        ("chat", "oc_2"),
    ]
    assert [each.usual_silence for each in places] == [45.0, 45.0, None]
    assert [each.is_direct for each in places] == [False, False, True]
    few = await histories(FakeApi(), HistoryLimits(threads=0)).list_places(FakeReceived(chats))
    assert [each.kind for each in few] == ["chat", "chat"]


async def test_calls_wait_for_a_place_in_the_last_minute() -> None:
    class Clock(SystemClock):
        seconds = 0.0

        def monotonic(self) -> float:
            return self.seconds

    clock = Clock()

    async def sleep(seconds: float) -> None:
        clock.seconds += seconds

    budget = CallBudget(2, clock, sleep)
    made = []
    for _ in range(5):
        await budget.take()
        made.append(clock.seconds)
        clock.seconds += 1.0
    assert made == [0.0, 1.0, 60.0, 61.0, 120.0]
