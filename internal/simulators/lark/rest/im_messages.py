"""Messages of bots: send, reply, patch, edit, recall, read, forward."""

from collections.abc import Iterator

from internal.simulators.lark.cards.card_forms import CARD_FORMS, card_in_form
from internal.simulators.lark.cards.card_json import is_shared, read_card
from internal.simulators.lark.cards.card_references import (
    IMAGE_INVALID,
    PERSON_UNKNOWN,
    image_keys,
    mentioned_ids,
)
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
from internal.simulators.lark.model import App, Chat, ChatMessage, Json, encode, new_id
from internal.simulators.lark.rest import scopes
from internal.simulators.lark.rest.call import RestCall, RestEndpoint
from internal.simulators.lark.rest.message_content import extract_mentions, read_content, read_post
from internal.simulators.lark.state import LarkState

MAX_EDITS = 20
MAX_URGENT_USERS = 200
CARD_PATCH_DAYS = 14
_ID_KINDS = frozenset({"open_id", "user_id", "union_id", "email", "chat_id"})
_USER_ID_KINDS = frozenset({"open_id", "user_id", "union_id"})
_MEDIA = {"image": ("image",), "file": ("file",), "audio": ("file",), "media": ("file", "image")}


def create(state: LarkState, call: RestCall) -> Json:
    """Send a message to a chat or a person."""
    kind = call.choice("receive_id_type", _ID_KINDS)
    receiver = call.text("receive_id")
    if before := state.sent_before(call.app, call.uuid()):
        return before.public()
    return _send(state, call, state.receiver(call.app, kind, receiver))


def reply(state: LarkState, call: RestCall) -> Json:
    """Reply to a message, in its thread if it has one or one is requested."""
    in_thread = call.body.get("reply_in_thread") or False
    if not isinstance(in_thread, bool):
        raise bad_field("reply_in_thread", "must be a boolean")
    if before := state.sent_before(call.app, call.uuid()):
        return before.public()
    parent = _live_message(state, call.app, call.path["message_id"])
    return _send(state, call, state.chats[parent.chat_id], parent, in_thread=in_thread)


def _send(
    state: LarkState,
    call: RestCall,
    chat: Chat,
    parent: ChatMessage | None = None,
    *,
    in_thread: bool = False,
) -> Json:
    draft = _new_message(
        state,
        call.app,
        chat,
        msg_type=call.text("msg_type"),
        content=call.body.get("content"),
    )
    state.limits.chat(chat.chat_id)
    if parent is not None:
        link_reply(state, draft, parent, in_thread=in_thread)
    elif chat.mode == "topic":
        draft.thread_id = new_id("omt")
    state.remember_uuid(call.app, call.uuid(), draft)
    return state.keep(draft).public()


def link_reply(
    state: LarkState, message: ChatMessage, parent: ChatMessage, *, in_thread: bool
) -> None:
    """Make a message a reply to another one."""
    root = state.messages.get(parent.root_id, parent)
    if in_thread and not parent.thread_id:
        parent.thread_id = new_id("omt")
        state.touch(parent)
        root = parent
    message.thread_id = parent.thread_id
    message.root_id = root.message_id
    message.parent_id = root.message_id if parent.thread_id else parent.message_id


def _new_message(
    state: LarkState, app: App, chat: Chat, *, msg_type: str, content: object
) -> ChatMessage:
    value = read_content(msg_type, content)
    message = ChatMessage(
        new_id("om"), chat.chat_id, app.app_id, "app", msg_type, "", state.clock.now_ms()
    )
    _fill(state, app, message, value)
    if msg_type == "interactive":
        _fill_card(state, app, message, value=value, content=str(content))
    return message


def _fill(state: LarkState, app: App, message: ChatMessage, value: Json) -> None:
    """Set a message's content in the form in which readers get it."""
    if message.msg_type == "text":
        value["text"], message.mentions = extract_mentions(value["text"], state.name_of)
    elif message.msg_type == "post":
        value = read_post(value)
    for kind in _MEDIA.get(message.msg_type, ()):
        media = state.media.get(value.get(f"{kind}_key", ""))
        if media is None or media.app_id != app.app_id or media.kind != kind:
            raise LarkError(FOREIGN_RESOURCE, f"the {kind}_key does not belong to this app")
        if kind == "file" and message.msg_type != "audio":
            value["file_name"] = media.name
    message.content = encode(value).decode()


def _fill_card(
    state: LarkState, app: App, message: ChatMessage, *, value: Json, content: str
) -> None:
    if value.get("type") == "card" and isinstance(value.get("data"), dict):
        card = state.cards.get(str(value["data"].get("card_id")))
        if card is None or card.app_id != app.app_id:
            raise CardError(300303, "card_id is invalid").in_message()
        message.card_id, card.message_id = card.card_id, message.message_id
        return
    if value.get("type") == "template":
        raise LarkError(CARD_REFUSED, "the simulator has no card templates")
    message.card = _card(state, app, content)


def _card(state: LarkState, app: App, content: object) -> Json:
    try:
        card = read_card(content)
        _check_references(state, app, card)
    except CardError as error:
        raise error.in_message() from error
    return card


def _check_references(state: LarkState, app: App, card: Json) -> None:
    """Check that the pictures of a card are the app's, and that the mentioned people are there.

    Raises:
        CardError: one is not.
    """
    for key in image_keys(card):
        media = state.media.get(key)
        if media is None or media.kind != "image" or media.app_id != app.app_id:
            raise CardError(IMAGE_INVALID, f"image key is invalid: {key}")
    for open_id in mentioned_ids(card):
        if open_id in state.left or state.name_of(open_id) is None:
            raise CardError(PERSON_UNKNOWN, f"mentioned user is not found: {open_id}")


def patch(state: LarkState, call: RestCall) -> Json:
    """Replace the card of a message."""
    message = _live_message(state, call.app, call.path["message_id"])
    if message.sender != call.app.app_id:
        raise LarkError(NOT_SENDER_PATCH, "The operator is not the sender of the message.")
    before = state.shown_card(message)
    if message.msg_type != "interactive" or before is None:
        raise bad_parameter("This message is NOT a card.")
    if state.clock.now_ms() - message.created > CARD_PATCH_DAYS * 86_400_000:
        raise LarkError(TOO_OLD, f"The card was sent more than {CARD_PATCH_DAYS} days ago.")
    content = call.text("content")
    read_content("interactive", content)
    card = _card(state, call.app, content)
    if not (is_shared(before) and is_shared(card)):
        raise bad_parameter("config.update_multi must be true before and after")
    state.limits.message(message.message_id)
    show_card(state, message, card)
    return {}


def show_card(state: LarkState, message: ChatMessage, card: Json) -> None:
    """Replace the card that a message shows, CardKit card or not."""
    if entity := state.cards.get(message.card_id):
        entity.content = card
    else:
        message.card = card
        message.content = encode(card).decode()
    message.updated = state.clock.now_ms()
    state.touch(message)


def update(state: LarkState, call: RestCall) -> Json:
    """Edit a text or post."""
    message = _live_message(state, call.app, call.path["message_id"])
    if message.sender != call.app.app_id:
        raise LarkError(NOT_SENDER_EDIT, "The operator is not the sender of the message.")
    msg_type = call.text("msg_type")
    if {msg_type, message.msg_type} - {"text", "post"}:
        raise LarkError(UNEDITABLE, "This type of message can NOT be edited.")
    value = read_content(msg_type, call.body.get("content"))
    if message.edits >= MAX_EDITS:
        raise LarkError(EDITED_TOO_OFTEN, "The message has reached the number of times of edits.")
    message.msg_type = msg_type
    _fill(state, call.app, message, value)
    message.edits += 1
    message.updated = state.clock.now_ms()
    state.touch(message)
    return message.public()


def delete(state: LarkState, call: RestCall) -> Json:
    """Recall a message of the bot."""
    message = _live_message(state, call.app, call.path["message_id"])
    if message.sender != call.app.app_id:
        raise LarkError(NOT_SENDER_RECALL, "The operator may not recall this message.")
    message.deleted = True
    state.touch(message)
    return {}


def urge(state: LarkState, call: RestCall) -> Json:
    """Alert people to a message of the bot. Lark refuses the call if a user is not in the chat."""
    message = _live_message(state, call.app, call.path["message_id"])
    if message.sender != call.app.app_id:
        raise LarkError(NOT_SENDER_PATCH, "Bot is NOT the sender of the message.")
    call.choice("user_id_type", _USER_ID_KINDS)
    users = call.body.get("user_id_list")
    if not isinstance(users, list) or not users or len(users) > MAX_URGENT_USERS:
        raise bad_field("user_id_list", f"must be a list of 1 to {MAX_URGENT_USERS} ids")
    kind = call.query["user_id_type"]
    members = [state.people[each] for each in state.chats[message.chat_id].members]
    known = {person.ids()[kind]: person.open_id for person in members}
    if not all(user in known for user in users):
        raise bad_parameter("invalid user_id_list")
    message.urgent = sorted({*message.urgent, *(known[user] for user in users)})
    state.touch(message)
    return {"invalid_user_id_list": []}


def get(state: LarkState, call: RestCall) -> Json:
    """Return a message; one that forwards others with all of them, also those inside of others."""
    message = state.message(call.app, call.path["message_id"])
    return {"items": [_shown(state, call, message), *_forwarded(state, call, message)]}


def _forwarded(state: LarkState, call: RestCall, message: ChatMessage) -> Iterator[Json]:
    """Yield the messages inside of a message; each names the one that it is in."""
    for child in [] if message.deleted else message.children:
        yield {**_shown(state, call, child), "upper_message_id": message.message_id}
        yield from _forwarded(state, call, child)


def _shown(state: LarkState, call: RestCall, message: ChatMessage) -> Json:
    """Return a message with its card in the requested form, by default flattened."""
    shown = message.public()
    card = state.shown_card(message)
    if card is not None and not message.deleted:
        kind = call.choice("card_msg_content_type", CARD_FORMS, "")
        shown["body"] = {"content": encode(card_in_form(card, kind)).decode()}
    return shown


def list_messages(state: LarkState, call: RestCall) -> Json:
    """Return a page of a chat, with only the roots of threads, or of a thread."""
    kind = call.choice("container_id_type", frozenset({"chat", "thread"}))
    container = call.query.get("container_id", "")
    if kind == "thread":
        found = [one for one in state.messages.values() if one.thread_id == container != ""]
    else:
        found = [one for one in state.in_chat(container) if not (one.thread_id and one.parent_id)]
    chat = state.chats.get(found[0].chat_id if kind == "thread" and found else container)
    if chat is None:
        raise bad_parameter(f"invalid container_id: {container}")
    state.check_inside(call.app, chat)
    scopes.check_listing(call.app, chat)
    if kind == "chat":
        found = _between(found, call)
    orders = frozenset({"ByCreateTimeAsc", "ByCreateTimeDesc"})
    if call.choice("sort_type", orders, "ByCreateTimeAsc") == "ByCreateTimeDesc":
        found.reverse()
    page = call.page(found)
    return {**page, "items": [_shown(state, call, message) for message in page["items"]]}


def _between(found: list[ChatMessage], call: RestCall) -> list[ChatMessage]:
    start, end = (call.query.get(name) or "" for name in ("start_time", "end_time"))
    for time in (start, end):
        if time and not (time.isascii() and time.isdigit()):
            raise bad_field("start_time", "must be in seconds")
    first, last = int(start or 0), int(end or 1 << 40)
    return [one for one in found if first <= one.created // 1000 <= last]


def forward(state: LarkState, call: RestCall) -> Json:
    """Forward a message."""
    kind = call.choice("receive_id_type", _ID_KINDS)
    if before := state.sent_before(call.app, call.uuid()):
        return before.public()
    source = _live_message(state, call.app, call.path["message_id"])
    chat = state.receiver(call.app, kind, call.text("receive_id"))
    state.limits.chat(chat.chat_id)
    message = ChatMessage(
        new_id("om"),
        chat.chat_id,
        call.app.app_id,
        "app",
        source.msg_type,
        source.content,
        state.clock.now_ms(),
        mentions=list(source.mentions),
        card=state.shown_card(source),
    )
    state.remember_uuid(call.app, call.uuid(), message)
    return state.keep(message).public()


def _live_message(state: LarkState, app: App, message_id: str) -> ChatMessage:
    message = state.message(app, message_id)
    if message.deleted:
        raise LarkError(RECALLED, "The message was withdrawn.")
    return message


_ROOT = "/open-apis/im/v1/messages"
ENDPOINTS = (
    RestEndpoint("POST", _ROOT, create, scopes.SEND),
    RestEndpoint("GET", _ROOT, list_messages, scopes.READ),
    RestEndpoint("POST", _ROOT + "/{message_id}/reply", reply, scopes.SEND),
    RestEndpoint("PATCH", _ROOT + "/{message_id}", patch, scopes.UPDATE),
    RestEndpoint("PUT", _ROOT + "/{message_id}", update, scopes.UPDATE),
    RestEndpoint("DELETE", _ROOT + "/{message_id}", delete, scopes.RECALL),
    RestEndpoint("GET", _ROOT + "/{message_id}", get, scopes.READ),
    RestEndpoint("POST", _ROOT + "/{message_id}/forward", forward, scopes.SEND),
    RestEndpoint("PATCH", _ROOT + "/{message_id}/urgent_app", urge, scopes.URGENT_MESSAGES),
)
