"""Lark's message events: receive them, and read their content as text for the model."""

import asyncio
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from cachetools import LRUCache, TTLCache

from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.text import truncate_line
from internal.channels.chat.transport import OnMessage, ReceivedMessage

_KEY = re.compile(r"@_user_\d+|@_all")
_MILLISECONDS = re.compile(r"\d{13}")


def describe_unseen(what: str) -> str:
    """Return what the model reads in place of something that it cannot be shown."""
    return f"[{what}: not visible to you yet]"


_FIXED = {
    "img": describe_unseen("image"),
    "media": describe_unseen("video"),
    "hr": "\n---\n",
}
_MEDIA_TAGS = frozenset({"img", "media"})
_BLANKS = re.compile(r"[ \t]{2,}")


class _Ids(msgspec.Struct):
    open_id: str | None = None


class _Sender(msgspec.Struct):
    sender_type: str = "user"
    sender_id: _Ids | None = None
    tenant_key: str = ""


class _Mention(msgspec.Struct):
    key: str = ""
    id: _Ids | None = None
    name: str = ""


class _Body(msgspec.Struct):
    message_id: str = ""
    chat_id: str = ""
    chat_type: str = ""
    message_type: str = ""
    content: str = ""
    create_time: str = ""
    parent_id: str = ""
    root_id: str = ""
    thread_id: str = ""
    mentions: list[_Mention] | None = None


class _Event(msgspec.Struct):
    sender: _Sender | None = None
    message: _Body | None = None


class _Recall(msgspec.Struct):
    message_id: str = ""
    chat_id: str = ""


class _Removal(msgspec.Struct):
    chat_id: str = ""
    operator_id: _Ids | None = None


class EventHeader(msgspec.Struct, frozen=True):
    """The type and the id of an event, and the app and the tenant that it belongs to."""

    event_type: str = ""
    event_id: str = ""
    create_time: str = ""
    app_id: str = ""
    tenant_key: str = ""


class _Envelope(msgspec.Struct):
    header: EventHeader = EventHeader()
    event: msgspec.Raw = msgspec.Raw(b"{}")


class _HeaderOnly(msgspec.Struct):
    header: EventHeader = EventHeader()


_envelope = msgspec.json.Decoder(_Envelope)
_event = msgspec.json.Decoder(_Event)
_recall = msgspec.json.Decoder(_Recall)
_removal = msgspec.json.Decoder(_Removal)
_REMOVALS = frozenset({"im.chat.member.bot.deleted_v1", "im.chat.disbanded_v1"})


class Mention(NamedTuple):
    """A mentioned person or bot; `key` is its placeholder in the text."""

    key: str
    open_id: str
    name: str


class LarkMessage(NamedTuple):
    """A message of a person or a bot.

    `created` is in milliseconds since 1970, None if unknown. `parent_id` is the quoted message,
    `thread_id` its thread and `root_id` the first message of the thread or of the quotes; "" for
    none. In a thread, Lark reports the root as the parent of every message.
    """

    message_id: str
    chat_id: str
    direct: bool
    kind: str
    content: str
    open_id: str
    by_person: bool
    created: int | None
    mentions: tuple[Mention, ...] = ()
    parent_id: str = ""
    root_id: str = ""
    thread_id: str = ""
    is_external: bool = False
    """The sender belongs to another tenant."""

    @property
    def name(self) -> str:
        """The message's id."""
        return self.message_id

    def mentioned(self, open_id: str) -> bool:
        """Return True if this person or bot is mentioned."""
        return any(mention.open_id == open_id for mention in self.mentions)


class LarkRecall(NamedTuple):
    """A message was recalled; Lark does not say by whom."""

    message_id: str
    chat_id: str
    open_id: str = ""

    @property
    def name(self) -> str:
        """A stable id of the recall; the event's own id may change between deliveries."""
        return f"recall:{self.message_id}"


class LarkRemoval(NamedTuple):
    """The bot was removed from a group, or the group was disbanded, by the user `open_id`.

    `created` is in milliseconds since 1970, None if unknown.
    """

    event_id: str
    chat_id: str
    open_id: str
    created: int | None

    @property
    def name(self) -> str:
        """The id of the event."""
        return f"event:{self.event_id}"


def read_event(payload: bytes | str) -> LarkMessage | LarkRecall | LarkRemoval | None:
    """Return the message, recall or removal of an event, None for other events.

    Raises:
        msgspec.DecodeError: The payload is not an event, or it lacks required ids.
    """
    envelope = _envelope.decode(payload)
    match envelope.header.event_type:
        case "im.message.receive_v1":
            return _read_message(envelope.event, envelope.header.tenant_key)
        case "im.message.recalled_v1":
            recall = _recall.decode(envelope.event)
            if not recall.message_id or not recall.chat_id:
                raise msgspec.ValidationError("recall without message_id or chat_id")
            return LarkRecall(recall.message_id, recall.chat_id)
        case kind if kind in _REMOVALS:
            return _read_removal(envelope)
        case _:
            return None


def _read_removal(envelope: _Envelope) -> LarkRemoval:
    removal, header = _removal.decode(envelope.event), envelope.header
    if not removal.chat_id or not header.event_id:
        raise msgspec.ValidationError("removal without chat_id or event_id")
    operator = _open_id(removal.operator_id)
    return LarkRemoval(
        header.event_id, removal.chat_id, operator, read_milliseconds(header.create_time)
    )


def read_milliseconds(text: str) -> int | None:
    """Return a time of Lark in milliseconds since 1970; None if it is implausible."""
    return int(text) if _MILLISECONDS.fullmatch(text) else None


def as_datetime(milliseconds: int | None) -> datetime | None:
    """Return a time in milliseconds since 1970 as a datetime in UTC."""
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)


def _read_message(raw: msgspec.Raw, tenant_key: str) -> LarkMessage:
    event = _event.decode(raw)
    body, sender = event.message, event.sender or _Sender()
    if body is None or not body.message_id or not body.chat_id:
        raise msgspec.ValidationError("message without message_id or chat_id")
    return LarkMessage(
        message_id=body.message_id,
        chat_id=body.chat_id,
        direct=body.chat_type == "p2p",
        kind=body.message_type,
        content=body.content,
        open_id=_open_id(sender.sender_id),
        by_person=sender.sender_type == "user",
        created=read_milliseconds(body.create_time),
        mentions=tuple(Mention(m.key, _open_id(m.id), m.name) for m in body.mentions or ()),
        parent_id=body.parent_id,
        root_id=body.root_id,
        thread_id=body.thread_id,
        is_external=sender.tenant_key != tenant_key,
    )


def message_text(message: LarkMessage, bot: str) -> str | None:
    """Return the text, with names for mentions and without the bot's own.

    Returns None for unsupported types and "" for malformed content.
    """
    return content_text(message.kind, message.content, message.mentions, bot)


def content_text(kind: str, content: str, mentions: Sequence[Mention], bot: str = "") -> str | None:
    """Return the text of a message's content, with names for mentions but those of `bot`.

    Returns None for unsupported types and "" for malformed content.
    """
    reader = _READERS.get(kind)
    if reader is None:
        return None
    names = {
        mention.key: "" if mention.open_id == bot else f"@{' '.join(mention.name.split())}"
        for mention in mentions
    }
    return reader(_read_content(content), names).strip()


def has_media(message: LarkMessage) -> bool:
    """Return True for a rich text with pictures or videos."""
    if message.kind != "post":
        return False
    return any(
        part.get("tag") in _MEDIA_TAGS
        for row in _rows(_post_body(_read_content(message.content)))
        for part in row
    )


def _read_content(content: str) -> dict[str, Any]:
    try:
        decoded = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return {}
    return decoded if isinstance(decoded, dict) else {}


def _open_id(ids: _Ids | None) -> str:
    return (ids.open_id if ids is not None else None) or ""


def _replace_mentions(text: str, names: Mapping[str, str]) -> str:
    """Replace mention keys in one pass, since a name may look like a key."""
    if not _KEY.search(text):
        return text
    named = _KEY.sub(lambda key: names.get(key[0], "@all" if key[0] == "@_all" else key[0]), text)
    return _BLANKS.sub(" ", named)


def _text(content: dict[str, Any], names: Mapping[str, str]) -> str:
    text = content.get("text")
    return _replace_mentions(text, names) if isinstance(text, str) else ""


def _post(content: dict[str, Any], names: Mapping[str, str]) -> str:
    """Return a rich text as Markdown."""
    content = _post_body(content)
    title = content.get("title")
    lines = [f"# {title}\n"] if isinstance(title, str) and title.strip() else []
    lines += ("".join(_part(part, names) for part in row) for row in _rows(content))
    return "\n".join(lines)


def _post_body(content: dict[str, Any]) -> dict[str, Any]:
    """Return a rich text without its language level, if it has one."""
    if "content" in content:
        return content
    return next((each for each in content.values() if isinstance(each, dict)), {})


def _rows(content: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    rows = content.get("content")
    return [
        [part for part in row if isinstance(part, dict)] if isinstance(row, list) else []
        for row in (rows if isinstance(rows, list) else ())
    ]


def _part(part: dict[str, Any], names: Mapping[str, str]) -> str:
    def field(name: str) -> str:
        value = part.get(name)
        return value if isinstance(value, str) else ""

    match tag := field("tag"):
        case "at":
            key = field("user_id")
            other = "all" if key in {"all", "@_all"} else field("user_name")
            return names.get(key, f"@{other}")
        case "a":
            return f"[{field('text')}]({field('href')})"
        case "emotion":
            return f":{field('emoji_type')}:"
        case "code_block":
            return f"\n```{field('language').lower()}\n{field('text')}\n```\n"
        case _:
            return _FIXED.get(tag) or _apply_styles(
                _replace_mentions(field("text"), names), part.get("style")
            )


def _apply_styles(text: str, styles: object) -> str:
    marks = {"bold": "**", "italic": "*", "lineThrough": "~~"}
    for style in styles if isinstance(styles, list) else ():
        mark = marks.get(style, "") if isinstance(style, str) and text.strip() else ""
        text = f"{mark}{text}{mark}"
    return text


_READERS: Mapping[str, Callable[[dict[str, Any], Mapping[str, str]], str]] = {
    "text": _text,
    "post": _post,
}


log = logging.getLogger(__name__)

_header = msgspec.json.Decoder(_HeaderOnly)
_MAX_REPORTED = 256


class EventSource:
    """Accepts the events of one app in its tenant; Lark's client checks neither.

    While `tenant_key` is unknown, it becomes that of the first event of the app.
    """

    def __init__(self, app_id: str, tenant_key: str = "") -> None:
        self.tenant_key = tenant_key
        self._app_id = app_id
        self._reported: LRUCache[tuple[str, str], bool] = LRUCache(_MAX_REPORTED)

    def accepts(self, payload: bytes) -> bool:
        """Return False for an event of another app or tenant; each source is logged once."""
        try:
            header = _header.decode(payload).header
        except msgspec.DecodeError:
            return True  # the receiver reports malformed events
        if header.app_id == self._app_id and header.tenant_key:
            self.tenant_key = self.tenant_key or header.tenant_key
            if header.tenant_key == self.tenant_key:
                return True
        source = (header.app_id, header.tenant_key)
        if source not in self._reported:
            self._reported[source] = True
            names = {"app_id": header.app_id, "tenant_key": header.tenant_key}
            details = {name: truncate_line(value, 80) for name, value in names.items()}
            log.warning("events of another app or tenant are refused", extra=details)
        return False


STORE_TIMEOUT_SECONDS = 2.0
"""Lark waits three seconds for the acknowledgement."""
MAX_STORING = 1_000
_CACHE_SIZE, _CACHE_SECONDS = 2_048, 600.0


class NotStored(LarkspurError):
    """The message is not stored yet; Lark must send it again."""


class EventReceiver:
    """Stores the events of a connection, in the connection's loop."""

    def __init__(self, on_message: OnMessage) -> None:
        self._on_message = on_message
        self._known: TTLCache[str, bool] = TTLCache(_CACHE_SIZE, _CACHE_SECONDS)
        self._storing = 0
        self._overdue: Future[bool] | None = None

    async def receive(self, payload: bytes) -> None:
        """Store a message, a recall or a removal; other events are ignored.

        May be called again before it returns. Messages are stored in call order: nothing is awaited
        before. A malformed event is logged and acknowledged: a second delivery would not differ.

        Raises:
            NotStored: it could not be stored in time. While the store is stuck or too many events
                wait, it is raised at once, so that memory stays bounded.
        """
        try:
            event = read_event(payload)
        except msgspec.DecodeError as error:
            log.warning("malformed event", extra={"reason": truncate_line(str(error), 200)})
            return
        if event is None or event.name in self._known:
            return
        raw = payload.decode("utf-8", "replace")
        await self._store(ReceivedMessage(event.name, event.chat_id, event.open_id, raw))
        self._known[event.name] = True

    async def _store(self, message: ReceivedMessage) -> None:
        if self._overdue is not None and not self._overdue.done():
            raise NotStored("the store is stuck")
        if self._storing >= MAX_STORING:
            raise NotStored("too many events wait to be stored")
        self._storing += 1
        try:
            await self._wait(self._on_message(message))
        except LarkspurError as error:
            raise NotStored(str(error)) from error
        finally:
            self._storing -= 1

    async def _wait(self, storing: Future[bool]) -> None:
        try:
            async with asyncio.timeout(STORE_TIMEOUT_SECONDS):
                await asyncio.wrap_future(storing)
        except TimeoutError:
            # it may still be stored; the next delivery is a duplicate then
            self._overdue = storing
            raise NotStored("the store did not answer in time") from None
