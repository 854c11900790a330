"""Edited messages: as an event of Lark would have them if they were sent now.

The event of an edit is not trusted for the text, the mentions and the author: they are read back
from the API.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from internal.channels.chat.transport import ReceivedMessage, TransportRejected
from internal.channels.lark.api import as_datetime, as_json, read_milliseconds
from internal.channels.lark.content.message_content import (
    decode_object,
    without_paragraph_tags,
)
from internal.channels.lark.events import EventHeader, LarkEdit
from internal.channels.lark.history.message_reader import item_mentions

Item = Mapping[str, Any]


def as_received(edit: LarkEdit, item: Item, *, is_direct: bool) -> ReceivedMessage:
    """Return an edited message as a new one, sent at the time of its edit.

    `item` is the message as the API returns it.

    Raises:
        TransportRejected: it is not that message, it was recalled, or no person wrote it.
    """
    sender = item.get("sender")
    author = str(sender.get("id") or "") if isinstance(sender, dict) else ""
    if item.get("message_id") != edit.message_id or item.get("chat_id") != edit.chat_id:
        raise TransportRejected("Lark returned another message than the edited one")
    if item.get("deleted") is True:
        raise TransportRejected("the edited message was recalled")
    if not isinstance(sender, dict) or sender.get("sender_type") != "user" or not author:
        raise TransportRejected("the edited message is not from a person")
    edited_at = read_milliseconds(str(item.get("update_time") or "")) or edit.created
    message = {
        "message_id": edit.message_id,
        "chat_id": edit.chat_id,
        "chat_type": "p2p" if is_direct else "group",
        "message_type": str(item.get("msg_type") or ""),
        "content": _content(item),
        "create_time": "" if edited_at is None else str(edited_at),
        "mentions": [
            {"key": each.key, "id": {"open_id": each.open_id}, "name": each.name}
            for each in item_mentions(item)
        ],
        **{name: str(item.get(name) or "") for name in ("parent_id", "root_id", "thread_id")},
    }
    tenant = str(sender.get("tenant_key") or edit.header.tenant_key)
    event = {
        "sender": {
            "sender_id": {"open_id": author},
            "sender_type": "user",
            "tenant_key": tenant,
        },
        "message": message,
    }
    raw = as_json({"schema": "2.0", "header": _header(edit.header), "event": event})
    return ReceivedMessage(edit.message_id, edit.chat_id, author, raw, as_datetime(edited_at))


def _header(header: EventHeader) -> dict[str, Any]:
    return {**msgspec.to_builtins(header), "event_type": "im.message.receive_v1"}


def _content(item: Item) -> str:
    """Return the content of a message as its event has it."""
    body = item.get("body")
    content = body.get("content") if isinstance(body, dict) else ""
    content = content if isinstance(content, str) else ""
    if item.get("msg_type") != "text":
        return content
    text = decode_object(content).get("text")
    return as_json({"text": without_paragraph_tags(text)}) if isinstance(text, str) else content
