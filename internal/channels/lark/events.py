"""Lark's message events: read and receive them."""

import asyncio
import logging
from concurrent.futures import Future
from typing import Any, NamedTuple

import msgspec
from cachetools import LRUCache, TTLCache

from internal.agent.domain.chats import edit_id
from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.text import truncate_line
from internal.channels.chat.transport import OnMessage, ReceivedMessage
from internal.channels.lark.api import as_datetime, read_milliseconds
from internal.channels.lark.content.message_content import Mention


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


class _Edited(msgspec.Struct):
    message_id: str = ""
    chat_id: str = ""
    chat_type: str = ""
    update_time: str = ""


class _Edit(_Edited):
    message: _Edited | None = None


class _Event(msgspec.Struct):
    sender: _Sender | None = None
    message: _Body | None = None


class _Recall(msgspec.Struct):
    message_id: str = ""
    chat_id: str = ""
    recall_type: str = ""


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
_edit = msgspec.json.Decoder(_Edit)
_recall = msgspec.json.Decoder(_Recall)
_removal = msgspec.json.Decoder(_Removal)
_REMOVALS = frozenset({"im.chat.member.bot.deleted_v1", "im.chat.disbanded_v1"})


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


class LarkEdit(NamedTuple):
    """A message was edited. What it says is read back from the API.

    `version` tells the edits of a message apart; `created` is the time of the event in milliseconds
    since 1970, None if unknown. `is_direct` is None if the event does not say it.
    """

    message_id: str
    chat_id: str
    version: str
    created: int | None
    header: EventHeader
    is_direct: bool | None = None
    open_id: str = ""

    @property
    def name(self) -> str:
        """The id of this edit."""
        return edit_id(self.message_id, self.version)


class LarkRecall(NamedTuple):
    """A message was recalled: by its sender, or by somebody whom Lark does not name."""

    message_id: str
    chat_id: str
    open_id: str = ""
    by_sender: bool = False

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


LarkEvent = LarkMessage | LarkEdit | LarkRecall | LarkRemoval


def read_event(payload: bytes | str) -> LarkEvent | None:
    """Return the message, edit, recall or removal of an event, None for other events.

    Raises:
        msgspec.DecodeError: The payload is not an event, or it lacks required ids.
    """
    try:
        return _read_envelope(_envelope.decode(payload))
    except RecursionError as error:
        raise msgspec.DecodeError("the event is nested too deep") from error


def _read_envelope(envelope: _Envelope) -> LarkEvent | None:
    match envelope.header.event_type:
        case "im.message.receive_v1":
            return _read_message(envelope.event, envelope.header.tenant_key)
        case "im.message.recalled_v1":
            recall = _recall.decode(envelope.event)
            if not recall.message_id or not recall.chat_id:
                raise msgspec.ValidationError("recall without message_id or chat_id")
            by_sender = recall.recall_type == "message_owner"
            return LarkRecall(recall.message_id, recall.chat_id, by_sender=by_sender)
        case "im.message.updated_v1":
            return _read_edit(envelope)
        case kind if kind in _REMOVALS:
            return _read_removal(envelope)
        case _:
            return None


def _read_edit(envelope: _Envelope) -> LarkEdit:
    event, header = _edit.decode(envelope.event), envelope.header
    edited = event.message or event
    version = edited.update_time or header.event_id
    if not edited.message_id or not edited.chat_id or not version:
        raise msgspec.ValidationError("edit without message_id, chat_id or time")
    return LarkEdit(
        edited.message_id,
        edited.chat_id,
        version,
        read_milliseconds(header.create_time),
        header,
        edited.chat_type == "p2p" if edited.chat_type else None,
    )


def _read_removal(envelope: _Envelope) -> LarkRemoval:
    removal, header = _removal.decode(envelope.event), envelope.header
    if not removal.chat_id or not header.event_id:
        raise msgspec.ValidationError("removal without chat_id or event_id")
    operator = _open_id(removal.operator_id)
    return LarkRemoval(
        header.event_id, removal.chat_id, operator, read_milliseconds(header.create_time)
    )


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


def _open_id(ids: _Ids | None) -> str:
    return (ids.open_id if ids is not None else None) or ""


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
        except (msgspec.DecodeError, RecursionError):
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
        self._overdue: Future[Any] | None = None

    async def receive(self, payload: bytes) -> None:
        """Store a message, an edit, a recall or a removal; other events are ignored.

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
        sent_at = as_datetime(event.created) if isinstance(event, LarkMessage) else None
        received = ReceivedMessage(event.name, event.chat_id, event.open_id, raw, sent_at)
        await self._store(received)
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

    async def _wait(self, storing: Future[Any]) -> None:
        try:
            async with asyncio.timeout(STORE_TIMEOUT_SECONDS):
                await asyncio.wrap_future(storing)
        except TimeoutError:
            # it may still be stored; the next delivery is a duplicate then
            self._overdue = storing
            raise NotStored("the store did not answer in time") from None
