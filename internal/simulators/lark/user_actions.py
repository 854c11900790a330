"""What people do: write, recall, react, read, come and go. Bots hear of it as Lark tells them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from internal.simulators.lark.model import TENANT, App, Chat, ChatMessage, Json, encode, new_id
from internal.simulators.lark.rest.im_contacts import put_reaction, take_reaction
from internal.simulators.lark.rest.im_media import store_file, store_image
from internal.simulators.lark.rest.im_messages import link_reply
from internal.simulators.lark.rest.message_content import make_mention
from internal.simulators.lark.state import LarkState


class ActionError(ValueError):
    """A person cannot do that; the text says why."""


@dataclass(frozen=True, slots=True)
class MessageDraft:
    """What a person is about to send. `age_seconds`: how long ago it says it was written."""

    msg_type: str
    content: Json
    mentions: Sequence[Json] = ()
    reply_to: str = ""
    in_thread: bool = False
    age_seconds: float = 0.0
    children: Sequence[ChatMessage] = ()


def text_draft(state: LarkState, words: str, mentions: Sequence[str] = ()) -> MessageDraft:
    """Return a text that mentions these open_ids: where "@name" stands, else at its beginning."""
    found: list[Json] = []
    front = ""
    for open_id in mentions:
        if open_id == "all":
            words = words.replace("@all", "@_all") if "@all" in words else f"@_all {words}"
            continue
        name = state.name_of(open_id)
        if name is None:
            raise ActionError(f"{open_id} is nobody")
        key = f"@_user_{len(found) + 1}"
        bot = any(app.open_id == open_id for app in state.apps.values())
        kind = {"mentioned_type": "bot" if bot else "user", "tenant_key": TENANT}
        found.append(make_mention(key, open_id, name, **kind))
        if f"@{name}" in words:
            words = words.replace(f"@{name}", key, 1)
        else:
            front += f"{key} "
    return MessageDraft("text", {"text": front + words}, found)


def as_reply(
    draft: MessageDraft, to: str, in_thread: bool, age_seconds: float = 0.0
) -> MessageDraft:
    """Return the draft as an answer to that message; "" leaves it as it is."""
    return replace(draft, reply_to=to, in_thread=in_thread, age_seconds=age_seconds)


def upload_draft(state: LarkState, name: str, data: bytes, *, image: bool) -> MessageDraft:
    """Return an image or file as a message.

    Raises:
        LarkError: it is empty, too big, or no image.
    """
    if image:
        return MessageDraft("image", {"image_key": store_image(state, data).key})
    return MessageDraft("file", {"file_key": store_file(state, name, data).key, "file_name": name})


def send(state: LarkState, person: str, chat_id: str, draft: MessageDraft) -> ChatMessage:
    """Send a message as a person and tell the bots that hear it.

    Raises:
        NotPossible: the person or what is replied to is not in the chat.
    """
    chat = joined_chat(state, person, chat_id)
    now = state.clock.now_ms() - int(draft.age_seconds * 1000)
    message = ChatMessage(
        new_id("om"), chat_id, person, "user", draft.msg_type, encode(draft.content).decode(), now
    )
    message.mentions = list(draft.mentions)
    message.children = list(draft.children)
    if draft.reply_to:
        parent = state.messages.get(draft.reply_to)
        if parent is None or parent.chat_id != chat_id or parent.deleted:
            raise ActionError("what is replied to is not in this chat, or recalled")
        link_reply(state, message, parent, in_thread=draft.in_thread)
    elif chat.mode == "topic":
        message.thread_id = new_id("omt")
    state.keep(message)
    for app in _hearing(state, chat, message):
        state.emit(app, "im.message.receive_v1", _received(state, chat, message))
    return message


def _hearing(state: LarkState, chat: Chat, message: ChatMessage) -> list[App]:
    named = {mentioned["id"]["open_id"] for mentioned in message.mentions}
    apps = [state.apps[app_id] for app_id in sorted(chat.bots)]
    return [app for app in apps if chat.mode == "p2p" or app.hears_all or app.open_id in named]


def _received(state: LarkState, chat: Chat, message: ChatMessage) -> Json:
    return {
        "sender": {
            "sender_id": state.people[message.sender].ids(),
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


def recall(state: LarkState, person: str, message_id: str) -> None:
    """Recall a message of the person's own.

    Raises:
        NotPossible: it is not.
    """
    message = state.messages.get(message_id)
    if message is None or message.sender != person or message.deleted:
        raise ActionError("only one's own messages can be recalled, once")
    message.deleted = True
    state.touch(message)
    event = {
        "message_id": message_id,
        "chat_id": message.chat_id,
        "recall_time": str(state.clock.now_ms()),
        "recall_type": "message_owner",
    }
    _tell_all(state, state.chats[message.chat_id], "im.message.recalled_v1", event)


def react(state: LarkState, person: str, message_id: str, emoji: str) -> None:
    """Put an emoji on a message, or take it away when it is there.

    Raises:
        NotPossible: there is no such message in a chat of the person.
    """
    message = visible_message(state, person, message_id)
    for reaction in message.reactions:
        if (reaction.operator, reaction.emoji) == (person, emoji):
            return take_reaction(state, message, reaction)
    put_reaction(state, message, emoji, person, "user")
    return None


def read_chat(state: LarkState, person: str, chat_id: str) -> None:
    """Read the bots' messages of a chat.

    Raises:
        NotPossible: the person is not in it.
    """
    chat = joined_chat(state, person, chat_id)
    reader = {"reader_id": state.people[person].ids(), "read_time": str(state.clock.now_ms())}
    for app_id in sorted(chat.bots):
        ids = [one.message_id for one in state.in_chat(chat_id) if one.sender == app_id]
        event = {"reader": {**reader, "tenant_key": TENANT}, "message_id_list": ids}
        if ids:
            state.emit(state.apps[app_id], "im.message.message_read_v1", event)


def enter_chat(state: LarkState, person: str, chat_id: str) -> None:
    """Open a direct chat.

    Raises:
        NotPossible: it is none of the person's.
    """
    chat = joined_chat(state, person, chat_id)
    last = next(reversed(state.in_chat(chat_id)), None)
    event: Json = {"chat_id": chat_id, "operator_id": state.people[person].ids()}
    if last is not None:
        event |= {"last_message_id": last.message_id}
        event |= {"last_message_create_time": str(last.created)}
    if chat.mode == "p2p":
        _tell_all(state, chat, "im.chat.access_event.bot_p2p_chat_entered_v1", event)


def set_bot_presence(
    state: LarkState, person: str, chat_id: str, app_id: str, *, present: bool
) -> None:
    """Add a bot to a group, or remove it.

    Raises:
        NotPossible: it is no group, or there is no such person or app in it.
    """
    chat = joined_chat(state, person, chat_id)
    if chat.mode == "p2p" or app_id not in state.apps:
        raise ActionError("only the bots of groups come and go")
    if (app_id in chat.bots) == present:
        return
    (chat.bots.add if present else chat.bots.discard)(app_id)
    state.touch()
    event = {
        "chat_id": chat_id,
        "operator_id": state.people[person].ids(),
        "external": False,
        "operator_tenant_key": TENANT,
        "name": chat.name,
        "i18n_names": {"zh_cn": chat.name, "en_us": chat.name},
    }
    verb = "added" if present else "deleted"
    state.emit(state.apps[app_id], f"im.chat.member.bot.{verb}_v1", event)


def joined_chat(state: LarkState, person: str, chat_id: str) -> Chat:
    """Return a chat that the person is in.

    Raises:
        NotPossible: there is none.
    """
    chat = state.chats.get(chat_id)
    if chat is None or person not in chat.members:
        raise ActionError("this person is not in that chat")
    return chat


def visible_message(state: LarkState, person: str, message_id: str) -> ChatMessage:
    """Return a message that the person can see.

    Raises:
        NotPossible: there is none, or it was recalled.
    """
    message = state.messages.get(message_id)
    if message is None or message.deleted:
        raise ActionError("there is no such message, or it was recalled")
    joined_chat(state, person, message.chat_id)
    return message


def _tell_all(state: LarkState, chat: Chat, event_type: str, event: dict[str, Any]) -> None:
    for app_id in sorted(chat.bots):
        state.emit(state.apps[app_id], event_type, event)
