"""Reactions, chats, members, people and the bot."""

import re

from internal.simulators.lark.errors import LarkError, bad_field
from internal.simulators.lark.model import TENANT, App, Chat, ChatMessage, Json, Reaction, new_id
from internal.simulators.lark.rest import scopes
from internal.simulators.lark.rest.call import RestCall, RestEndpoint, TopLevelResult
from internal.simulators.lark.state import LarkState

BAD_EMOJI, NO_RIGHT, NO_MESSAGE, FOREIGN_REACTION, BAD_REACTION = (
    *(231001, 231002, 231003),
    *(231007, 231010),
)
NOT_IN_CHAT, BAD_CHAT = 232011, 232006
NO_CONTACT = 41050
_EMOJI = re.compile(r"[A-Za-z0-9_+]{1,40}")


def add_reaction(state: LarkState, call: RestCall) -> Json:
    """Add an emoji to a message."""
    message = _message(state, call)
    kind = call.body.get("reaction_type")
    emoji = kind.get("emoji_type") if isinstance(kind, dict) else None
    if not isinstance(emoji, str) or not _EMOJI.fullmatch(emoji):
        raise LarkError(BAD_EMOJI, "The emoji_type is invalid.")
    return set_reaction(state, message, emoji, operator=call.app.app_id, kind="app").public()


def set_reaction(
    state: LarkState, message: ChatMessage, emoji: str, *, operator: str, kind: str
) -> Reaction:
    """Add a reaction, once per operator, and notify the bots of the chat."""
    for reaction in message.reactions:
        if (reaction.emoji, reaction.operator) == (emoji, operator):
            return reaction
    reaction = Reaction(new_id("ZCaCIjUBVVWSrm5L"), emoji, operator, kind, state.clock.now_ms())
    message.reactions.append(reaction)
    _emit_reaction(state, message, reaction, "created")
    return reaction


def remove_reaction(state: LarkState, message: ChatMessage, reaction: Reaction) -> None:
    """Remove a reaction and notify the bots of the chat."""
    message.reactions.remove(reaction)
    _emit_reaction(state, message, reaction, "deleted")


def _emit_reaction(state: LarkState, message: ChatMessage, reaction: Reaction, what: str) -> None:
    state.touch(message)
    event: Json = {
        "message_id": message.message_id,
        "reaction_type": {"emoji_type": reaction.emoji},
        "operator_type": reaction.operator_type,
        "action_time": str(reaction.at_ms),
    }
    if reaction.operator_type == "app":
        event["app_id"] = reaction.operator
    else:
        event["user_id"] = state.people[reaction.operator].ids()
    for app_id in sorted(state.chats[message.chat_id].bots):
        state.emit(state.apps[app_id], f"im.message.reaction.{what}_v1", event)


def list_reactions(state: LarkState, call: RestCall) -> Json:
    """Return a page of a message's reactions, optionally of one emoji."""
    emoji = call.query.get("reaction_type")
    found = [one for one in _message(state, call).reactions if emoji in {None, one.emoji}]
    return call.page([reaction.public() for reaction in found])


def delete_reaction(state: LarkState, call: RestCall) -> Json:
    """Remove a reaction of the bot."""
    message = _message(state, call)
    for reaction in message.reactions:
        if reaction.reaction_id == call.path["reaction_id"]:
            if reaction.operator != call.app.app_id:
                raise LarkError(FOREIGN_REACTION, "The reaction is not the operator's.")
            remove_reaction(state, message, reaction)
            return reaction.public()
    raise LarkError(BAD_REACTION, "The reaction_id is invalid.")


def _message(state: LarkState, call: RestCall) -> ChatMessage:
    message = state.messages.get(call.path["message_id"])
    if message is None or message.deleted:
        raise LarkError(NO_MESSAGE, "The message is not found or recalled.")
    if call.app.app_id not in state.chats[message.chat_id].bots:
        raise LarkError(NO_RIGHT, "The operator has no right to react on this message.")
    return message


def list_chats(state: LarkState, call: RestCall) -> Json:
    """Return a page of the bot's groups."""
    found = [one for one in state.chats.values() if one.mode != "p2p" and _is_member(call.app, one)]
    return call.page([_chat(chat) for chat in found], 100)


def get_chat(state: LarkState, call: RestCall) -> Json:
    """Return a chat."""
    chat = _find_chat(state, call)
    return {
        **_chat(chat),
        "chat_mode": chat.mode,
        "chat_type": "private",
        "user_count": str(len(chat.members)),
        "bot_count": str(len(chat.bots)),
    }


def list_members(state: LarkState, call: RestCall) -> Json:
    """Return a page of the people in a chat."""
    chat = _find_chat(state, call)
    kind = _read_id_type(call, "member_id_type")
    items = [
        {
            "member_id_type": kind,
            "member_id": state.people[open_id].ids()[kind],
            "name": state.people[open_id].name,
            "tenant_key": state.people[open_id].tenant_key,
        }
        for open_id in chat.members
    ]
    return {**call.page(items, 100), "member_total": len(items)}


def _find_chat(state: LarkState, call: RestCall) -> Chat:
    chat = state.chats.get(call.path["chat_id"])
    if chat is None:
        raise LarkError(BAD_CHAT, "The chat_id is invalid.")
    if not _is_member(call.app, chat):
        raise LarkError(NOT_IN_CHAT, "The operator can NOT be out of the chat.")
    return chat


def _is_member(app: App, chat: Chat) -> bool:
    return app.app_id in chat.bots


def _chat(chat: Chat) -> Json:
    return {
        "chat_id": chat.chat_id,
        "avatar": "",
        "name": "" if chat.mode == "p2p" else chat.name,
        "description": "",
        "owner_id": next(iter(chat.members), ""),
        "owner_id_type": "open_id",
        "external": False,
        "tenant_key": TENANT,
        "chat_status": "normal",
    }


def bot_info(_: LarkState, call: RestCall) -> TopLevelResult:
    """Return the bot."""
    bot = {
        "activate_status": 2,
        "app_name": call.app.name,
        "avatar_url": "",
        "ip_white_list": [],
        "open_id": call.app.open_id,
    }
    return TopLevelResult({"bot": bot})


def query_tenant(_: LarkState, call: RestCall) -> Json:
    """Return the organization in which the app is installed."""
    tenant = {"name": "Larkspur", "display_id": "F1", "tenant_tag": 0, "tenant_key": TENANT}
    return {"tenant": tenant | {"domain": f"{call.app.name.lower()}.example"}}


def get_user(state: LarkState, call: RestCall) -> Json:
    """Return a person."""
    person = state.person(_read_id_type(call, "user_id_type"), call.path["user_id"])
    if person is None or person.open_id in state.left:
        raise LarkError(NO_CONTACT, "no user authority error")
    user = {**person.ids(), "name": person.name, "en_name": person.name}
    user["tenant_key"] = person.tenant_key
    if person.time_zone:
        user["time_zone"] = person.time_zone
    return {"user": user}


def list_users(state: LarkState, call: RestCall) -> Json:
    """Return the people with these ids that the app may see."""
    kind, ids = _read_id_type(call, "user_id_type"), call.query_list("user_ids")
    if not 1 <= len(ids) <= MAX_USERS:
        raise bad_field("user_ids", f"must have 1 to {MAX_USERS} values")
    found = [state.person(kind, each) for each in ids]
    return {"items": [{**one.ids(), "name": one.name} for one in found if one is not None]}


def _read_id_type(call: RestCall, name: str) -> str:
    kind = call.query.get(name) or "open_id"
    if kind not in {"open_id", "user_id", "union_id"}:
        raise bad_field(name, "options: [open_id, union_id, user_id]")
    return kind


MAX_USERS = 50
_REACTIONS = "/open-apis/im/v1/messages/{message_id}/reactions"
_CHATS = "/open-apis/im/v1/chats"
ENDPOINTS = (
    RestEndpoint("POST", _REACTIONS, add_reaction, scopes.REACT),
    RestEndpoint("GET", _REACTIONS, list_reactions, scopes.READ_REACTIONS),
    RestEndpoint("DELETE", _REACTIONS + "/{reaction_id}", delete_reaction, scopes.REACT),
    RestEndpoint("GET", _CHATS, list_chats, scopes.READ_CHAT),
    RestEndpoint("GET", _CHATS + "/{chat_id}", get_chat, scopes.READ_CHAT),
    RestEndpoint("GET", _CHATS + "/{chat_id}/members", list_members, scopes.READ_MEMBERS),
    RestEndpoint("GET", "/open-apis/bot/v3/info", bot_info),
    RestEndpoint("GET", "/open-apis/tenant/v2/tenant/query", query_tenant, scopes.TENANT_INFO),
    RestEndpoint("GET", "/open-apis/contact/v3/users/batch", list_users, scopes.CONTACTS),
    RestEndpoint("GET", "/open-apis/contact/v3/users/{user_id}", get_user, scopes.CONTACTS),
)
