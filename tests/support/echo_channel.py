"""A chat service in memory and its transport: the smallest complete chat channel."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Container
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from internal.agent.app.mentions import ChatMember
from internal.agent.app.received_messages import ReceivedMessages
from internal.agent.domain.chats import edit_id
from internal.agent.domain.errors import LarkspurError, RemoteFileUnavailable
from internal.agent.ports.attachments import RemoteContent
from internal.channels.chat.transport import (
    ActionResult,
    ChatEvent,
    ChatPost,
    Content,
    EditedMessage,
    IncomingMessage,
    OnAction,
    OnMessage,
    PastMessage,
    QuestionContent,
    Reaction,
    RecalledMessage,
    ReceivedMessage,
    RunContent,
    SentPost,
    StoredEvent,
    TextContent,
    TransportHealth,
    TransportRejected,
    TransportUnavailable,
    UserAction,
    recall_id,
)


class _Event(msgspec.Struct):
    message: IncomingMessage | None = None
    recalled: str = ""
    edited: str = ""


@dataclass
class EchoPost:
    """A post of the bot and the key it was sent with."""

    message_id: str
    chat_id: str
    reply_to: str
    content: Content
    key: str


@dataclass
class EchoService:
    """The service: it keeps posts and reactions and delivers to the connected transports.

    `failures` are raised by the next sends, in order. With `is_lossy` a send succeeds and its
    response is lost. `is_reading_refused`: posts cannot be listed.
    """

    posts: list[EchoPost] = field(default_factory=list)
    reactions: dict[str, list[str]] = field(default_factory=dict)
    urged: list[tuple[str, str]] = field(default_factory=list)
    failures: list[LarkspurError] = field(default_factory=list)
    connected: list[tuple[OnMessage, OnAction]] = field(default_factory=list)
    delivered: list[IncomingMessage] = field(default_factory=list)
    is_lossy: bool = False
    is_reading_refused: bool = False
    attempts: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    _count: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def new_id(self) -> str:
        self._count += 1
        return f"m{self._count}"

    def notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return as soon as the condition holds; it is checked after every change."""
        async with asyncio.timeout(60):
            while not condition():
                await self._changed.wait()

    async def deliver(self, message: IncomingMessage) -> None:
        """Deliver a message, perhaps again, to the connected transports in turn."""
        raw = msgspec.json.encode(_Event(message)).decode()
        self.delivered.append(message)
        received = ReceivedMessage(message.message_id, message.chat_id, message.user_id, raw)
        on_message, _ = self.connected[len(self.delivered) % len(self.connected)]
        await asyncio.wrap_future(on_message(received))

    async def recall(self, message: IncomingMessage) -> None:
        """Deliver the news that a message was recalled."""
        raw = msgspec.json.encode(_Event(recalled=message.message_id)).decode()
        name = recall_id(message.message_id)
        received = ReceivedMessage(name, message.chat_id, "", raw)
        await asyncio.wrap_future(self.connected[0][0](received))

    async def edit(self, message: IncomingMessage, version: str = "1") -> None:
        """Replace a message, and deliver the news that it was edited."""
        names = [each.message_id for each in self.delivered]
        if message.message_id in names:
            self.delivered[names.index(message.message_id)] = message
        else:
            self.delivered.append(message)
        raw = msgspec.json.encode(_Event(edited=message.message_id)).decode()
        name = edit_id(message.message_id, version)
        received = ReceivedMessage(name, message.chat_id, "", raw)
        await asyncio.wrap_future(self.connected[0][0](received))

    async def act(self, action: UserAction) -> ActionResult:
        """Activate a button of a post."""
        return await self.connected[0][1](action)


class EchoTransport:
    """The transport of one account at the service."""

    name, app = "echo", "test"

    def __init__(self, service: EchoService) -> None:
        self._service = service
        self._status = "starting"

    @property
    def health(self) -> TransportHealth:
        return TransportHealth(self._status, "2026-01-01T00:00:00.000Z")

    async def run(self, on_message: OnMessage, on_action: OnAction) -> None:
        connection = (on_message, on_action)
        self._service.connected.append(connection)
        self._status = "connected"
        self._service.notify()
        try:
            await asyncio.Event().wait()
        finally:
            self._service.connected.remove(connection)
            self._status = "stopped"

    async def follow_history(self, received: ReceivedMessages, on_message: OnMessage) -> None:
        """Nothing is lost: every message is delivered."""
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Nothing is open."""

    async def parse(self, stored: StoredEvent) -> ChatEvent | None:
        try:
            event = msgspec.json.decode(stored.raw, type=_Event)
        except msgspec.DecodeError:
            return None
        if event.edited:
            return EditedMessage(event.edited)
        return event.message or RecalledMessage(event.recalled)

    async def read_edited(self, edit: StoredEvent, known: StoredEvent | None) -> ReceivedMessage:
        edited = msgspec.json.decode(edit.raw, type=_Event).edited
        found = [each for each in self._service.delivered if each.message_id == edited]
        if not found:
            raise TransportRejected(f"there is no {edited}, before: {known}")
        raw = msgspec.json.encode(_Event(found[0])).decode()
        return ReceivedMessage(edited, found[0].chat_id, found[0].user_id, raw, found[0].sent_at)

    async def complete(self, message: IncomingMessage) -> IncomingMessage:
        return message._replace(is_partial=False)

    async def send(self, post: ChatPost, *, idempotency_key: str, simplicity: int = 0) -> SentPost:
        service = self._service
        service.attempts += 1
        service.notify()
        if service.failures:
            raise service.failures.pop(0)
        keys = (post.replaces, idempotency_key)
        found = next((one for one in service.posts if {one.message_id, one.key} & {*keys}), None)
        if found is None:
            sent = (post.chat_id, post.reply_to, post.content)
            found = EchoPost(service.new_id(), *sent, idempotency_key)
            service.posts.append(found)
            service.notify()
        elif post.replaces:
            found.content = post.content
            service.notify()
        if service.is_lossy:
            raise TransportUnavailable("the response was lost", unconfirmed=True)
        return SentPost(found.message_id)

    async def find_sent(
        self, post: ChatPost, since: datetime, *, known: Container[str] = (), simplicity: int = 0
    ) -> SentPost | None:
        if self._service.is_reading_refused:
            raise TransportRejected(f"posts since {since} cannot be listed")
        same = (post.chat_id, post.reply_to, type(post.content))
        found = (
            SentPost(each.message_id)
            for each in self._service.posts
            if (each.chat_id, each.reply_to, type(each.content)) == same
            and each.message_id not in known
        )
        return next(found, None)

    async def update(self, message_id: str, content: QuestionContent | RunContent) -> None:
        post = next(each for each in self._service.posts if each.message_id == message_id)
        post.content = content
        self._service.notify()

    async def remove(self, message_id: str) -> None:
        service = self._service
        service.posts = [each for each in service.posts if each.message_id != message_id]
        service.notify()

    async def urge(self, message_id: str, user_id: str) -> None:
        self._service.urged.append((message_id, user_id))
        self._service.notify()

    async def add_reaction(self, message_id: str, reaction: Reaction) -> str:
        found = self._service.reactions.setdefault(message_id, [])
        if reaction not in found:
            found.append(reaction)
        self._service.notify()
        return reaction

    async def remove_reaction(self, message_id: str, reaction_id: str) -> None:
        self._service.reactions[message_id].remove(reaction_id)
        self._service.notify()

    @asynccontextmanager
    async def open_file(self, uri: str) -> AsyncGenerator[RemoteContent]:
        content = self._service.files.get(uri)
        if content is None:
            raise RemoteFileUnavailable("the echo service has no such file")

        async def chunks() -> AsyncGenerator[bytes]:
            yield content

        yield RemoteContent("", chunks())

    def is_user(self, listed: str) -> bool:
        return listed != "*"

    async def display_name(self, user_id: str) -> str:
        return user_id.title()

    def known_time_zone(self, user_id: str) -> str:
        return ""

    async def list_members(self, chat_id: str) -> list[ChatMember]:
        return [ChatMember("mei", f"Mei of {chat_id}")]

    async def read_message(self, message_id: str) -> PastMessage:
        if self._service.is_reading_refused:
            raise TransportRejected(f"{message_id} cannot be read")
        for post in self._service.posts:
            if post.message_id == message_id:
                return PastMessage(message_id, "", _post_text(post), None, is_own=True)
        for message in self._service.delivered:
            if message.message_id == message_id:
                return _past(message)
        raise TransportRejected(f"there is no {message_id}")

    async def read_recent(self, message: IncomingMessage, limit: int) -> list[PastMessage]:
        if self._service.is_reading_refused:
            raise TransportRejected("messages cannot be listed")
        place = (message.chat_id, message.thread_id)
        earlier = [
            _past(each)
            for each in self._service.delivered
            if (each.chat_id, each.thread_id) == place and each.message_id != message.message_id
        ]
        return earlier[-limit:]

    async def has_posted_in(self, thread_id: str) -> bool:
        return any(each.reply_to.startswith(thread_id) for each in self._service.posts)


def _post_text(post: EchoPost) -> str:
    return post.content.text if isinstance(post.content, TextContent) else ""


def _past(message: IncomingMessage) -> PastMessage:
    return PastMessage(message.message_id, message.user_id, message.text or "", message.sent_at)


def echo_message(
    message_id: str, text: str, chat_id: str = "direct", **changes: object
) -> IncomingMessage:
    """Return a direct message of the user `mei`, sent now."""
    message = IncomingMessage(
        message_id,
        chat_id,
        "mei",
        text,
        is_direct=True,
        is_mention=False,
        is_from_person=True,
        sent_at=datetime.now(UTC),
    )
    return message._replace(**changes)  # type: ignore[arg-type]  # fields of the message
