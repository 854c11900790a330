"""Messages that were sent before, as Lark's message API returns them, read as text."""

from collections.abc import Mapping
from typing import Any

import msgspec

from internal.channels.chat.transport import (
    IncomingMessage,
    PastMessage,
    TransportRejected,
)
from internal.channels.lark.api import CONTEXT_POLICY, LarkApi
from internal.channels.lark.events import (
    Mention,
    as_datetime,
    content_text,
    describe_unseen,
    read_milliseconds,
)
from internal.channels.lark.history.card_text import card_text

_UNSEEN = {
    "image": "image",
    "file": "file",
    "audio": "voice message",
    "media": "video",
    "sticker": "sticker",
    "folder": "folder",
}
_UNREAD = {
    "share_chat": "[a shared group]",
    "share_user": "[a shared contact]",
    "merge_forward": describe_unseen("forwarded messages"),
}
_MAX_LISTED, _SPARE = 50, 10
_FAILED_CARD = "\u8bf7\u5347\u7ea7\u81f3\u6700\u65b0\u7248\u672c\u5ba2\u6237\u7aef"
"""Lark's text for a card that it cannot flatten: "upgrade to the newest version of the client"."""


class MessageReader:
    """Reads the messages of the chats of one app."""

    def __init__(self, api: LarkApi, app_id: str) -> None:
        self._api, self._app_id = api, app_id

    async def read(self, message_id: str) -> PastMessage:
        """Return a message."""
        item = await self._api.message(message_id, CONTEXT_POLICY)
        if not item:
            raise TransportRejected(f"Lark returned no message {message_id}")
        return past_message(item, self._app_id)

    async def read_recent(self, message: IncomingMessage, limit: int) -> list[PastMessage]:
        """Return the newest messages before one, of its thread or chat, oldest first."""
        kind, container = ("chat", message.chat_id)
        if message.thread_id:
            kind, container = ("thread", message.thread_id)
        items = await self._api.newest_messages(
            kind,
            container,
            until=None if message.sent_at is None else message.sent_at.timestamp(),
            limit=min(limit + _SPARE, _MAX_LISTED),
        )
        found = [
            past_message(item, self._app_id) for item in items if item.get("msg_type") != "system"
        ]
        earlier = [each for each in found if _is_earlier(each, message) and not each.is_recalled]
        return earlier[:limit][::-1]

    async def has_own_in(self, thread_id: str) -> bool:
        """Return True if one of the newest messages of a thread is the app's; one call."""
        items = await self._api.newest_messages("thread", thread_id, until=None, limit=_MAX_LISTED)
        return any(past_message(item, self._app_id).is_own for item in items)


def past_message(item: Mapping[str, Any], app_id: str) -> PastMessage:
    """Return a message as the chat application sees it."""
    sender = _object(item, "sender")
    is_person, sender_id = sender.get("sender_type") == "user", str(sender.get("id") or "")
    is_recalled = item.get("deleted") is True
    return PastMessage(
        message_id=str(item.get("message_id") or ""),
        user_id=sender_id if is_person else "",
        text="" if is_recalled else item_text(item),
        sent_at=as_datetime(read_milliseconds(str(item.get("create_time") or ""))),
        name=str(sender.get("sender_name") or ""),
        is_own=not is_person and sender_id == app_id,
        is_recalled=is_recalled,
    )


def item_text(item: Mapping[str, Any]) -> str:
    """Return the text of a message; for other kinds a note that says what it is."""
    kind, content = str(item.get("msg_type") or ""), _object(item, "body").get("content")
    content = content if isinstance(content, str) else ""
    if kind == "interactive":
        card = _decode(content)
        text = "" if card is None else card_text(card)
        return "[a card without readable text]" if not text or _FAILED_CARD in text else text
    if kind in _UNSEEN:
        name = str((_decode(content) or {}).get("file_name") or "")
        return describe_unseen(f"{_UNSEEN[kind]} {name}".rstrip())
    if kind in _UNREAD:
        return _UNREAD[kind]
    mentions = item.get("mentions")
    named = tuple(
        Mention(str(each.get("key", "")), str(each.get("id", "")), str(each.get("name", "")))
        for each in (mentions if isinstance(mentions, list) else ())
        if isinstance(each, dict)
    )
    words = content_text(kind, content, named)
    return f"[a message of the kind {kind}]" if words is None else words


def _is_earlier(each: PastMessage, message: IncomingMessage) -> bool:
    if each.message_id == message.message_id:
        return False
    return each.sent_at is None or message.sent_at is None or each.sent_at <= message.sent_at


def _decode(content: str) -> dict[str, Any] | None:
    try:
        decoded = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return None
    return decoded if isinstance(decoded, dict) else None


def _object(item: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = item.get(name)
    return value if isinstance(value, Mapping) else {}
