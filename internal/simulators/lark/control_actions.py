"""What can be done through the control API: its roster, one row an action."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from internal.simulators.lark import user_actions
from internal.simulators.lark.card_clicks import Press, click
from internal.simulators.lark.model import Json, Message, encode
from internal.simulators.lark.services import Lark


class Send(msgspec.Struct, forbid_unknown_fields=True):
    """A text of a person; `mentions` are open_ids, or "all"."""

    person: str
    chat: str
    text: str
    mentions: list[str] = []
    reply_to: str = ""
    in_thread: bool = False
    age_seconds: float = 0.0


class Post(msgspec.Struct, forbid_unknown_fields=True):
    """Any message of a person, content as the app will get it."""

    person: str
    chat: str
    msg_type: str
    content: dict[str, Any]
    reply_to: str = ""
    in_thread: bool = False


class Upload(msgspec.Struct, forbid_unknown_fields=True):
    """An image or file of a person; `data` in base64."""

    person: str
    chat: str
    name: str
    data: bytes
    image: bool = False


class Clicked(msgspec.Struct, forbid_unknown_fields=True):
    """A click of a person."""

    person: str
    message: str
    press: Press


class OnMessage(msgspec.Struct, forbid_unknown_fields=True):
    """Something that a person does with a message."""

    person: str
    message: str
    emoji: str = ""


class InChat(msgspec.Struct, forbid_unknown_fields=True):
    """Something that a person does in a chat."""

    person: str
    chat: str
    app: str = ""
    present: bool = True


class Named(msgspec.Struct, forbid_unknown_fields=True):
    """A new person, or a group; a group without `members` is of everybody."""

    name: str
    members: list[str] = []
    bots: list[str] | None = None
    topic: bool = False

    def __post_init__(self) -> None:
        if not self.name.strip() or len(self.name) > 60:  # noqa: PLR2004 - as Lark's chats
            raise ValueError("a name has 1 to 60 characters")


class Seconds(msgspec.Struct, forbid_unknown_fields=True):
    """How long."""

    seconds: float

    def __post_init__(self) -> None:
        if not 0 <= self.seconds <= 366 * 86_400:
            raise ValueError("seconds are 0 to a year")


class Again(msgspec.Struct, forbid_unknown_fields=True):
    """Which message's events come again."""

    message: str


class Raw(msgspec.Struct, forbid_unknown_fields=True):
    """An event as it is, right or wrong."""

    event_type: str
    event: dict[str, Any]


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """No words needed."""


def _sent(message: Message) -> Json:
    return {"message_id": message.message_id}


async def _send(lark: Lark, given: Send) -> Json:
    draft = user_actions.text(lark.world, given.text, given.mentions)
    draft = user_actions.replying(draft, given.reply_to, given.in_thread, given.age_seconds)
    return _sent(user_actions.send(lark.world, given.person, given.chat, draft))


async def _post(lark: Lark, given: Post) -> Json:
    draft = user_actions.replying(
        user_actions.Draft(given.msg_type, given.content), given.reply_to, given.in_thread
    )
    return _sent(user_actions.send(lark.world, given.person, given.chat, draft))


async def _upload(lark: Lark, given: Upload) -> Json:
    draft = user_actions.upload(lark.world, given.name, given.data, image=given.image)
    return _sent(user_actions.send(lark.world, given.person, given.chat, draft))


async def _click(lark: Lark, given: Clicked) -> Json:
    call_back = lark.delivery.call_back
    return await click(lark.world, call_back, given.person, given.message, given.press)


async def _react(lark: Lark, given: OnMessage) -> Json:
    user_actions.react(lark.world, given.person, given.message, given.emoji)
    return {}


async def _recall(lark: Lark, given: OnMessage) -> Json:
    user_actions.recall(lark.world, given.person, given.message)
    return {}


async def _read(lark: Lark, given: InChat) -> Json:
    user_actions.read(lark.world, given.person, given.chat)
    return {}


async def _enter(lark: Lark, given: InChat) -> Json:
    user_actions.enter(lark.world, given.person, given.chat)
    return {}


async def _bot(lark: Lark, given: InChat) -> Json:
    app_id = given.app or next(iter(lark.world.apps))
    user_actions.place_bot(lark.world, given.person, given.chat, app_id, present=given.present)
    return {}


async def _person(lark: Lark, given: Named) -> Json:
    return {"open_id": lark.world.add_person(given.name.strip()).open_id}


async def _group(lark: Lark, given: Named) -> Json:
    world = lark.world
    bots = world.apps if given.bots is None else given.bots
    try:
        members = given.members or world.people
        chat = world.add_group(given.name.strip(), members, bots, topic=given.topic)
    except KeyError as error:
        raise user_actions.NotPossible(f"{error.args[0]} is nobody") from error
    return {"chat_id": chat.chat_id}


async def _faults(lark: Lark, given: dict[str, Any]) -> Json:
    lark.switch(given)
    return {}


async def _drop(lark: Lark, _: Nothing) -> Json:
    return {"dropped": lark.drop()}


async def _silence(lark: Lark, _: Nothing) -> Json:
    return {"silent": lark.silence()}


async def _down(lark: Lark, given: Seconds) -> Json:
    lark.go_down(given.seconds)
    return {}


async def _advance(lark: Lark, given: Seconds) -> Json:
    lark.clock.advance(given.seconds)
    lark.changes.ring()
    return {}


async def _revoke(lark: Lark, _: Nothing) -> Json:
    lark.tokens.revoke()
    lark.log.add("note", "", "all tokens are revoked")
    return {}


async def _redeliver(lark: Lark, given: Again) -> Json:
    return {"events": lark.redeliver(given.message)}


async def _event(lark: Lark, given: Raw) -> Json:
    app = next(iter(lark.world.apps.values()))
    encode(given.event)
    lark.delivery.emit(app, given.event_type, given.event)
    return {}


class Action(NamedTuple):
    """What an action takes, and what does it."""

    takes: Any
    do: Callable[[Lark, Any], Awaitable[Json]]


ACTIONS = {
    "send": Action(Send, _send),
    "post": Action(Post, _post),
    "upload": Action(Upload, _upload),
    "click": Action(Clicked, _click),
    "react": Action(OnMessage, _react),
    "recall": Action(OnMessage, _recall),
    "read": Action(InChat, _read),
    "enter": Action(InChat, _enter),
    "bot": Action(InChat, _bot),
    "person": Action(Named, _person),
    "group": Action(Named, _group),
    "faults": Action(dict[str, Any], _faults),
    "drop": Action(Nothing, _drop),
    "silence": Action(Nothing, _silence),
    "down": Action(Seconds, _down),
    "advance": Action(Seconds, _advance),
    "revoke": Action(Nothing, _revoke),
    "redeliver": Action(Again, _redeliver),
    "event": Action(Raw, _event),
}
