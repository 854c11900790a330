"""What people do: write, recall, react, read, come and go. Bots hear of it as Lark tells them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from internal.simulators.lark.content import mention
from internal.simulators.lark.im_contacts import put_reaction, take_reaction
from internal.simulators.lark.im_media import store_file, store_image
from internal.simulators.lark.im_messages import join
from internal.simulators.lark.model import TENANT, App, Chat, Json, Message, encode, new_id
from internal.simulators.lark.state import World


class NotPossible(ValueError):
    """A person cannot do that; the text says why."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What a person is about to send. `age_seconds`: how long ago it says it was written."""

    msg_type: str
    content: Json
    mentions: Sequence[Json] = ()
    reply_to: str = ""
    in_thread: bool = False
    age_seconds: float = 0.0
    children: Sequence[Message] = ()


def text(world: World, words: str, mentions: Sequence[str] = ()) -> Draft:
    """Return a text that mentions these open_ids: where "@name" stands, else at its beginning."""
    found: list[Json] = []
    front = ""
    for open_id in mentions:
        if open_id == "all":
            words = words.replace("@all", "@_all") if "@all" in words else f"@_all {words}"
            continue
        name = world.name_of(open_id)
        if name is None:
            raise NotPossible(f"{open_id} is nobody")
        key = f"@_user_{len(found) + 1}"
        bot = any(app.open_id == open_id for app in world.apps.values())
        kind = {"mentioned_type": "bot" if bot else "user", "tenant_key": TENANT}
        found.append(mention(key, open_id, name, **kind))
        if f"@{name}" in words:
            words = words.replace(f"@{name}", key, 1)
        else:
            front += f"{key} "
    return Draft("text", {"text": front + words}, found)


def replying(draft: Draft, to: str, in_thread: bool, age_seconds: float = 0.0) -> Draft:
    """Return the draft as an answer to that message; "" leaves it as it is."""
    return replace(draft, reply_to=to, in_thread=in_thread, age_seconds=age_seconds)


def upload(world: World, name: str, data: bytes, *, image: bool) -> Draft:
    """Return an image or file as a message.

    Raises:
        LarkError: it is empty, too big, or no image.
    """
    if image:
        return Draft("image", {"image_key": store_image(world, data).key})
    return Draft("file", {"file_key": store_file(world, name, data).key, "file_name": name})


def send(world: World, person: str, chat_id: str, draft: Draft) -> Message:
    """Send a message as a person and tell the bots that hear it.

    Raises:
        NotPossible: the person or what is replied to is not in the chat.
    """
    chat = inside(world, person, chat_id)
    now = world.clock.now_ms() - int(draft.age_seconds * 1000)
    message = Message(
        new_id("om"), chat_id, person, "user", draft.msg_type, encode(draft.content).decode(), now
    )
    message.mentions = list(draft.mentions)
    message.children = list(draft.children)
    if draft.reply_to:
        parent = world.messages.get(draft.reply_to)
        if parent is None or parent.chat_id != chat_id or parent.deleted:
            raise NotPossible("what is replied to is not in this chat, or recalled")
        join(world, message, parent, in_thread=draft.in_thread)
    elif chat.mode == "topic":
        message.thread_id = new_id("omt")
    world.keep(message)
    for app in _hearing(world, chat, message):
        world.emit(app, "im.message.receive_v1", _received(world, chat, message))
    return message


def _hearing(world: World, chat: Chat, message: Message) -> list[App]:
    named = {mentioned["id"]["open_id"] for mentioned in message.mentions}
    apps = [world.apps[app_id] for app_id in sorted(chat.bots)]
    return [app for app in apps if chat.mode == "p2p" or app.hears_all or app.open_id in named]


def _received(world: World, chat: Chat, message: Message) -> Json:
    return {
        "sender": {
            "sender_id": world.people[message.sender].ids(),
            "sender_type": "user",
            "tenant_key": TENANT,
        },
        "message": {
            "message_id": message.message_id,
            **message.places(),
            "create_time": str(message.created),
            "update_time": str(message.created),
            "chat_id": chat.chat_id,
            "chat_type": chat.kind,
            "message_type": message.msg_type,
            "content": message.content,
            "mentions": message.mentions,
        },
    }


def recall(world: World, person: str, message_id: str) -> None:
    """Recall a message of the person's own.

    Raises:
        NotPossible: it is not.
    """
    message = world.messages.get(message_id)
    if message is None or message.sender != person or message.deleted:
        raise NotPossible("only one's own messages can be recalled, once")
    message.deleted = True
    world.touch(message)
    event = {
        "message_id": message_id,
        "chat_id": message.chat_id,
        "recall_time": str(world.clock.now_ms()),
        "recall_type": "message_owner",
    }
    _tell_all(world, world.chats[message.chat_id], "im.message.recalled_v1", event)


def react(world: World, person: str, message_id: str, emoji: str) -> None:
    """Put an emoji on a message, or take it away when it is there.

    Raises:
        NotPossible: there is no such message in a chat of the person.
    """
    message = readable(world, person, message_id)
    for reaction in message.reactions:
        if (reaction.operator, reaction.emoji) == (person, emoji):
            return take_reaction(world, message, reaction)
    put_reaction(world, message, emoji, person, "user")
    return None


def read(world: World, person: str, chat_id: str) -> None:
    """Read the bots' messages of a chat.

    Raises:
        NotPossible: the person is not in it.
    """
    chat = inside(world, person, chat_id)
    reader = {"reader_id": world.people[person].ids(), "read_time": str(world.clock.now_ms())}
    for app_id in sorted(chat.bots):
        ids = [one.message_id for one in world.in_chat(chat_id) if one.sender == app_id]
        event = {"reader": {**reader, "tenant_key": TENANT}, "message_id_list": ids}
        if ids:
            world.emit(world.apps[app_id], "im.message.message_read_v1", event)


def enter(world: World, person: str, chat_id: str) -> None:
    """Open a direct chat.

    Raises:
        NotPossible: it is none of the person's.
    """
    chat = inside(world, person, chat_id)
    last = next(reversed(world.in_chat(chat_id)), None)
    event: Json = {"chat_id": chat_id, "operator_id": world.people[person].ids()}
    if last is not None:
        event |= {"last_message_id": last.message_id}
        event |= {"last_message_create_time": str(last.created)}
    if chat.mode == "p2p":
        _tell_all(world, chat, "im.chat.access_event.bot_p2p_chat_entered_v1", event)


def place_bot(world: World, person: str, chat_id: str, app_id: str, *, present: bool) -> None:
    """Add a bot to a group, or remove it.

    Raises:
        NotPossible: it is no group, or there is no such person or app in it.
    """
    chat = inside(world, person, chat_id)
    if chat.mode == "p2p" or app_id not in world.apps:
        raise NotPossible("only the bots of groups come and go")
    if (app_id in chat.bots) == present:
        return
    (chat.bots.add if present else chat.bots.discard)(app_id)
    world.touch()
    event = {
        "chat_id": chat_id,
        "operator_id": world.people[person].ids(),
        "external": False,
        "operator_tenant_key": TENANT,
        "name": chat.name,
        "i18n_names": {"zh_cn": chat.name, "en_us": chat.name},
    }
    verb = "added" if present else "deleted"
    world.emit(world.apps[app_id], f"im.chat.member.bot.{verb}_v1", event)


def inside(world: World, person: str, chat_id: str) -> Chat:
    """Return a chat that the person is in.

    Raises:
        NotPossible: there is none.
    """
    chat = world.chats.get(chat_id)
    if chat is None or person not in chat.members:
        raise NotPossible("this person is not in that chat")
    return chat


def readable(world: World, person: str, message_id: str) -> Message:
    """Return a message that the person can see.

    Raises:
        NotPossible: there is none, or it was recalled.
    """
    message = world.messages.get(message_id)
    if message is None or message.deleted:
        raise NotPossible("there is no such message, or it was recalled")
    inside(world, person, message.chat_id)
    return message


def _tell_all(world: World, chat: Chat, event_type: str, event: dict[str, Any]) -> None:
    for app_id in sorted(chat.bots):
        world.emit(world.apps[app_id], event_type, event)
