"""The chat page: plain files that need no build and ask for nothing foreign."""

from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from internal.simulators.lark.cardkit import streaming
from internal.simulators.lark.model import Chat, Json, Message
from internal.simulators.lark.services import Lark

_FOLDER = Path(__file__).with_name("static")
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


def routes() -> list[Route]:
    """Return a route for each file; the page itself stands at the root."""
    return [_route(file) for file in sorted(_FOLDER.iterdir()) if file.suffix in _KINDS]


def _route(file: Path) -> Route:
    data = file.read_bytes()

    async def give(_: Request) -> Response:
        return Response(data, media_type=_KINDS[file.suffix])

    path = "/" if file.name == "index.html" else f"/{file.name}"
    return Route(path, give, methods=["GET"])


MOST_LOG = 300


def changes(lark: Lark, since: int, log: int) -> Json:
    """Return the state, the messages changed after `since`, and the log entries after `log`."""
    world = lark.world
    changed = [world.messages[id_] for id_, at in world.versions.items() if at > since]
    return {
        "simulator": True,
        "version": world.version,
        "log_number": lark.log.number,
        "now": lark.clock.now_ms(),
        "down": lark.down,
        "apps": [
            {"app_id": app.app_id, "open_id": app.open_id, "name": app.name, **_links(lark, app_id)}
            for app_id, app in world.apps.items()
        ],
        "people": [{"open_id": one.open_id, "name": one.name} for one in world.people.values()],
        "chats": [_chat(chat) for chat in world.chats.values()],
        "faults": msgspec.to_builtins(lark.faults),
        "messages": [_message(lark, message) for message in changed],
        "log": [entry.public() for entry in lark.log.after(log)[-MOST_LOG:]],
    }


def _links(lark: Lark, app_id: str) -> Json:
    return {"connections": sum(one.app_id == app_id for one in lark.delivery.connections)}


def _chat(chat: Chat) -> Json:
    return {
        "chat_id": chat.chat_id,
        "mode": chat.mode,
        "name": chat.name,
        "members": chat.members,
        "bots": sorted(chat.bots),
    }


def _message(lark: Lark, message: Message) -> Json:
    world = lark.world
    reactions: dict[str, list[Any]] = {}
    for one in message.reactions:
        reactions.setdefault(one.emoji, []).append(
            {"id": one.operator, "name": world.name_of(one.operator)}
        )
    card = world.cards.get(message.card_id)
    return {
        **message.public(),
        "sender_name": world.name_of(message.sender),
        "card": None if message.deleted else world.shown_card(message),
        "streaming": card is not None and streaming(world, card),
        "edits": message.edits,
        "reactions": reactions,
    }
