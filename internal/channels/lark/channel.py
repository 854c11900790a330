"""The Lark channel: the transport of one app, and its composition with the chat application."""

import asyncio
import logging
from collections.abc import Container
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Any

import msgspec

from internal.agent.app.mentions import ChatMember
from internal.agent.app.received_messages import ReceivedMessages
from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.ports.attachments import RemoteContent
from internal.agent.ports.runtime import Clock
from internal.channels.chat.channel import ChatApp, ChatChannel
from internal.channels.chat.transport import (
    ChatEvent,
    ChatOpened,
    ChatPost,
    EditedMessage,
    IncomingMessage,
    MenuChoice,
    MessageReaction,
    OnAction,
    OnMessage,
    PastMessage,
    QuestionContent,
    Reaction,
    RecalledMessage,
    ReceivedMessage,
    RemovedFromChat,
    RunContent,
    SentPost,
    StoredEvent,
    TransportHealth,
    TransportRejected,
    TransportUnavailable,
)
from internal.channels.lark.api import (
    FINAL_POLICY,
    PROGRESS_POLICY,
    LarkApi,
    LarkClient,
    LarkRejected,
    as_datetime,
    as_json,
    is_open_id,
)
from internal.channels.lark.card_actions import CardActionHandler
from internal.channels.lark.connection import AppCredentials, ConnectionTimeouts, LarkConnection
from internal.channels.lark.content.files import as_attachments, open_file
from internal.channels.lark.content.message_content import (
    CARRIED_KINDS,
    PARTIAL_KINDS,
    read_content,
)
from internal.channels.lark.directory import BotIdentity
from internal.channels.lark.events import (
    EventReceiver,
    EventSource,
    LarkAddition,
    LarkEdit,
    LarkEntry,
    LarkEvent,
    LarkMenuChoice,
    LarkMessage,
    LarkReaction,
    LarkRecall,
    LarkRemoval,
    LarkSuggestion,
    open_event,
    read_event,
    shown_message,
)
from internal.channels.lark.history.edited import as_received
from internal.channels.lark.history.message_reader import MessageReader
from internal.channels.lark.history.missed_messages import ChatHistories, HistoryLimits
from internal.channels.lark.message_format import (
    MAX_TEXT_EDITS,
    progress_card,
    progress_text,
    send_uuid,
)
from internal.channels.lark.network import LarkNetwork
from internal.channels.lark.replies import GONE_CODES, ReplySender
from internal.channels.lark.silence_watch import SilenceTimes, SilenceWatch
from internal.i18n.chat import ChatTexts
from internal.settings.chat import ChatChannelSettings
from internal.settings.lark import LarkSettings

log = logging.getLogger(__name__)

_EMOJI = {"received": "OnIt", "done": "DONE"}


class LarkTransport:
    """One Lark app. Nothing is imported from Lark's SDK and nothing is connected before `run`."""

    name = "lark"

    def __init__(
        self,
        credentials: AppCredentials,
        settings: ChatChannelSettings,
        clock: Clock,
        *,
        texts: ChatTexts,
        timeouts: ConnectionTimeouts | None = None,
        silence: SilenceTimes | None = None,
        limits: HistoryLimits | None = None,
    ) -> None:
        self.app = credentials.app_id
        self._settings, self._texts = settings, texts
        self._client = LarkClient(credentials, clock)
        self._api = LarkApi(self._client)
        self.identity = BotIdentity(self._api)
        self._reader = MessageReader(self._api, self.app)
        self._replies = ReplySender(self._api, self.app, replaces_texts=settings.progress == "text")
        self._connection = LarkConnection(
            credentials, self._on_event, clock, timeouts, on_open=self._on_open
        )
        histories = ChatHistories(self._api, self.app, clock, limits or HistoryLimits())
        self._watch = SilenceWatch(self._connection, histories, clock, silence or SilenceTimes())
        self._source, self._is_tenant_known = EventSource(self.app), False
        self._receiver: EventReceiver | None = None
        self._last_event = ""
        self._actions: CardActionHandler | None = None

    @property
    def health(self) -> TransportHealth:
        """The state of the connection, and the events that it did not deliver."""
        watch = self._watch
        return TransportHealth(
            *self._connection.state,
            notes=watch.notes,
            losses=watch.losses,
            last_event=self._last_event,
        )

    async def run(self, on_message: OnMessage, on_action: OnAction) -> None:
        """Stay connected until cancelled.

        Raises:
            TransportUnavailable: the client cannot be used; it may be tried again.
        """
        self._receiver = EventReceiver(on_message)
        self._actions = CardActionHandler(self.app, self._texts, on_action)
        await self._find_tenant()
        self._connection.start()
        try:
            await self.identity.fetch()
            await self._find_tenant()
            await self._connection.wait()
            raise TransportUnavailable(self._connection.state.why)
        finally:
            await self._connection.stop()

    async def follow_history(self, received: ReceivedMessages, on_message: OnMessage) -> None:
        """Watch for a silent connection; in groups the app needs the scope for all messages."""
        if self._settings.catch_up:
            await self._watch.run(received, on_message)
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Close the HTTP connections."""
        await self._client.close()

    async def parse(self, stored: StoredEvent) -> ChatEvent | None:
        """Return a parsed event. A group message waits until the bot's identity is known."""
        try:
            event = _decoded(stored)
        except msgspec.DecodeError:
            return None
        match event:
            case None:
                return None
            case LarkEdit() | LarkRecall() | LarkRemoval() as change:
                return _change(change)
            case LarkMessage() as message:
                direct = message.direct
                bot = self.identity.open_id if direct else await self.identity.wait()
                return incoming_message(message, bot, self.app)
            case other:
                return _chat_event(other)

    async def read_edited(self, edit: StoredEvent, known: StoredEvent | None) -> ReceivedMessage:
        """Return an edited message; the app needs a permission to read it.

        Raises:
            TransportRejected: Lark does not return it, or it is no longer a person's message.
        """
        event, before = _decoded(edit), _decoded(known) if known else None
        if not isinstance(event, LarkEdit):
            raise TransportRejected("the event is not an edit")
        try:
            item = await self._reader.read_item(event.message_id)
        except TransportUnavailable as error:
            error.isolated = await self._api.is_working("")
            raise
        is_direct = before.direct if isinstance(before, LarkMessage) else event.is_direct
        if is_direct is None:
            is_direct = await self._api.is_direct(event.chat_id)
        return as_received(event, item, is_direct=is_direct)

    async def complete(self, message: IncomingMessage) -> IncomingMessage:
        """Return a message with its forwarded or shared content, which requires a permission.

        Content that Lark refuses to return stays as in the event.
        """
        try:
            text = await self._reader.read_partial(message.message_id)
        except TransportRejected as error:
            log.info("message not readable", extra={"reason": str(error)})
            text = ""
        except TransportUnavailable as error:
            # a message that alone cannot be read must not hold up its chat
            error.isolated = await self._api.is_working("")
            raise
        if message.text:
            return message._replace(text=text or message.text, is_partial=False)
        carried = text or message.forwarded
        return message._replace(text="" if carried else None, forwarded=carried, is_partial=False)

    async def send(self, post: ChatPost, *, idempotency_key: str, simplicity: int = 0) -> SentPost:
        """Send a post; progress is tried once, because replies are more important."""
        content, post = post.content, post._replace(reply_to=shown_message(post.reply_to))
        if not isinstance(content, RunContent):
            return await self._replies.send(post, content, idempotency_key, simplicity=simplicity)
        uuid = send_uuid(idempotency_key, "progress", 0)
        if self._settings.progress == "text":
            kind, body = "text", as_json({"text": progress_text(content)})
        else:
            kind, body = "interactive", progress_card(content)
        policy = PROGRESS_POLICY
        if not post.reply_to:
            return await self._api.create(post.chat_id, kind, body, uuid=uuid, policy=policy)
        return await self._api.reply(post.reply_to, kind, body, uuid=uuid, policy=policy)

    async def find_sent(
        self, post: ChatPost, since: datetime, *, known: Container[str] = (), simplicity: int = 0
    ) -> SentPost | None:
        """Look for a reply among the messages of its chat or thread."""
        content, post = post.content, post._replace(reply_to=shown_message(post.reply_to))
        if isinstance(content, RunContent):
            return None
        return await self._replies.find(post, content, since, known=known, simplicity=simplicity)

    async def update(self, message_id: str, content: QuestionContent | RunContent) -> None:
        """Replace a card or a text; the last state of a run is tried more than once."""
        if isinstance(content, QuestionContent):
            await self._replies.update(message_id, content)
            return
        policy = FINAL_POLICY if content.is_final else PROGRESS_POLICY
        if self._settings.progress == "card":
            await self._api.patch_card(message_id, progress_card(content), policy)
        elif content.updates < MAX_TEXT_EDITS or content.is_final:
            text = as_json({"text": progress_text(content)})
            await self._api.edit(message_id, "text", text, policy)

    async def remove(self, message_id: str) -> None:
        """Recall a message of the bot."""
        try:
            await self._api.recall(message_id)
        except LarkRejected as error:
            if error.code not in GONE_CODES:
                raise

    async def urge(self, message_id: str, user_id: str) -> None:
        """Make a message urgent for a user; the app needs a permission for it."""
        await self._api.urge(message_id, user_id)

    async def add_reaction(self, message_id: str, reaction: Reaction) -> str:
        """Add an emoji to a message."""
        working = self._settings.working_emoji(message_id)
        emoji = working if reaction == "working" else _EMOJI[reaction]
        if not (shown := shown_message(message_id)):
            raise TransportRejected("it is not a message that can have a reaction")
        return await self._api.react(shown, emoji)

    async def remove_reaction(self, message_id: str, reaction_id: str) -> None:
        """Remove an emoji of the bot."""
        await self._api.unreact(shown_message(message_id), reaction_id)

    def open_file(self, uri: str) -> AbstractAsyncContextManager[RemoteContent]:
        """Download a file of a message; the app needs a permission to read messages."""
        return open_file(self._client, uri)

    def is_user(self, listed: str) -> bool:
        """Return True for an open_id."""
        return is_open_id(listed)

    async def display_name(self, user_id: str) -> str:
        """Return a user's name; the app needs the contact permission for it."""
        return await self._api.name_of(user_id)

    def known_time_zone(self, user_id: str) -> str:
        """Return the time zone that came with a user's name."""
        return self._api.time_zones.get(user_id, "")

    async def list_members(self, chat_id: str) -> list[ChatMember]:
        """Return the people in a chat; the app needs the permission to read members."""
        return [ChatMember(*each) async for each in self._api.members(chat_id)]

    async def read_message(self, message_id: str) -> PastMessage:
        """Return a message; the app needs a permission to read messages."""
        return await self._reader.read(message_id)

    async def read_recent(self, message: IncomingMessage, limit: int) -> list[PastMessage]:
        """Return earlier messages; in groups the app needs the one for all messages."""
        return await self._reader.read_recent(message, limit)

    async def has_posted_in(self, thread_id: str) -> bool:
        """Return True if one of the newest messages of a thread is the bot's."""
        return await self._reader.has_own_in(thread_id)

    def _on_open(self) -> None:
        self._watch.wake()

    async def _find_tenant(self) -> None:
        """Ask for the tenant once; without an answer it is that of the first event."""
        if not self._is_tenant_known:
            try:
                self._source.tenant_key = await self._api.tenant_key()
                self._is_tenant_known = True
            except LarkspurError as error:
                log.info("tenant of the app unknown", extra={"reason": str(error)})

    async def _on_event(self, payload: bytes) -> dict[str, Any] | None:
        """Handle an event, in the connection's loop; return the body of its acknowledgement."""
        if self._actions is None or self._receiver is None:
            return None  # the connection starts after both exist
        envelope = open_event(payload)
        if envelope is not None and not self._source.accepts(envelope.header):
            return None
        self._last_event = rfc3339(datetime.now(UTC))
        if envelope is None:
            return None
        if envelope.is_click:
            return await self._actions.handle(envelope)
        await self._receiver.receive(envelope)
        return None


def _decoded(stored: StoredEvent) -> LarkEvent | None:
    """Return an event, decoded at most once, or None if it is not an event of a chat.

    Raises:
        msgspec.DecodeError: it is malformed.
    """
    if stored.decoded is None:
        stored.decoded = read_event(stored.raw)
    return stored.decoded if isinstance(stored.decoded, LarkEvent) else None


def _change(event: LarkEdit | LarkRecall | LarkRemoval) -> ChatEvent:
    """Return the change of a message or a chat that was known before."""
    match event:
        case LarkEdit(message_id):
            return EditedMessage(message_id)
        case LarkRecall(message_id, by_sender=by_sender):
            return RecalledMessage(message_id, by_sender=by_sender)
        case LarkRemoval():
            return RemovedFromChat(as_datetime(event.created))


def _chat_event(
    event: LarkReaction | LarkAddition | LarkEntry | LarkMenuChoice | LarkSuggestion,
) -> ChatEvent:
    match event:
        case LarkReaction(message_id, open_id, emoji, rating, at, is_removed):
            when = as_datetime(at)
            return MessageReaction(message_id, open_id, emoji, rating, when, is_removed)
        case LarkAddition(_, open_id, name, is_external):
            return ChatOpened(open_id, is_direct=False, name=name, is_external=is_external)
        case LarkEntry(_, open_id, has_messages):
            return ChatOpened(open_id, is_direct=True, is_known=has_messages)
        case LarkMenuChoice(open_id, key, at):
            return MenuChoice(open_id, key, as_datetime(at))
        case LarkSuggestion():
            return IncomingMessage(
                event.name,
                event.chat_id,
                event.open_id,
                event.text,
                is_direct=event.direct,
                is_mention=True,
                is_from_person=True,
                sent_at=as_datetime(event.at),
                is_external=event.is_external,
            )


def incoming_message(message: LarkMessage, bot: str, app: str) -> IncomingMessage:
    """Return a message to an app as the chat application sees it; `bot` is the bot's open_id."""
    content = read_content(message.kind, message.content, message.mentions, bot=bot)
    text, files = (None, ()) if content is None else content
    is_carried = message.kind in CARRIED_KINDS
    is_place_in_thread = bool(message.thread_id) and message.parent_id == message.root_id
    return IncomingMessage(
        message_id=message.message_id,
        chat_id=message.chat_id,
        user_id=message.open_id,
        text="" if is_carried else text,
        is_direct=message.direct,
        is_mention=message.mentioned(bot),
        is_from_person=message.by_person and message.open_id != bot,
        is_from_bot=not message.by_person and message.open_id != bot,
        sent_at=as_datetime(message.created),
        quoted_id="" if is_place_in_thread else message.parent_id,
        thread_id=message.thread_id,
        thread_root_id=message.root_id if message.thread_id else "",
        is_external=message.is_external,
        attachments=as_attachments(files, app, message.message_id) if files else (),
        forwarded=(text or "") if is_carried else "",
        is_partial=message.kind in PARTIAL_KINDS,
    )


def read_credentials(settings: LarkSettings) -> AppCredentials | None:
    """Return the credentials of the configured app and the way to it; None if it is not enabled."""
    if not settings.enabled or settings.app_id is None or settings.app_secret is None:
        return None
    secret = settings.app_secret.get_secret_value()
    network = LarkNetwork(settings.proxy_url, settings.no_proxy, settings.ca_file)
    return AppCredentials(settings.app_id, secret, settings.origin, network)


def create_lark_channel(app: ChatApp, settings: LarkSettings) -> ChatChannel | None:
    """Return the channel of the configured app; None if it is not enabled.

    Raises:
        TransportUnavailable: the file with certificates cannot be used.
    """
    credentials = read_credentials(settings)
    if credentials is None:
        return None
    credentials.network.tls_context()
    transport = LarkTransport(credentials, settings, app.clock, texts=app.texts)
    return ChatChannel(app, settings, transport)
