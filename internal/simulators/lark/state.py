"""The state of the simulated Lark: people, chats, messages, files and cards.

No method awaits, so a check and the change that depends on it cannot be interrupted.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from internal.simulators.lark.clock import SimClock
from internal.simulators.lark.errors import NOT_IN_CHAT, LarkError, bad_parameter
from internal.simulators.lark.limits import RateLimits
from internal.simulators.lark.model import (
    TENANT,
    App,
    CardEntity,
    Chat,
    ChatMessage,
    ClickToken,
    Json,
    Media,
    Person,
    encode,
    new_id,
)

PEOPLE = ("Mei Lin", "Jonas Berg", "Amara Obi", "Kenji Mori")
GROUPS = ("Product", "Operations")
UUID_SECONDS = 3_600.0
Emit = Callable[[App, str, Json], None]


class LarkState:
    """All records. `emit(app, event_type, event)` sends an event; `changed()` reports a change."""

    def __init__(
        self, clock: SimClock, apps: Iterable[App], emit: Emit, changed: Callable[[], None]
    ) -> None:
        self.clock = clock
        self.limits = RateLimits(clock.now)
        self.apps = {app.app_id: app for app in apps}
        self.people: dict[str, Person] = {}
        self.left: set[str] = set()
        """Those who left the organization: nobody can mention them."""
        self.chats: dict[str, Chat] = {}
        self.messages: dict[str, ChatMessage] = {}
        self.media: dict[str, Media] = {}
        self.cards: dict[str, CardEntity] = {}
        self.clicks: dict[str, ClickToken] = {}
        self.emit = emit
        self.changed = changed
        self.version = 0
        """Increases with every change; `versions` holds each message's last one."""
        self.versions: dict[str, int] = {}
        self._sent: dict[tuple[str, str], tuple[str, float]] = {}
        people = [self.add_person(name).open_id for name in PEOPLE]
        for name in GROUPS:
            self.add_group(name, people, self.apps)

    def add_person(self, name: str, tenant_key: str = TENANT) -> Person:
        """Add a person and a direct chat with each bot."""
        person = Person(new_id("ou"), new_id("u"), new_id("on"), name, tenant_key)
        self.people[person.open_id] = person
        for app_id, app in self.apps.items():
            self._add_chat(Chat(new_id("oc"), "p2p", app.name, [person.open_id], {app_id}))
        return person

    def leave(self, open_id: str) -> None:
        """Remove a person from the organization and from all groups."""
        self.left.add(open_id)
        for chat in self.chats.values():
            if chat.mode != "p2p" and open_id in chat.members:
                chat.members.remove(open_id)
        self.touch()

    def add_group(
        self, name: str, members: Iterable[str], bots: Iterable[str], *, topic: bool = False
    ) -> Chat:
        """Add a group of these people and apps.

        Raises:
            KeyError: A person or an app is unknown.
        """
        everyone = [self.people[open_id].open_id for open_id in members]
        apps = {self.apps[app_id].app_id for app_id in bots}
        return self._add_chat(
            Chat(new_id("oc"), "topic" if topic else "group", name, everyone, apps)
        )

    def _add_chat(self, chat: Chat) -> Chat:
        self.chats[chat.chat_id] = chat
        self.touch()
        return chat

    def dm(self, person: str, app_id: str = "") -> Chat:
        """Return the direct chat of a person with a bot, by default the first bot.

        Raises:
            KeyError: The person or the app is unknown.
        """
        app_id = app_id or next(iter(self.apps))
        for chat in self.chats.values():
            if chat.mode == "p2p" and chat.members == [person] and app_id in chat.bots:
                return chat
        raise KeyError(person)

    def touch(self, message: ChatMessage | None = None) -> None:
        """Record a change, of this message if one is given."""
        self.version += 1
        if message is not None:
            self.versions[message.message_id] = self.version
        self.changed()

    def name_of(self, id_: str) -> str | None:
        """Return the name of a person, an app or a bot, or None."""
        if person := self.people.get(id_):
            return person.name
        return next(
            (app.name for app in self.apps.values() if id_ in {app.app_id, app.open_id}), None
        )

    def keep(self, message: ChatMessage) -> ChatMessage:
        """Store a new message."""
        self.messages[message.message_id] = message
        self.touch(message)
        return message

    def in_chat(self, chat_id: str) -> list[ChatMessage]:
        """Return the messages of a chat, oldest first."""
        return [one for one in self.messages.values() if one.chat_id == chat_id]

    def shown_card(self, message: ChatMessage) -> Json | None:
        """Return the card that a message currently shows."""
        card = self.cards.get(message.card_id)
        return message.card if card is None else card.content

    def message(self, app: App, message_id: str) -> ChatMessage:
        """Return a message for an app.

        Raises:
            LarkError: It does not exist, or the bot is not in its chat.
        """
        message = self.messages.get(message_id)
        if message is None:
            raise bad_parameter(f"invalid message_id: {message_id}")
        self.check_inside(app, self.chats[message.chat_id])
        return message

    def check_inside(self, app: App, chat: Chat) -> None:
        """Check that the app's bot is in the chat.

        Raises:
            LarkError: It is not.
        """
        if app.app_id not in chat.bots:
            raise LarkError(NOT_IN_CHAT, "The bot can NOT be out of the chat.")

    def receiver(self, app: App, kind: str, id_: str) -> Chat:
        """Return the chat of a `receive_id`.

        Raises:
            LarkError: There is none, or the bot is not in it.
        """
        if kind == "chat_id":
            chat = self.chats.get(id_)
        else:
            person = self.person(kind, id_)
            chat = None if person is None else self.dm(person.open_id, app.app_id)
        if chat is None:
            raise bad_parameter(f"invalid receive_id: {id_}")
        self.check_inside(app, chat)
        return chat

    def person(self, kind: str, id_: str) -> Person | None:
        """Return the person with this open_id, user_id or union_id, or None."""
        people = self.people.values()
        return next((one for one in people if one.ids().get(kind) == id_), None)

    def sent_before(self, app: App, uuid: str) -> ChatMessage | None:
        """Return the message that the app sent with this uuid within the last hour."""
        found = self._sent.get((app.app_id, uuid)) if uuid else None
        if found is None or self.clock.now() - found[1] >= UUID_SECONDS:
            return None
        return self.messages[found[0]]

    def remember_uuid(self, app: App, uuid: str, message: ChatMessage) -> None:
        """Record the uuid of a message."""
        if uuid:
            self._sent[app.app_id, uuid] = (message.message_id, self.clock.now())


def encode_event(
    app: App,
    event_type: str,
    event: Json,
    *,
    at_ms: int,
    event_id: str,
    source: Mapping[str, str] | None = None,
) -> bytes:
    """Return an event in Lark's JSON format, schema 2.0; `source` replaces fields of its header."""
    header = {
        "event_id": event_id,
        "token": "",
        "create_time": str(at_ms),
        "event_type": event_type,
        "tenant_key": TENANT,
        "app_id": app.app_id,
        **(source or {}),
    }
    return encode({"schema": "2.0", "header": header, "event": event})


class ChangeSignal:
    """Wakes tasks that wait for a change; they inspect the state themselves."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def notify(self) -> None:
        """Wake all waiting tasks."""
        rung, self._rung = self._rung, asyncio.Event()
        rung.set()

    async def wait(self) -> None:
        """Wait for the next change."""
        await self._rung.wait()
