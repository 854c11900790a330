"""Messages that were sent before, as Lark's message API returns them, read as text."""

from collections.abc import Mapping
from typing import Any

from internal.channels.chat.transport import (
    IncomingMessage,
    PastMessage,
    TransportRejected,
)
from internal.channels.lark.api import CONTEXT_POLICY, LarkApi, as_datetime, read_milliseconds
from internal.channels.lark.content.files import as_attachments
from internal.channels.lark.content.message_content import (
    Mention,
    MessageContent,
    decode_object,
    read_content,
)
from internal.channels.lark.history.card_text import card_text

_UNREAD = {
    "sticker": "[a sticker]",
    "folder": "[a folder]",
    "share_chat": "[a shared group]",
    "share_user": "[a shared contact]",
    "merge_forward": "[forwarded messages, not shown]",
}
FILE_PREFIX = "earlier-"
"""Begins the names of earlier files that have none, so that they differ from the message's own."""
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
    is_recalled, message_id = item.get("deleted") is True, str(item.get("message_id") or "")
    content = MessageContent("") if is_recalled else item_content(item)
    return PastMessage(
        message_id=message_id,
        user_id=sender_id if is_person else "",
        text=content.text,
        sent_at=as_datetime(read_milliseconds(str(item.get("create_time") or ""))),
        name=str(sender.get("sender_name") or ""),
        is_own=not is_person and sender_id == app_id,
        is_recalled=is_recalled,
        attachments=as_attachments(content.files, app_id, message_id),
    )


def item_content(item: Mapping[str, Any]) -> MessageContent:
    """Return the content of a message; for other kinds a note that says what it is."""
    kind, content = str(item.get("msg_type") or ""), _object(item, "body").get("content")
    content = content if isinstance(content, str) else ""
    if kind == "interactive":
        text = card_text(decode_object(content))
        is_readable = text and _FAILED_CARD not in text
        return MessageContent(text if is_readable else "[a card without readable text]")
    if kind in _UNREAD:
        return MessageContent(_UNREAD[kind])
    mentions = item.get("mentions")
    named = tuple(
        Mention(str(each.get("key", "")), str(each.get("id", "")), str(each.get("name", "")))
        for each in (mentions if isinstance(mentions, list) else ())
        if isinstance(each, dict)
    )
    read = read_content(kind, content, named, prefix=FILE_PREFIX)
    if read is None:
        return MessageContent(f"[a message of the kind {kind}]")
    names = " ".join(f"[{file.name}]" for file in read.files)
    return read._replace(text=read.text or names)


def _is_earlier(each: PastMessage, message: IncomingMessage) -> bool:
    if each.message_id == message.message_id:
        return False
    return each.sent_at is None or message.sent_at is None or each.sent_at <= message.sent_at


def _object(item: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = item.get(name)
    return value if isinstance(value, Mapping) else {}
