"""Actions of the control API: one request type and one table entry each."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from internal.simulators.lark import user_actions
from internal.simulators.lark.cards.clicks import CardClick, click
from internal.simulators.lark.model import ChatMessage, Json, encode
from internal.simulators.lark.services import LarkServices


class SendTextRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A text message; `mentions` are open_ids or "all"."""

    person: str
    chat: str
    text: str
    mentions: list[str] = []
    reply_to: str = ""
    in_thread: bool = False
    age_seconds: float = 0.0


class SendMessageRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A message of any type; `content` is passed to the app unchanged."""

    person: str
    chat: str
    msg_type: str
    content: dict[str, Any]
    reply_to: str = ""
    in_thread: bool = False


class MergeRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Messages that are forwarded as one."""

    person: str
    chat: str
    messages: list[str]
    reply_to: str = ""


class EditRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The new text of a message; `mentions` are open_ids or "all"."""

    person: str
    message: str
    text: str
    mentions: list[str] = []


class UploadRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A file; `data` in base64."""

    person: str
    chat: str
    name: str
    data: bytes
    kind: user_actions.MediaKind = "file"
    reply_to: str = ""


class ClickRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A click on a card."""

    person: str
    message: str
    press: CardClick


class MessageRequest(msgspec.Struct, forbid_unknown_fields=True):
    """An action on a message."""

    person: str
    message: str
    emoji: str = ""


class ChatRequest(msgspec.Struct, forbid_unknown_fields=True):
    """An action in a chat."""

    person: str
    chat: str
    app: str = ""
    present: bool = True


class CreateRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A new person or group; a group without `members` contains everyone."""

    name: str
    members: list[str] = []
    bots: list[str] | None = None
    topic: bool = False

    def __post_init__(self) -> None:
        if not self.name.strip() or len(self.name) > 60:  # noqa: PLR2004 - Lark's limit for chat names
            raise ValueError("name must have 1 to 60 characters")


class BotMessageRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A text of the bot of another app in a group; `mentions` are open_ids."""

    app: str
    chat: str
    text: str
    mentions: list[str] = []
    reply_to: str = ""


class MenuRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A choice in the menu of a bot, by default the first one."""

    person: str
    key: str
    app: str = ""


class DurationRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A duration in seconds, at most a year."""

    seconds: float

    def __post_init__(self) -> None:
        if not 0 <= self.seconds <= 366 * 86_400:
            raise ValueError("seconds must be between 0 and 366 days")


class RedeliverRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The message whose events are sent again."""

    message: str


class RawEventRequest(msgspec.Struct, forbid_unknown_fields=True):
    """An event that is sent unchanged, valid or not."""

    event_type: str
    event: dict[str, Any]


class NoParameters(msgspec.Struct, forbid_unknown_fields=True):
    """A request without parameters."""


def _sent(message: ChatMessage) -> Json:
    return {"message_id": message.message_id}


async def _send(lark: LarkServices, given: SendTextRequest) -> Json:
    draft = user_actions.text_draft(lark.state, given.text, given.mentions)
    draft = user_actions.as_reply(draft, given.reply_to, given.in_thread, given.age_seconds)
    return _sent(user_actions.send(lark.state, given.person, given.chat, draft))


async def _post(lark: LarkServices, given: SendMessageRequest) -> Json:
    draft = user_actions.as_reply(
        user_actions.MessageDraft(given.msg_type, given.content), given.reply_to, given.in_thread
    )
    return _sent(user_actions.send(lark.state, given.person, given.chat, draft))


async def _merge(lark: LarkServices, given: MergeRequest) -> Json:
    draft = user_actions.merge_draft(lark.state, given.messages)
    draft = user_actions.as_reply(draft, given.reply_to, in_thread=False)
    return _sent(user_actions.send(lark.state, given.person, given.chat, draft))


async def _edit(lark: LarkServices, given: EditRequest) -> Json:
    draft = user_actions.text_draft(lark.state, given.text, given.mentions)
    user_actions.edit(lark.state, given.person, given.message, draft)
    return {}


async def _upload(lark: LarkServices, given: UploadRequest) -> Json:
    draft = user_actions.upload_draft(lark.state, given.name, given.data, given.kind)
    draft = user_actions.as_reply(draft, given.reply_to, in_thread=False)
    return _sent(user_actions.send(lark.state, given.person, given.chat, draft))


async def _click(lark: LarkServices, given: ClickRequest) -> Json:
    call_back = lark.delivery.call_back
    return await click(
        lark.state, call_back, given.person, message_id=given.message, press=given.press
    )


async def _react(lark: LarkServices, given: MessageRequest) -> Json:
    user_actions.react(lark.state, given.person, given.message, given.emoji)
    return {}


async def _recall(lark: LarkServices, given: MessageRequest) -> Json:
    user_actions.recall(lark.state, given.person, given.message)
    return {}


async def _read(lark: LarkServices, given: ChatRequest) -> Json:
    user_actions.read_chat(lark.state, given.person, given.chat)
    return {}


async def _enter(lark: LarkServices, given: ChatRequest) -> Json:
    user_actions.enter_chat(lark.state, given.person, given.chat)
    return {}


async def _bot_message(lark: LarkServices, given: BotMessageRequest) -> Json:
    draft = user_actions.text_draft(lark.state, given.text, given.mentions)
    draft = user_actions.as_reply(draft, given.reply_to, in_thread=False)
    return _sent(user_actions.send_as_bot(lark.state, given.app, given.chat, draft))


async def _menu(lark: LarkServices, given: MenuRequest) -> Json:
    app_id = given.app or next(iter(lark.state.apps))
    user_actions.choose_menu(lark.state, given.person, app_id, given.key)
    return {}


async def _bot(lark: LarkServices, given: ChatRequest) -> Json:
    app_id = given.app or next(iter(lark.state.apps))
    user_actions.set_bot_presence(
        lark.state, given.person, given.chat, app_id, present=given.present
    )
    return {}


async def _disband(lark: LarkServices, given: ChatRequest) -> Json:
    user_actions.disband(lark.state, given.person, given.chat)
    return {}


async def _person(lark: LarkServices, given: CreateRequest) -> Json:
    return {"open_id": lark.state.add_person(given.name.strip()).open_id}


async def _group(lark: LarkServices, given: CreateRequest) -> Json:
    state = lark.state
    bots = state.apps if given.bots is None else given.bots
    try:
        members = given.members or state.people
        chat = state.add_group(given.name.strip(), members, bots, topic=given.topic)
    except KeyError as error:
        raise user_actions.ActionError(f"unknown id: {error.args[0]}") from error
    return {"chat_id": chat.chat_id}


async def _faults(lark: LarkServices, given: dict[str, Any]) -> Json:
    lark.switch(given)
    return {}


async def _drop(lark: LarkServices, _: NoParameters) -> Json:
    return {"dropped": lark.drop()}


async def _silence(lark: LarkServices, _: NoParameters) -> Json:
    return {"silent": lark.silence()}


async def _deafen(lark: LarkServices, _: NoParameters) -> Json:
    return {"deaf": lark.deafen()}


async def _down(lark: LarkServices, given: DurationRequest) -> Json:
    lark.go_down(given.seconds)
    return {}


async def _advance(lark: LarkServices, given: DurationRequest) -> Json:
    lark.clock.advance(given.seconds)
    lark.changes.notify()
    return {}


async def _revoke(lark: LarkServices, _: NoParameters) -> Json:
    lark.tokens.revoke()
    lark.log.add("note", "", "all tokens revoked")
    return {}


async def _redeliver(lark: LarkServices, given: RedeliverRequest) -> Json:
    return {"events": lark.redeliver(given.message)}


async def _event(lark: LarkServices, given: RawEventRequest) -> Json:
    app = next(iter(lark.state.apps.values()))
    encode(given.event)
    lark.delivery.emit(app, given.event_type, given.event)
    return {}


class ControlAction(NamedTuple):
    """The request type and the handler of an action."""

    takes: Any
    do: Callable[[LarkServices, Any], Awaitable[Json]]


ACTIONS = {
    "send": ControlAction(SendTextRequest, _send),
    "post": ControlAction(SendMessageRequest, _post),
    "merge": ControlAction(MergeRequest, _merge),
    "edit": ControlAction(EditRequest, _edit),
    "upload": ControlAction(UploadRequest, _upload),
    "click": ControlAction(ClickRequest, _click),
    "react": ControlAction(MessageRequest, _react),
    "recall": ControlAction(MessageRequest, _recall),
    "read": ControlAction(ChatRequest, _read),
    "enter": ControlAction(ChatRequest, _enter),
    "bot_message": ControlAction(BotMessageRequest, _bot_message),
    "menu": ControlAction(MenuRequest, _menu),
    "bot": ControlAction(ChatRequest, _bot),
    "disband": ControlAction(ChatRequest, _disband),
    "person": ControlAction(CreateRequest, _person),
    "group": ControlAction(CreateRequest, _group),
    "faults": ControlAction(dict[str, Any], _faults),
    "drop": ControlAction(NoParameters, _drop),
    "silence": ControlAction(NoParameters, _silence),
    "deafen": ControlAction(NoParameters, _deafen),
    "down": ControlAction(DurationRequest, _down),
    "advance": ControlAction(DurationRequest, _advance),
    "revoke": ControlAction(NoParameters, _revoke),
    "redeliver": ControlAction(RedeliverRequest, _redeliver),
    "event": ControlAction(RawEventRequest, _event),
}
