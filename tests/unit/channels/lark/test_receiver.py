"""An event is acknowledged only after it is stored."""

import asyncio
import json

import pytest

from internal.agent.domain.errors import StoreUnavailable
from internal.channels.chat.transport import ReceivedMessage
from internal.channels.lark.receiver import EventReceiver, NotStored


class StuckStore:
    """An inbox that can be stuck or broken."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.broken = False
        self.woken = asyncio.Event()
        self.kept: list[ReceivedMessage] = []

    async def accept(self, message: ReceivedMessage) -> None:
        await self.free.wait()
        if self.broken:
            raise StoreUnavailable("The disk is full.")
        self.kept.append(message)
        self.woken.set()


def event(message_id: str) -> bytes:
    body = {"message_id": message_id, "chat_id": "oc_1", "chat_type": "p2p"}
    sender = {"sender_id": {"open_id": "ou_1"}, "sender_type": "user"}
    header = {"event_type": "im.message.receive_v1"}
    return json.dumps({"header": header, "event": {"sender": sender, "message": body}}).encode()


async def test_while_the_store_is_stuck_only_one_event_waits() -> None:
    store = StuckStore()
    receiver = EventReceiver(store.accept)
    with pytest.raises(NotStored, match="in time"):
        await asyncio.to_thread(receiver.receive, event("om_1"))
    for number in range(2, 50):
        with pytest.raises(NotStored, match="stuck"):
            await asyncio.to_thread(receiver.receive, event(f"om_{number}"))
    store.free.set()
    await store.woken.wait()
    await asyncio.to_thread(receiver.receive, event("om_2"))
    assert [message.message_id for message in store.kept] == ["om_1", "om_2"]
    await asyncio.to_thread(receiver.receive, event("om_2"))  # known: the store is not asked
    assert len(store.kept) == 2
    assert store.kept[0].user_id == "ou_1"


async def test_a_store_error_is_not_acknowledged() -> None:
    store = StuckStore()
    store.free.set()
    store.broken = True
    receiver = EventReceiver(store.accept)
    with pytest.raises(NotStored, match="disk is full"):
        await asyncio.to_thread(receiver.receive, event("om_1"))
    store.broken = False
    await asyncio.to_thread(receiver.receive, event("om_1"))
    assert len(store.kept) == 1


async def test_other_payloads_are_acknowledged() -> None:
    receiver = EventReceiver(StuckStore().accept)
    for payload in (b"", b"{}", b"\xff\xfe", b'{"header": {"event_type": "other"}}', event("")):
        await asyncio.to_thread(receiver.receive, payload)
