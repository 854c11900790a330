"""Lark's events of chats: read and receive them."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

import msgspec
from cachetools import LRUCache, TTLCache

from internal.agent.domain.chats import edit_id
from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.tasks import Rating
from internal.agent.domain.text import truncate_line
from internal.channels.chat.transport import OnMessage, ReceivedMessage, reaction_prefix
from internal.channels.lark.api import as_datetime, read_milliseconds
from internal.channels.lark.content.message_content import Mention
from internal.channels.lark.reactions import rating_of

log = logging.getLogger(__name__)

A = TypeVar("A")
T = TypeVar("T")

CARD_ACTION_EVENT = "card.action.trigger"
MAX_EVENT_KEY_LENGTH = 100
MAX_SUGGESTION_LENGTH = 500
_PLACE = "#"
_FIRST_MILLISECONDS = 10**11
"""Menu events give seconds; a number from here on is in milliseconds."""


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


class _Emoji(msgspec.Struct, frozen=True):
    emoji_type: str = ""


class _Reaction(msgspec.Struct, frozen=True):
    message_id: str = ""
    reaction_type: _Emoji = _Emoji()
    operator_type: str = ""
    user_id: _Ids | None = None
    action_time: str = ""


class _Addition(msgspec.Struct, frozen=True):
    chat_id: str = ""
    operator_id: _Ids | None = None
    operator_tenant_key: str = ""
    name: str = ""


class _Entry(msgspec.Struct, frozen=True):
    chat_id: str = ""
    operator_id: _Ids | None = None
    last_message_id: str | None = None


class _MenuOperator(msgspec.Struct, frozen=True):
    operator_id: _Ids | None = None


class _Menu(msgspec.Struct, frozen=True):
    operator: _MenuOperator = _MenuOperator()
    event_key: str = ""
    timestamp: int = 0


class _Operator(msgspec.Struct, frozen=True):
    open_id: str = ""
    tenant_key: str = ""


class _Action(msgspec.Struct, frozen=True):
    value: Any = None
    form_value: dict[str, Any] | None = None


class _Place(msgspec.Struct, frozen=True):
    open_message_id: str = ""
    open_chat_id: str = ""


class LarkClick(msgspec.Struct, frozen=True):
    """A button or a form of a card that a user activated."""

    operator: _Operator
    action: _Action
    context: _Place


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


_envelope = msgspec.json.Decoder(_Envelope)
_event = msgspec.json.Decoder(_Event)
_edit = msgspec.json.Decoder(_Edit)
_recall = msgspec.json.Decoder(_Recall)
_removal = msgspec.json.Decoder(_Removal)
_reaction = msgspec.json.Decoder(_Reaction)
_addition = msgspec.json.Decoder(_Addition)
_entry = msgspec.json.Decoder(_Entry)
_click = msgspec.json.Decoder(LarkClick)
_menu = msgspec.json.Decoder(_Menu, strict=False)
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
    """An edit of a message. Its text is read from the API.

    `version` distinguishes the edits of a message; `created` is the time of the event in
    milliseconds since 1970, None if unknown. `is_direct` is None if the event omits it.
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
    """The recall of a message by its sender, or by a person whom Lark does not name."""

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


class LarkReaction(NamedTuple):
    """A rating emoji of a person on a message, or its removal, at milliseconds since 1970."""

    message_id: str
    open_id: str
    emoji: str
    rating: Rating
    at: int | None
    is_removed: bool

    @property
    def chat_id(self) -> str:
        """The message: Lark does not name the chat."""
        return self.message_id

    @property
    def name(self) -> str:
        """A stable id of the change; the event's own id may change between deliveries."""
        change = f"{self.emoji}:{self.at}:{'removed' if self.is_removed else 'added'}"
        return f"{reaction_prefix(self.message_id, self.open_id)}{change}"


class LarkAddition(NamedTuple):
    """The bot was added to a group by the user `open_id`."""

    chat_id: str
    open_id: str
    group_name: str
    is_external: bool
    event_id: str

    @property
    def name(self) -> str:
        """The id of the event."""
        return f"event:{self.event_id}"


class LarkEntry(NamedTuple):
    """The user `open_id` opened the direct chat with the bot, which `has_messages` or not."""

    chat_id: str
    open_id: str
    has_messages: bool

    @property
    def name(self) -> str:
        """An id of the chat: Lark reports every opening, and only the first one counts."""
        return f"entered:{self.chat_id}"


class LarkMenuChoice(NamedTuple):
    """The user `open_id` chose an entry of the bot's menu, at milliseconds since 1970."""

    open_id: str
    key: str
    at: int

    @property
    def chat_id(self) -> str:
        """The user: Lark does not name the direct chat."""
        return self.open_id

    @property
    def name(self) -> str:
        """A stable id of the choice; the event's own id may change between deliveries."""
        return f"menu:{self.open_id}:{self.at}:{self.key}"


class SuggestionButton(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The payload of a button that suggests a message. It belongs to one chat and grants nothing.

    `number` distinguishes the buttons of a card.
    """

    suggest: str
    number: int
    chat: str
    direct: bool


class LarkSuggestion(NamedTuple):
    """A suggested message that the user `open_id` chose; `at` is in milliseconds since 1970."""

    card_id: str
    chat_id: str
    open_id: str
    text: str
    direct: bool
    number: int
    is_external: bool
    at: int | None = None

    @property
    def name(self) -> str:
        """An id in which the card's message comes first; each user chooses a button once."""
        return f"{self.card_id}{_PLACE}{self.open_id}:{self.number}"


LarkEvent = (
    LarkMessage
    | LarkEdit
    | LarkRecall
    | LarkRemoval
    | LarkReaction
    | LarkAddition
    | LarkEntry
    | LarkMenuChoice
    | LarkSuggestion
)


def shown_message(message_id: str) -> str:
    """Return the message of Lark that a stored event belongs to; "" for a choice in the menu.

    That of a suggested message is the card with its button.
    """
    return "" if message_id.startswith("menu:") else message_id.partition(_PLACE)[0]


class EventEnvelope:
    """An event of the service: its header, and its content, which is decoded when it is read."""

    def __init__(self, payload: bytes | str) -> None:
        """Decode the header.

        Raises:
            msgspec.DecodeError: The payload is not an event.
        """
        self._decoded = _decode(_envelope.decode, payload)
        self.raw = payload if isinstance(payload, str) else payload.decode("utf-8", "replace")
        """The event as it is stored."""
        self.header = self._decoded.header
        self.is_click = self.header.event_type == CARD_ACTION_EVENT

    def read(self) -> LarkEvent | None:
        """Return the content of an event of a chat, or None if it is another event.

        Raises:
            msgspec.DecodeError: It lacks required ids, or is malformed.
        """
        return _decode(_read_envelope, self._decoded)

    def read_click(self) -> LarkClick:
        """Return a click on a card.

        Raises:
            msgspec.DecodeError: It is malformed.
        """
        return _decode(_click.decode, self._decoded.event)


def read_event(payload: bytes | str) -> LarkEvent | None:
    """Return an event of a chat, or None if it is another event.

    Raises:
        msgspec.DecodeError: The payload is not an event, or it lacks required ids.
    """
    return EventEnvelope(payload).read()


def open_event(payload: bytes) -> EventEnvelope | None:
    """Return a received event, or None if it is malformed, which is logged.

    A malformed event is acknowledged: a second delivery would not differ.
    """
    try:
        return EventEnvelope(payload)
    except msgspec.DecodeError as error:
        _log_malformed(error)
        return None


def _log_malformed(error: msgspec.DecodeError) -> None:
    log.warning("malformed event", extra={"reason": truncate_line(str(error), 200)})


def _decode(decode: Callable[[A], T], content: A) -> T:
    try:
        return decode(content)
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
        case kind if reader := _READERS.get(kind):
            return reader(envelope)
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


def _read_reaction(envelope: _Envelope) -> LarkReaction | None:
    """Return the rating of a reaction; None if it rates nothing or a bot added it."""
    event = _reaction.decode(envelope.event)
    open_id, emoji = _open_id(event.user_id), event.reaction_type.emoji_type
    rating = rating_of(emoji)
    if event.operator_type != "user" or rating is None:
        return None
    if not event.message_id or not open_id:
        raise msgspec.ValidationError("reaction without message_id or user_id")
    is_removed = envelope.header.event_type == "im.message.reaction.deleted_v1"
    at = read_milliseconds(event.action_time)
    return LarkReaction(event.message_id, open_id, emoji, rating, at, is_removed)


def _read_addition(envelope: _Envelope) -> LarkAddition:
    event, header = _addition.decode(envelope.event), envelope.header
    if not event.chat_id or not header.event_id:
        raise msgspec.ValidationError("addition without chat_id or event_id")
    return LarkAddition(
        event.chat_id,
        _open_id(event.operator_id),
        event.name,
        event.operator_tenant_key != header.tenant_key,
        header.event_id,
    )


def _read_entry(envelope: _Envelope) -> LarkEntry:
    event = _entry.decode(envelope.event)
    if not event.chat_id or not _open_id(event.operator_id):
        raise msgspec.ValidationError("opened chat without chat_id or operator_id")
    return LarkEntry(event.chat_id, _open_id(event.operator_id), bool(event.last_message_id))


def _read_menu_choice(envelope: _Envelope) -> LarkMenuChoice:
    event = _menu.decode(envelope.event)
    open_id = _open_id(event.operator.operator_id)
    if not open_id or len(event.event_key) > MAX_EVENT_KEY_LENGTH:
        raise msgspec.ValidationError("menu event without operator_id, or with a long event_key")
    seconds = event.timestamp
    at = seconds * 1000 if seconds < _FIRST_MILLISECONDS else seconds
    return LarkMenuChoice(open_id, event.event_key, at)


def _read_suggestion(envelope: _Envelope) -> LarkSuggestion | None:
    return suggestion_of(_click.decode(envelope.event), envelope.header)


def suggestion_of(click: LarkClick, header: EventHeader) -> LarkSuggestion | None:
    """Return the chosen suggested message, or None if another button was clicked."""
    chosen = read_suggestion(
        click.action.value,
        card_id=click.context.open_message_id,
        chat_id=click.context.open_chat_id,
        open_id=click.operator.open_id,
        is_external=click.operator.tenant_key != header.tenant_key,
    )
    at = read_milliseconds(header.create_time)
    return None if chosen is None else chosen._replace(at=at)


def read_suggestion(
    value: Any, *, card_id: str, chat_id: str, open_id: str, is_external: bool
) -> LarkSuggestion | None:
    """Return the suggestion of a click; None if the button or the chat is another one."""
    try:
        button = msgspec.convert(value, SuggestionButton)
    except msgspec.ValidationError:
        return None
    text = button.suggest.strip()
    is_valid = bool(card_id and open_id and text) and len(text) <= MAX_SUGGESTION_LENGTH
    if not is_valid or button.chat != chat_id:
        return None
    return LarkSuggestion(
        card_id, chat_id, open_id, text, button.direct, button.number, is_external
    )


_READERS: dict[str, Callable[[_Envelope], LarkEvent | None]] = {
    **dict.fromkeys(_REMOVALS, _read_removal),
    "im.message.updated_v1": _read_edit,
    "im.message.reaction.created_v1": _read_reaction,
    "im.message.reaction.deleted_v1": _read_reaction,
    "im.chat.member.bot.added_v1": _read_addition,
    "im.chat.access_event.bot_p2p_chat_entered_v1": _read_entry,
    "application.bot.menu_v6": _read_menu_choice,
    CARD_ACTION_EVENT: _read_suggestion,
}


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


_MAX_REPORTED = 256


class EventSource:
    """Accepts the events of one app in its tenant; Lark's client checks neither.

    While `tenant_key` is unknown, it becomes that of the first event of the app.
    """

    def __init__(self, app_id: str, tenant_key: str = "") -> None:
        self.tenant_key = tenant_key
        self._app_id = app_id
        self._reported: LRUCache[tuple[str, str], bool] = LRUCache(_MAX_REPORTED)

    def accepts(self, header: EventHeader) -> bool:
        """Return False for an event of another app or tenant; each source is logged once."""
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

    async def receive(self, envelope: EventEnvelope) -> None:
        """Store an event of a chat; others are ignored, such as reactions that rate nothing.

        May be called again before it returns. Messages are stored in call order: nothing is awaited
        before. A malformed event is logged and acknowledged: a second delivery would not differ.

        Raises:
            NotStored: it could not be stored in time. While the store is stuck or too many events
                wait, it is raised at once, so that memory stays bounded.
        """
        try:
            event = envelope.read()
        except msgspec.DecodeError as error:
            _log_malformed(error)
            return
        if event is None or event.name in self._known:
            return
        sent_at = as_datetime(event.created) if isinstance(event, LarkMessage) else None
        received = ReceivedMessage(
            event.name, event.chat_id, event.open_id, envelope.raw, sent_at, event
        )
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
