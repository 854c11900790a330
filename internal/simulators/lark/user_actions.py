"""Actions of people: send, recall, react, read, use the menu, add and remove bots, disband groups.

Other bots can send messages to groups as well.

Each emits Lark's events.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from internal.simulators.lark.model import (
    BOT_MENTION_EVENTS,
    BOT_MESSAGES,
    DIRECT_EVENTS,
    ENTRY_EVENTS,
    GROUP_MESSAGES,
    MENTION_EVENTS,
    TENANT,
    App,
    Chat,
    ChatMessage,
    Json,
    encode,
    new_id,
)
from internal.simulators.lark.rest.im_contacts import remove_reaction, set_reaction
from internal.simulators.lark.rest.im_media import store_file, store_image
from internal.simulators.lark.rest.im_messages import link_reply
from internal.simulators.lark.rest.message_content import make_mention
from internal.simulators.lark.state import LarkState

MediaKind = Literal["image", "file", "audio", "media"]
"""A picture, a file, a voice message or a video."""


MAX_EVENT_KEY_LENGTH = 30
"""Characters of the key of an entry of a menu."""


class ActionError(ValueError):
    """The person cannot do this; the message says why."""


@dataclass(frozen=True, slots=True)
class MessageDraft:
    """A message to send. `age_seconds` sets its creation time that far into the past."""

    msg_type: str
    content: Json
    mentions: Sequence[Json] = ()
    reply_to: str = ""
    in_thread: bool = False
    age_seconds: float = 0.0
    children: Sequence[ChatMessage] = ()


def text_draft(state: LarkState, words: str, mentions: Sequence[str] = ()) -> MessageDraft:
    """Return a text that mentions these open_ids: in place of `@name`, else at its start."""
    found: list[Json] = []
    front = ""
    for open_id in mentions:
        if open_id == "all":
            words = words.replace("@all", "@_all") if "@all" in words else f"@_all {words}"
            continue
        name = state.name_of(open_id)
        if name is None:
            raise ActionError(f"unknown open_id: {open_id}")
        key = f"@_user_{len(found) + 1}"
        bot = any(app.open_id == open_id for app in state.apps.values())
        tenant = TENANT if bot else state.people[open_id].tenant_key
        kind = {"mentioned_type": "bot" if bot else "user", "tenant_key": tenant}
        found.append(make_mention(key, open_id, name, **kind))
        if f"@{name}" in words:
            words = words.replace(f"@{name}", key, 1)
        else:
            front += f"{key} "
    return MessageDraft("text", {"text": front + words}, found)


def as_reply(
    draft: MessageDraft, to: str, in_thread: bool, age_seconds: float = 0.0
) -> MessageDraft:
    """Return the draft as a reply to a message; with "" it is unchanged."""
    return replace(draft, reply_to=to, in_thread=in_thread, age_seconds=age_seconds)


def upload_draft(state: LarkState, name: str, data: bytes, kind: MediaKind) -> MessageDraft:
    """Return a file as a message.

    Raises:
        LarkError: It is empty or, as an image, too large or none.
    """
    if kind == "image":
        return MessageDraft(kind, {"image_key": store_image(state, data).key})
    content: Json = {"file_key": store_file(state, name, data).key}
    if kind != "audio":
        content["file_name"] = name
    if kind == "media":
        content["image_key"] = new_id("img_v3")
    if kind != "file":
        content["duration"] = 1_000
    return MessageDraft(kind, content)


def send(state: LarkState, person: str, chat_id: str, draft: MessageDraft) -> ChatMessage:
    """Send a message as a person; bots that may receive it get an event.

    Raises:
        ActionError: The person or the parent message is not in the chat.
    """
    return _send(state, joined_chat(state, person, chat_id), draft, sender=person, kind="user")


def send_as_bot(state: LarkState, app_id: str, chat_id: str, draft: MessageDraft) -> ChatMessage:
    """Send a message to a group as the bot of an app; other bots that may receive it get an event.

    Raises:
        ActionError: The bot or the parent message is not in the group.
    """
    chat = state.chats.get(chat_id)
    if chat is None or chat.mode == "p2p" or app_id not in chat.bots:
        raise ActionError("the bot is not in this group")
    return _send(state, chat, draft, sender=app_id, kind="app")


def _send(
    state: LarkState, chat: Chat, draft: MessageDraft, *, sender: str, kind: Literal["user", "app"]
) -> ChatMessage:
    chat_id = chat.chat_id
    now = state.clock.now_ms() - int(draft.age_seconds * 1000)
    message = ChatMessage(
        new_id("om"), chat_id, sender, kind, draft.msg_type, encode(draft.content).decode(), now
    )
    message.mentions = list(draft.mentions)
    message.children = list(draft.children)
    if kind == "user":
        message.tenant_key = state.people[sender].tenant_key
    if draft.reply_to:
        parent = state.messages.get(draft.reply_to)
        if parent is None or parent.chat_id != chat_id or parent.deleted:
            raise ActionError("the parent message is not in this chat, or was recalled")
        link_reply(state, message, parent, in_thread=draft.in_thread)
    elif chat.mode == "topic":
        message.thread_id = new_id("omt")
    state.keep(message)
    for app in _receiving_apps(state, chat, message):
        state.emit(app, "im.message.receive_v1", _received_event(state, chat, message))
    return message


def _receiving_apps(state: LarkState, chat: Chat, message: ChatMessage) -> list[App]:
    named = {mentioned["id"]["open_id"] for mentioned in message.mentions}
    apps = [state.apps[app_id] for app_id in sorted(chat.bots - {message.sender})]
    receives = _receives if message.sender_type == "user" else _receives_of_bot
    return [app for app in apps if receives(app, chat, is_mentioned=app.open_id in named)]


def _receives_of_bot(app: App, _: Chat, *, is_mentioned: bool) -> bool:
    return app.has_scope(BOT_MESSAGES) or (is_mentioned and app.has_scope(BOT_MENTION_EVENTS))


def _receives(app: App, chat: Chat, *, is_mentioned: bool) -> bool:
    if chat.mode == "p2p":
        return app.has_scope(DIRECT_EVENTS)
    return app.has_scope(GROUP_MESSAGES) or (is_mentioned and app.has_scope(MENTION_EVENTS))


def _received_event(state: LarkState, chat: Chat, message: ChatMessage) -> Json:
    if message.sender_type == "user":
        ids, tenant = state.people[message.sender].ids(), state.people[message.sender].tenant_key
    else:
        ids, tenant = {"open_id": state.apps[message.sender].open_id}, TENANT
    return {
        "sender": {
            "sender_id": ids,
            "sender_type": message.sender_type,
            "tenant_key": tenant,
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


MERGED: Json = {"content": "Merged and Forwarded Message"}
"""The content of a message with forwarded messages; only the API returns them."""


def merge_draft(state: LarkState, message_ids: Sequence[str]) -> MessageDraft:
    """Return a message that forwards other ones; forwarded messages keep their nested messages.

    Raises:
        ActionError: One of them does not exist, or was recalled.
    """
    found = [state.messages.get(message_id) for message_id in message_ids]
    children = [one for one in found if one is not None and not one.deleted]
    if not children or len(children) < len(found):
        raise ActionError("no such message, or it was recalled")
    return MessageDraft("merge_forward", MERGED, children=children)


def edit(state: LarkState, person: str, message_id: str, draft: MessageDraft) -> None:
    """Replace the content of a text or a post of the person.

    Lark's editor puts `<p>` around a text. The event names the message, with the content before the
    edit and without mentions: its readers must not rely on either.

    Raises:
        ActionError: It is not a text or a post of the person, or it was recalled.
    """
    message = state.messages.get(message_id)
    if message is None or message.sender != person or message.deleted:
        raise ActionError("people can edit only their own messages that were not recalled")
    if {message.msg_type, draft.msg_type} - {"text", "post"}:
        raise ActionError("only texts and rich texts can be edited")
    chat = joined_chat(state, person, message.chat_id)
    event = _received_event(state, chat, message)
    receivers = _receiving_apps(state, chat, message)
    content = draft.content
    if draft.msg_type == "text":
        content = {"text": f"<p>{content['text']}</p>"}
    message.msg_type, message.content = draft.msg_type, encode(content).decode()
    message.mentions = list(draft.mentions)
    message.edits += 1
    message.updated = max(state.clock.now_ms(), message.updated + 1, message.created + 1)
    state.touch(message)
    event["message"] |= {"update_time": str(message.updated), "mentions": []}
    del event["message"]["chat_type"]
    for app in dict.fromkeys([*receivers, *_receiving_apps(state, chat, message)]):
        state.emit(app, "im.message.updated_v1", event)


def recall(state: LarkState, person: str, message_id: str) -> None:
    """Recall a message of the person.

    Raises:
        ActionError: It is not the person's message, or it was recalled before.
    """
    message = state.messages.get(message_id)
    if message is None or message.sender != person or message.deleted:
        raise ActionError("people can recall only their own messages, and only once")
    message.deleted = True
    state.touch(message)
    event = {
        "message_id": message_id,
        "chat_id": message.chat_id,
        "recall_time": str(state.clock.now_ms()),
        "recall_type": "message_owner",
    }
    _emit_to_bots(state, state.chats[message.chat_id], "im.message.recalled_v1", event)


def react(state: LarkState, person: str, message_id: str, emoji: str) -> None:
    """Add an emoji to a message, or remove it if the person added it before.

    Raises:
        ActionError: The person cannot see such a message.
    """
    message = visible_message(state, person, message_id)
    for reaction in message.reactions:
        if (reaction.operator, reaction.emoji) == (person, emoji):
            return remove_reaction(state, message, reaction)
    set_reaction(state, message, emoji, operator=person, kind="user")
    return None


def read_chat(state: LarkState, person: str, chat_id: str) -> None:
    """Mark the bots' messages of a chat as read.

    Raises:
        ActionError: The person is not in the chat.
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
        ActionError: The person is not in the chat.
    """
    chat = joined_chat(state, person, chat_id)
    last = next(reversed(state.in_chat(chat_id)), None)
    event: Json = {"chat_id": chat_id, "operator_id": state.people[person].ids()}
    if last is not None:
        event |= {"last_message_id": last.message_id}
        event |= {"last_message_create_time": str(last.created)}
    for app in (state.apps[app_id] for app_id in sorted(chat.bots) if chat.mode == "p2p"):
        if app.has_scope(ENTRY_EVENTS):
            state.emit(app, "im.chat.access_event.bot_p2p_chat_entered_v1", event)


def choose_menu(state: LarkState, person: str, app_id: str, key: str) -> None:
    """Choose an entry of the menu in the direct chat with a bot, one that sends an event.

    Raises:
        ActionError: The person or the app is unknown, or the key is longer than Lark allows.
    """
    if person not in state.people or app_id not in state.apps:
        raise ActionError("unknown person or app")
    if not 0 < len(key) <= MAX_EVENT_KEY_LENGTH:
        raise ActionError(f"the key must have 1 to {MAX_EVENT_KEY_LENGTH} characters")
    found = state.people[person]
    operator: Json = {"operator_name": found.name, "operator_id": found.ids()}
    event: Json = {
        "operator": operator,
        "event_key": key,
        "timestamp": state.clock.now_ms() // 1000,
    }
    state.emit(state.apps[app_id], "application.bot.menu_v6", event)


def set_bot_presence(
    state: LarkState, person: str, chat_id: str, app_id: str, *, present: bool
) -> None:
    """Add a bot to a group or remove it.

    Raises:
        ActionError: The chat is not a group of the person, or the app is unknown.
    """
    chat = joined_chat(state, person, chat_id)
    if chat.mode == "p2p" or app_id not in state.apps:
        raise ActionError("bots can be added to and removed from groups only")
    if (app_id in chat.bots) == present:
        return
    (chat.bots.add if present else chat.bots.discard)(app_id)
    state.touch()
    verb = "added" if present else "deleted"
    event = _group_event(state, person, chat)
    state.emit(state.apps[app_id], f"im.chat.member.bot.{verb}_v1", event)


def disband(state: LarkState, person: str, chat_id: str) -> None:
    """Disband a group: nobody is in it any more.

    Raises:
        ActionError: The chat is not a group of the person.
    """
    chat = joined_chat(state, person, chat_id)
    if chat.mode == "p2p":
        raise ActionError("only groups can be disbanded")
    _emit_to_bots(state, chat, "im.chat.disbanded_v1", _group_event(state, person, chat))
    chat.bots.clear()
    chat.members.clear()
    state.touch()


def _group_event(state: LarkState, person: str, chat: Chat) -> Json:
    return {
        "chat_id": chat.chat_id,
        "operator_id": state.people[person].ids(),
        "external": False,
        "operator_tenant_key": TENANT,
        "name": chat.name,
        "i18n_names": {"zh_cn": chat.name, "en_us": chat.name},
    }


def joined_chat(state: LarkState, person: str, chat_id: str) -> Chat:
    """Return a chat of the person.

    Raises:
        ActionError: The person is in no such chat.
    """
    chat = state.chats.get(chat_id)
    if chat is None or person not in chat.members:
        raise ActionError("the person is not in this chat")
    return chat


def visible_message(state: LarkState, person: str, message_id: str) -> ChatMessage:
    """Return a message that the person can see.

    Raises:
        ActionError: There is none, or it was recalled.
    """
    message = state.messages.get(message_id)
    if message is None or message.deleted:
        raise ActionError("no such message, or it was recalled")
    joined_chat(state, person, message.chat_id)
    return message


def _emit_to_bots(state: LarkState, chat: Chat, event_type: str, event: dict[str, Any]) -> None:
    for app_id in sorted(chat.bots):
        state.emit(state.apps[app_id], event_type, event)
