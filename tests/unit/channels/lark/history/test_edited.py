"""Edited messages as events."""

from typing import Any

import pytest

from internal.channels.chat.transport import TransportRejected
from internal.channels.lark.events import EventHeader, LarkEdit, LarkMessage, read_event
from internal.channels.lark.history.edited import as_received

EDIT = LarkEdit(
    "om_1", "oc_1", "1793000000000", 1_793_000_000_000, EventHeader("e", "ev", "", "cli_1", "t1")
)
ITEM: dict[str, Any] = {
    "message_id": "om_1",
    "chat_id": "oc_1",
    "msg_type": "text",
    "create_time": "1792000000000",
    "update_time": "1793000000001",
    "updated": True,
    "thread_id": "omt_1",
    "sender": {"id": "ou_1", "sender_type": "user", "tenant_key": "t1"},
    "body": {"content": '{"text": "<p>hi @_user_1</p>"}'},
    "mentions": [{"key": "@_user_1", "id": "ou_bot", "name": "Bot"}],
}


def test_an_edited_message_is_like_one_that_was_sent_at_its_edit() -> None:
    received = as_received(EDIT, ITEM, is_direct=False)
    message = read_event(received.raw)
    assert isinstance(message, LarkMessage)
    assert (message.message_id, message.open_id, message.thread_id) == ("om_1", "ou_1", "omt_1")
    assert message.content == '{"text":"hi @_user_1"}'
    assert message.created == 1_793_000_000_001
    assert message.mentioned("ou_bot")
    assert not message.direct
    assert not message.is_external
    assert (received.message_id, received.chat_id, received.user_id) == ("om_1", "oc_1", "ou_1")


@pytest.mark.parametrize(
    "changed",
    [
        {"message_id": "om_2"},
        {"chat_id": "oc_2"},
        {"deleted": True},
        {"sender": {"id": "cli_1", "sender_type": "app"}},
        {"sender": {"id": "", "sender_type": "user"}},
        {"sender": None},
    ],
)
def test_what_is_not_the_message_of_a_person_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(TransportRejected):
        as_received(EDIT, {**ITEM, **changed}, is_direct=True)


@pytest.mark.parametrize(
    "body", [None, {}, {"content": 7}, {"content": "{"}, {"content": '{"a":1}'}]
)
def test_content_of_another_form_is_kept_readable(body: object) -> None:
    received = as_received(EDIT, {**ITEM, "body": body, "mentions": "x"}, is_direct=True)
    assert isinstance(read_event(received.raw), LarkMessage)


def test_a_guest_stays_a_guest() -> None:
    guest = {**ITEM, "sender": {"id": "ou_1", "sender_type": "user", "tenant_key": "t2"}}
    message = read_event(as_received(EDIT, guest, is_direct=True).raw)
    assert isinstance(message, LarkMessage)
    assert message.is_external
