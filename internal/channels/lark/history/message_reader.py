"""Messages that were sent before, as Lark's message API returns them, read as text."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.text import truncate_line
from internal.channels.chat.transport import (
    IncomingMessage,
    PastMessage,
    TransportRejected,
)
from internal.channels.lark.api import CONTEXT_POLICY, LarkApi, as_datetime, read_milliseconds
from internal.channels.lark.content.files import as_attachments
from internal.channels.lark.content.item_text import contact_card, group_card
from internal.channels.lark.content.message_content import (
    Mention,
    MessageContent,
    decode_object,
    read_content,
    without_paragraph_tags,
)
from internal.channels.lark.history.forwarded import BUNDLE, ForwardedMessages

log = logging.getLogger(__name__)

FILE_PREFIX = "earlier-"
"""Begins the names of earlier files that have none, so that they differ from the message's own."""
NAMES_TIMEOUT_SECONDS = 0.5
_MAX_LISTED, _SPARE = 50, 10
_MAX_NAMES = 50  # of one call
_WITHOUT_TEXT = {"interactive": "[a card without readable text]", "merge_forward": BUNDLE}

Item = Mapping[str, Any]


class MessageReader:
    """Reads the messages of the chats of one app."""

    def __init__(self, api: LarkApi, app_id: str) -> None:
        self._api, self._app_id = api, app_id

    async def read(self, message_id: str) -> PastMessage:
        """Return a message with its forwarded or shared content."""
        items = await self._items(message_id)
        past = past_message(items[0], self._app_id)
        if past.is_recalled or not (text := await self._partial_text(items)):
            return past
        return past._replace(text=text, is_bundle=items[0].get("msg_type") == "merge_forward")

    async def read_partial(self, message_id: str) -> str:
        """Return the forwarded or shared content of a message; "" if it has no text."""
        items = await self._items(message_id)
        return "" if items[0].get("deleted") is True else await self._partial_text(items)

    async def read_item(self, message_id: str) -> Item:
        """Return a message as Lark's API returns it."""
        return (await self._items(message_id))[0]

    async def _items(self, message_id: str) -> Sequence[Item]:
        """Return a message, followed by the messages that it forwards."""
        items = await self._api.message_with_forwarded(message_id, CONTEXT_POLICY)
        if not items:
            raise TransportRejected(f"Lark returned no message {message_id}")
        return items

    async def _partial_text(self, items: Sequence[Item]) -> str:
        """Return the text of a message of a kind that only the API shows in full, else ""."""
        item, content = items[0], _content(items[0])
        match item.get("msg_type"):
            case "merge_forward":
                forwarded = ForwardedMessages(str(item.get("message_id") or ""), items, _child_text)
                return forwarded.text(await self._names(forwarded.people))
            case "interactive":
                read = read_content("interactive", content, ())
                return "" if read is None else read.text
            case "share_chat":
                chat_id = str(decode_object(content).get("chat_id") or "")
                return group_card(await self._group_name(chat_id))
            case "share_user":
                user_id = str(decode_object(content).get("user_id") or "")
                return contact_card((await self._names([user_id])).get(user_id, ""))
            case _:
                return ""

    async def _names(self, open_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the names of people that are immediately available."""
        wanted = [each for each in open_ids if each][:_MAX_NAMES]
        if not wanted:
            return {}
        try:
            async with asyncio.timeout(NAMES_TIMEOUT_SECONDS):
                return await self._api.names_of(wanted)
        except (LarkspurError, TimeoutError) as error:  # the ends of their ids are shown
            log.info("names not read", extra={"reason": str(error)})
            return {}

    async def _group_name(self, chat_id: str) -> str:
        if not chat_id:
            return ""
        try:
            async with asyncio.timeout(NAMES_TIMEOUT_SECONDS):
                return await self._api.group_name(chat_id)
        except (LarkspurError, TimeoutError) as error:  # such as a group that the bot is not in
            log.info("name of a group not read", extra={"reason": str(error)})
            return ""

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


def past_message(item: Item, app_id: str) -> PastMessage:
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


def item_content(item: Item) -> MessageContent:
    """Return the content of a message, or a note with its kind if that is unsupported."""
    kind = str(item.get("msg_type") or "")
    read = read_content(kind, _content(item), item_mentions(item), prefix=FILE_PREFIX)
    if read is None:
        return MessageContent(f"[a message of the kind {truncate_line(kind, 40)}]")
    text = without_paragraph_tags(read.text) if item.get("updated") is True else read.text
    names = " ".join(f"[{file.name}]" for file in read.files)
    return read._replace(text=text or names or _WITHOUT_TEXT.get(kind, ""))


def item_mentions(item: Item) -> tuple[Mention, ...]:
    """Return the mentions of a message."""
    mentions = item.get("mentions")
    return tuple(
        Mention(str(each.get("key", "")), str(each.get("id", "")), str(each.get("name", "")))
        for each in (mentions if isinstance(mentions, list) else ())
        if isinstance(each, dict)
    )


def _content(item: Item) -> str:
    """Return the JSON of a message's content."""
    content = _object(item, "body").get("content")
    return content if isinstance(content, str) else ""


def _child_text(item: Item) -> tuple[str, bool]:
    """Return the text of a forwarded message, and whether it has files."""
    content = item_content(item)
    text = content.text.replace(f"[{FILE_PREFIX}", "[")
    return text, bool(content.files)


def _is_earlier(each: PastMessage, message: IncomingMessage) -> bool:
    if each.message_id == message.message_id:
        return False
    return each.sent_at is None or message.sent_at is None or each.sent_at <= message.sent_at


def _object(item: Item, name: str) -> Item:
    value = item.get(name)
    return value if isinstance(value, Mapping) else {}
