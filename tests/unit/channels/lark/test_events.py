"""Message events are stored before they are acknowledged, and become text."""

import asyncio
import json
from concurrent.futures import Future
from typing import Any

import msgspec
import pytest

from internal.agent.domain.errors import StoreUnavailable
from internal.channels.chat.transport import ReceivedMessage
from internal.channels.lark.events import (
    MAX_STORING,
    MAX_SUGGESTION_LENGTH,
    EventEnvelope,
    EventHeader,
    EventReceiver,
    EventSource,
    LarkEdit,
    LarkMessage,
    LarkRecall,
    LarkRemoval,
    LarkSuggestion,
    NotStored,
    open_event,
    read_event,
    read_suggestion,
    shown_message,
)


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"7", b'{"header": 1}', b"\xff"])
def test_malformed_events_are_rejected(payload: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        read_event(payload)


@pytest.mark.parametrize("kind", ["im.message.receive_v1", "im.message.updated_v1", "other"])
def test_an_event_that_is_nested_too_deep_is_rejected(kind: str) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    payload = f'{{"header":{{"event_type":"{kind}"}},"event":{{"message":{{"x":{deep}}}}}}}'
    with pytest.raises(msgspec.DecodeError):
        read_event(payload)
    assert open_event(payload.encode()) is None


def test_a_recall_is_identified_by_its_message() -> None:
    event = {"message_id": "om_1", "chat_id": "oc_1", "recall_time": "1"}
    header = {"event_type": "im.message.recalled_v1", "event_id": "e1"}
    told = read_event(json.dumps({"header": header, "event": event}))
    assert told == LarkRecall("om_1", "oc_1")
    assert told.name == "recall:om_1"
    for broken in ({"message_id": "om_1"}, {"chat_id": "oc_1"}, {"message_id": 7}):
        with pytest.raises(msgspec.ValidationError):
            read_event(json.dumps({"header": header, "event": broken}))


EDITED = {"event_type": "im.message.updated_v1", "event_id": "e1", "create_time": "1700000000000"}
EDITED_MESSAGE = {"message_id": "om_1", "chat_id": "oc_1", "update_time": "1700000000001"}


@pytest.mark.parametrize(
    ("event", "version", "is_direct"),
    [
        ({"message": EDITED_MESSAGE}, "1700000000001", None),
        ({"message": {**EDITED_MESSAGE, "chat_type": "p2p"}}, "1700000000001", True),
        ({**EDITED_MESSAGE, "chat_type": "group"}, "1700000000001", False),
        ({"message_id": "om_1", "chat_id": "oc_1"}, "e1", None),
    ],
)
def test_an_edit_is_identified_by_its_message_and_its_time(
    event: dict[str, object], version: str, is_direct: bool | None
) -> None:
    told = read_event(json.dumps({"header": EDITED, "event": event}))
    assert isinstance(told, LarkEdit)
    assert (told.message_id, told.chat_id, told.version) == ("om_1", "oc_1", version)
    assert (told.is_direct, told.created) == (is_direct, 1_700_000_000_000)
    assert told.name == f"edit:om_1:{version}"


@pytest.mark.parametrize(
    "event", [{}, {"message": {"message_id": "om_1"}}, {"message": 7}, {"chat_id": "oc_1"}]
)
def test_an_edit_without_its_message_is_rejected(event: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        read_event(json.dumps({"header": EDITED, "event": event}))


@pytest.mark.parametrize("kind", ["im.chat.member.bot.deleted_v1", "im.chat.disbanded_v1"])
def test_a_removal_is_identified_by_its_event(kind: str) -> None:
    event = {"chat_id": "oc_1", "operator_id": {"open_id": "ou_1"}, "name": "Team"}
    header = {"event_type": kind, "event_id": "e1", "create_time": "1700000000000"}
    told = read_event(json.dumps({"header": header, "event": event}))
    assert told == LarkRemoval("e1", "oc_1", "ou_1", 1_700_000_000_000)
    assert told.name == "event:e1"
    assert read_event(json.dumps({"header": header, "event": {"chat_id": "oc_1"}})) == (
        LarkRemoval("e1", "oc_1", "", 1_700_000_000_000)
    )
    for broken in (
        {"header": header, "event": {}},
        {"header": {"event_type": kind}, "event": event},
    ):
        with pytest.raises(msgspec.ValidationError):
            read_event(json.dumps(broken))


def test_other_events_are_ignored() -> None:
    assert read_event(b'{"header": {"event_type": "x"}, "event": {"message": 7}}') is None


class Inbox:
    """An inbox that stores when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[ReceivedMessage, Future[bool]]] = []
        self.stored: list[ReceivedMessage] = []

    def accept(self, message: ReceivedMessage) -> Future[bool]:
        future: Future[bool] = Future()
        future.set_running_or_notify_cancel()
        self.waiting.append((message, future))
        return future

    def store(self, error: Exception | None = None) -> None:
        """Store everything that waits, or fail to."""
        waiting, self.waiting = self.waiting, []
        for message, future in waiting:
            if error is None:
                self.stored.append(message)
                future.set_result(True)
            else:
                future.set_exception(error)


async def start_receiving(receiver: EventReceiver, *names: str) -> list[asyncio.Task[None]]:
    """Receive the events of messages and return when all have begun."""
    tasks = [asyncio.create_task(receiver.receive(read(name))) for name in names]
    await asyncio.sleep(0)
    return tasks


def read(message_id: str) -> EventEnvelope:
    return EventEnvelope(event(message_id))


def event(message_id: str) -> bytes:
    body = {"message_id": message_id, "chat_id": "oc_1", "chat_type": "p2p"}
    sender = {"sender_id": {"open_id": "ou_1"}, "sender_type": "user"}
    header = {"event_type": "im.message.receive_v1"}
    return json.dumps({"header": header, "event": {"sender": sender, "message": body}}).encode()


async def test_events_are_stored_together_in_the_order_of_arrival() -> None:
    inbox = Inbox()
    receiver = EventReceiver(inbox.accept)
    names = [f"om_{number}" for number in range(50)]
    receiving = await start_receiving(receiver, *names)
    assert [message.message_id for message, _ in inbox.waiting] == names
    inbox.store()
    await asyncio.wait(receiving)
    assert all(task.exception() is None for task in receiving)
    assert inbox.stored[0].user_id == "ou_1"


async def test_a_known_event_is_not_stored_again() -> None:
    inbox = Inbox()
    receiver = EventReceiver(inbox.accept)
    [receiving] = await start_receiving(receiver, "om_1")
    inbox.store()
    await receiving
    await receiver.receive(read("om_1"))
    assert len(inbox.stored) == 1


@pytest.mark.slow
async def test_while_the_store_is_stuck_further_events_fail_at_once() -> None:
    inbox = Inbox()
    receiver = EventReceiver(inbox.accept)
    with pytest.raises(NotStored, match="in time"):
        await receiver.receive(read("om_1"))
    for number in range(2, 50):
        with pytest.raises(NotStored, match="stuck"):
            await receiver.receive(read(f"om_{number}"))
    assert len(inbox.waiting) == 1
    inbox.store()
    [receiving] = await start_receiving(receiver, "om_2")
    inbox.store()
    await receiving
    assert [message.message_id for message in inbox.stored] == ["om_1", "om_2"]


async def test_the_number_of_waiting_events_is_bounded() -> None:
    inbox = Inbox()
    receiver = EventReceiver(inbox.accept)
    receiving = await start_receiving(receiver, *(f"om_{n}" for n in range(MAX_STORING)))
    with pytest.raises(NotStored, match="too many"):
        await receiver.receive(read("om_more"))
    assert len(inbox.waiting) == MAX_STORING
    inbox.store()
    await asyncio.wait(receiving)
    [receiving_more] = await start_receiving(receiver, "om_more")
    inbox.store()
    await receiving_more


async def test_a_store_error_is_not_acknowledged() -> None:
    inbox = Inbox()
    receiver = EventReceiver(inbox.accept)
    [receiving] = await start_receiving(receiver, "om_1")
    inbox.store(StoreUnavailable("The disk is full."))
    with pytest.raises(NotStored, match="disk is full"):
        await receiving
    [receiving] = await start_receiving(receiver, "om_1")
    inbox.store()
    await receiving
    assert len(inbox.stored) == 1


async def test_other_payloads_are_acknowledged() -> None:
    receiver = EventReceiver(Inbox().accept)
    assert open_event(b"") is open_event(b"\xff\xfe") is None
    for payload in (b"{}", b'{"header": {"event_type": "other"}}', event("")):
        await receiver.receive(EventEnvelope(payload))


def header_of(app_id: str, tenant_key: str) -> EventHeader:
    payload = json.dumps({"header": {"app_id": app_id, "tenant_key": tenant_key}})
    return EventEnvelope(payload.encode()).header


def test_only_events_of_the_own_app_and_tenant_are_accepted() -> None:
    source = EventSource("cli_1")
    assert not source.accepts(header_of("cli_2", "tk_2"))
    assert not source.accepts(header_of("cli_1", ""))
    assert source.accepts(header_of("cli_1", "tk_1"))  # it settles an unknown tenant
    assert not source.accepts(header_of("cli_1", "tk_2"))
    assert source.accepts(header_of("cli_1", "tk_1"))
    assert not source.accepts(EventEnvelope(b"{}").header)
    assert open_event(b"no JSON") is None  # reported as malformed
    assert not EventSource("cli_1", "tk_1").accepts(header_of("cli_1", "tk_2"))


@pytest.mark.parametrize(("tenant", "external"), [("tk_1", False), ("tk_2", True), ("", True)])
def test_a_sender_of_another_tenant_is_external(tenant: str, external: bool) -> None:
    header = {"event_type": "im.message.receive_v1", "tenant_key": "tk_1"}
    sender = {"sender_id": {"open_id": "ou_1"}, "tenant_key": tenant}
    event = {"sender": sender, "message": {"message_id": "om_1", "chat_id": "oc_1"}}
    read = read_event(json.dumps({"header": header, "event": event}))
    assert isinstance(read, LarkMessage)
    assert read.is_external is external


VALUE = {"suggest": "Write", "number": 1, "chat": "oc_1", "direct": True}


def clicked(value: Any, chat_id: str = "oc_1", open_id: str = "ou_1") -> LarkSuggestion | None:
    return read_suggestion(
        value, card_id="om_1", chat_id=chat_id, open_id=open_id, is_external=False
    )


def test_a_click_is_a_message_with_an_id_for_each_person() -> None:
    first, second = clicked(VALUE), clicked(VALUE, open_id="ou_2")
    assert first is not None
    assert second is not None
    assert (first.text, first.direct, first.chat_id) == ("Write", True, "oc_1")
    assert first.name != second.name
    assert shown_message(first.name) == shown_message(second.name) == "om_1"
    assert (shown_message("om_2"), shown_message("menu:ou_1:1:help")) == ("om_2", "")


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"run": "r1"},
        VALUE | {"suggest": " "},
        VALUE | {"suggest": "x" * (MAX_SUGGESTION_LENGTH + 1)},
        VALUE | {"more": 1},
        VALUE | {"chat": "oc_2"},
    ],
)
def test_other_values_are_no_suggestions(value: Any) -> None:
    assert clicked(value) is None
