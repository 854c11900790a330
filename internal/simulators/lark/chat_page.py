"""The chat page: its static files and the state it shows."""

from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from internal.simulators.lark.cards.cardkit import is_streaming
from internal.simulators.lark.model import Chat, ChatMessage, Json
from internal.simulators.lark.services import LarkServices

_FOLDER = Path(__file__).with_name("static")
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


def routes() -> list[Route]:
    """Return one route per static file; index.html is served at `/`."""
    return [_route(file) for file in sorted(_FOLDER.iterdir()) if file.suffix in _KINDS]


def _route(file: Path) -> Route:
    data = file.read_bytes()

    async def give(_: Request) -> Response:
        return Response(data, media_type=_KINDS[file.suffix])

    path = "/" if file.name == "index.html" else f"/{file.name}"
    return Route(path, give, methods=["GET"])


MAX_LOG_ENTRIES = 300


def changes_since(lark: LarkServices, since: int, log: int) -> Json:
    """Return the state, the messages changed after `since` and the log entries after `log`."""
    state = lark.state
    changed = [state.messages[id_] for id_, at in state.versions.items() if at > since]
    return {
        "simulator": True,
        "version": state.version,
        "log_number": lark.log.number,
        "now": lark.clock.now_ms(),
        "down": lark.down,
        "apps": [
            {"app_id": app.app_id, "open_id": app.open_id, "name": app.name, **_links(lark, app_id)}
            for app_id, app in state.apps.items()
        ],
        "people": [{"open_id": one.open_id, "name": one.name} for one in state.people.values()],
        "chats": [_chat(chat) for chat in state.chats.values()],
        "faults": msgspec.to_builtins(lark.faults),
        "messages": [_message(lark, message) for message in changed],
        "log": [entry.public() for entry in lark.log.after(log)[-MAX_LOG_ENTRIES:]],
    }


def _links(lark: LarkServices, app_id: str) -> Json:
    return {"connections": sum(one.app_id == app_id for one in lark.delivery.connections)}


def _chat(chat: Chat) -> Json:
    return {
        "chat_id": chat.chat_id,
        "mode": chat.mode,
        "name": chat.name,
        "members": chat.members,
        "bots": sorted(chat.bots),
    }


def _message(lark: LarkServices, message: ChatMessage) -> Json:
    state = lark.state
    reactions: dict[str, list[Any]] = {}
    for one in message.reactions:
        reactions.setdefault(one.emoji, []).append(
            {"id": one.operator, "name": state.name_of(one.operator)}
        )
    card = state.cards.get(message.card_id)
    return {
        **message.public(),
        "sender_name": state.name_of(message.sender),
        "card": None if message.deleted else state.shown_card(message),
        "streaming": card is not None and is_streaming(state, card),
        "edits": message.edits,
        "urgent": [state.name_of(each) or each for each in message.urgent],
        "reactions": reactions,
    }
