"""What a bot does with messages: send, reply, patch, edit, recall, read, forward."""

from internal.simulators.lark.cards import read_card, shared
from internal.simulators.lark.content import keep_mentions, read_content, received_post
from internal.simulators.lark.errors import (
    CARD_REFUSED,
    EDITED_TOO_OFTEN,
    FOREIGN_RESOURCE,
    NOT_SENDER_EDIT,
    NOT_SENDER_PATCH,
    NOT_SENDER_RECALL,
    RECALLED,
    TOO_OLD,
    UNEDITABLE,
    CardError,
    LarkError,
    bad_field,
    bad_parameter,
)
from internal.simulators.lark.model import App, Chat, Json, Message, encode, new_id
from internal.simulators.lark.rest_call import Call, Endpoint
from internal.simulators.lark.state import World

MOST_EDITS = 20
CARD_DAYS = 14
_ID_KINDS = frozenset({"open_id", "user_id", "union_id", "email", "chat_id"})
_MEDIA = {"image": ("image",), "file": ("file",), "audio": ("file",), "media": ("file", "image")}


def create(world: World, call: Call) -> Json:
    """Send a message to a chat or a person."""
    kind = call.choice("receive_id_type", _ID_KINDS)
    receiver = call.text("receive_id")
    if before := world.sent_before(call.app, call.uuid()):
        return before.public()
    return _send(world, call, world.receiver(call.app, kind, receiver))


def reply(world: World, call: Call) -> Json:
    """Answer a message, in its thread when it has one or one is wished for."""
    in_thread = call.body.get("reply_in_thread") or False
    if not isinstance(in_thread, bool):
        raise bad_field("reply_in_thread", "it is no bool")
    if before := world.sent_before(call.app, call.uuid()):
        return before.public()
    parent = _standing(world, call.app, call.path["message_id"])
    return _send(world, call, world.chats[parent.chat_id], parent, in_thread=in_thread)


def _send(
    world: World, call: Call, chat: Chat, parent: Message | None = None, *, in_thread: bool = False
) -> Json:
    draft = _draft(world, call.app, chat, call.text("msg_type"), call.body.get("content"))
    world.limits.chat(chat.chat_id)
    if parent is not None:
        join(world, draft, parent, in_thread=in_thread)
    elif chat.mode == "topic":
        draft.thread_id = new_id("omt")
    world.remember_uuid(call.app, call.uuid(), draft)
    return world.keep(draft).public()


def join(world: World, message: Message, parent: Message, *, in_thread: bool) -> None:
    """Make a message the answer to another one."""
    root = world.messages.get(parent.root_id, parent)
    if in_thread and not parent.thread_id:
        parent.thread_id = new_id("omt")
        world.touch(parent)
        root = parent
    message.thread_id = parent.thread_id
    message.root_id = root.message_id
    message.parent_id = root.message_id if parent.thread_id else parent.message_id


def _draft(world: World, app: App, chat: Chat, msg_type: str, content: object) -> Message:
    value = read_content(msg_type, content)
    message = Message(
        new_id("om"), chat.chat_id, app.app_id, "app", msg_type, "", world.clock.now_ms()
    )
    _fill(world, app, message, value)
    if msg_type == "interactive":
        _fill_card(world, app, message, value, str(content))
    return message


def _fill(world: World, app: App, message: Message, value: Json) -> None:
    """Put content into a message, as readers get it."""
    if message.msg_type == "text":
        value["text"], message.mentions = keep_mentions(value["text"], world.name_of)
    elif message.msg_type == "post":
        value = received_post(value)
    for kind in _MEDIA.get(message.msg_type, ()):
        media = world.media.get(value.get(f"{kind}_key", ""))
        if media is None or media.app_id != app.app_id or media.kind != kind:
            raise LarkError(FOREIGN_RESOURCE, f"the {kind}_key does not belong to this app")
    message.content = encode(value).decode()


def _fill_card(world: World, app: App, message: Message, value: Json, content: str) -> None:
    if value.get("type") == "card" and isinstance(value.get("data"), dict):
        card = world.cards.get(str(value["data"].get("card_id")))
        if card is None or card.app_id != app.app_id:
            raise CardError(300303, "card_id is invalid").in_message()
        message.card_id, card.message_id = card.card_id, message.message_id
        return
    if value.get("type") == "template":
        raise LarkError(CARD_REFUSED, "the simulator has no card templates")
    message.card = _card(content)


def _card(content: object) -> Json:
    try:
        return read_card(content)
    except CardError as error:
        raise error.in_message() from error


def patch(world: World, call: Call) -> Json:
    """Replace the card of a message."""
    message = _standing(world, call.app, call.path["message_id"])
    if message.sender != call.app.app_id:
        raise LarkError(NOT_SENDER_PATCH, "The operator is not the sender of the message.")
    before = world.shown_card(message)
    if message.msg_type != "interactive" or before is None:
        raise bad_parameter("This message is NOT a card.")
    if world.clock.now_ms() - message.created > CARD_DAYS * 86_400_000:
        raise LarkError(TOO_OLD, f"The card was sent more than {CARD_DAYS} days ago.")
    content = call.text("content")
    read_content("interactive", content)
    card = _card(content)
    if not (shared(before) and shared(card)):
        raise bad_parameter("config.update_multi must be true before and after")
    world.limits.message(message.message_id)
    show_card(world, message, card)
    return {}


def show_card(world: World, message: Message, card: Json) -> None:
    """Put another card into a message, whichever way its card was made."""
    if entity := world.cards.get(message.card_id):
        entity.content = card
    else:
        message.card = card
        message.content = encode(card).decode()
    message.updated = world.clock.now_ms()
    world.touch(message)


def update(world: World, call: Call) -> Json:
    """Edit a text or post."""
    message = _standing(world, call.app, call.path["message_id"])
    if message.sender != call.app.app_id:
        raise LarkError(NOT_SENDER_EDIT, "The operator is not the sender of the message.")
    msg_type = call.text("msg_type")
    if {msg_type, message.msg_type} - {"text", "post"}:
        raise LarkError(UNEDITABLE, "This type of message can NOT be edited.")
    value = read_content(msg_type, call.body.get("content"))
    if message.edits >= MOST_EDITS:
        raise LarkError(EDITED_TOO_OFTEN, "The message has reached the number of times of edits.")
    message.msg_type = msg_type
    _fill(world, call.app, message, value)
    message.edits += 1
    message.updated = world.clock.now_ms()
    world.touch(message)
    return message.public()


def delete(world: World, call: Call) -> Json:
    """Recall a message of the bot's own."""
    message = _standing(world, call.app, call.path["message_id"])
    if message.sender != call.app.app_id:
        raise LarkError(NOT_SENDER_RECALL, "The operator may not recall this message.")
    message.deleted = True
    world.touch(message)
    return {}


def get(world: World, call: Call) -> Json:
    """Return a message; a merged one comes with its children."""
    message = world.message(call.app, call.path["message_id"])
    children = [
        {**child.public(), "upper_message_id": message.message_id} for child in message.children
    ]
    return {"items": [message.public(), *children]}


def list_messages(world: World, call: Call) -> Json:
    """Return a page of a chat, where a thread counts as its root alone, or of a thread."""
    kind = call.choice("container_id_type", frozenset({"chat", "thread"}))
    container = call.query.get("container_id", "")
    if kind == "thread":
        found = [one for one in world.messages.values() if one.thread_id == container != ""]
    else:
        found = [one for one in world.in_chat(container) if not (one.thread_id and one.parent_id)]
    chat = world.chats.get(found[0].chat_id if kind == "thread" and found else container)
    if chat is None:
        raise bad_parameter(f"invalid container_id: {container}")
    world.check_inside(call.app, chat)
    if kind == "chat":
        found = _between(found, call)
    orders = frozenset({"ByCreateTimeAsc", "ByCreateTimeDesc"})
    if call.choice("sort_type", orders, "ByCreateTimeAsc") == "ByCreateTimeDesc":
        found.reverse()
    return call.page([message.public() for message in found])


def _between(found: list[Message], call: Call) -> list[Message]:
    start, end = (call.query.get(name) or "" for name in ("start_time", "end_time"))
    for time in (start, end):
        if time and not (time.isascii() and time.isdigit()):
            raise bad_field("start_time", "seconds are due")
    first, last = int(start or 0), int(end or 1 << 40)
    return [one for one in found if first <= one.created // 1000 <= last]


def forward(world: World, call: Call) -> Json:
    """Send a message on."""
    kind = call.choice("receive_id_type", _ID_KINDS)
    if before := world.sent_before(call.app, call.uuid()):
        return before.public()
    source = _standing(world, call.app, call.path["message_id"])
    chat = world.receiver(call.app, kind, call.text("receive_id"))
    world.limits.chat(chat.chat_id)
    message = Message(
        new_id("om"),
        chat.chat_id,
        call.app.app_id,
        "app",
        source.msg_type,
        source.content,
        world.clock.now_ms(),
        mentions=list(source.mentions),
        card=world.shown_card(source),
    )
    world.remember_uuid(call.app, call.uuid(), message)
    return world.keep(message).public()


def _standing(world: World, app: App, message_id: str) -> Message:
    message = world.message(app, message_id)
    if message.deleted:
        raise LarkError(RECALLED, "The message was withdrawn.")
    return message


_ROOT = "/open-apis/im/v1/messages"
ENDPOINTS = (
    Endpoint("POST", _ROOT, create),
    Endpoint("GET", _ROOT, list_messages),
    Endpoint("POST", _ROOT + "/{message_id}/reply", reply),
    Endpoint("PATCH", _ROOT + "/{message_id}", patch),
    Endpoint("PUT", _ROOT + "/{message_id}", update),
    Endpoint("DELETE", _ROOT + "/{message_id}", delete),
    Endpoint("GET", _ROOT + "/{message_id}", get),
    Endpoint("POST", _ROOT + "/{message_id}/forward", forward),
)
