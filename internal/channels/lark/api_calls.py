"""The calls of Lark that we make, and how content is written for them."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from internal.channels.lark.api import COSMETIC, PATIENT, Call, LarkApi, LarkRefused, Patience

_MESSAGES = "/open-apis/im/v1/messages"
_PAGES = 20
_BRIEF = Patience(tries=1, seconds=1.5)  # a click waits for it, and has three seconds


def as_json(value: Any) -> str:
    """Return JSON text, as `content` wants it."""
    return msgspec.json.encode(value).decode()


class LarkCalls:
    """Messages, reactions and files, as one app."""

    def __init__(self, api: LarkApi) -> None:
        self._api = api

    async def reply(
        self, message_id: str, kind: str, content: str, uuid: str, patience: Patience = PATIENT
    ) -> str:
        """Answer a message and return the answer's id. The same uuid is sent once."""
        body = {"msg_type": kind, "content": content, "uuid": uuid}
        return await self._sent(Call("POST", _of(message_id, "/reply"), body=body), patience)

    async def create(self, chat_id: str, kind: str, content: str, uuid: str) -> str:
        """Send a message to a chat and return its id. The same uuid is sent once."""
        body = {"receive_id": chat_id, "msg_type": kind, "content": content, "uuid": uuid}
        query = {"receive_id_type": "chat_id"}
        return await self._sent(Call("POST", _MESSAGES, query=query, body=body), PATIENT)

    async def patch_card(self, message_id: str, card: str, patience: Patience) -> None:
        """Replace a card."""
        await self._api.call(Call("PATCH", _of(message_id), body={"content": card}), patience)

    async def edit_text(self, message_id: str, text: str, patience: Patience) -> None:
        """Replace a text."""
        body = {"msg_type": "text", "content": as_json({"text": text})}
        await self._api.call(Call("PUT", _of(message_id), body=body), patience)

    async def react(self, message_id: str, emoji: str) -> str:
        """Put an emoji on a message and return the reaction's id."""
        body = {"reaction_type": {"emoji_type": emoji}}
        data = await self._api.call(Call("POST", _of(message_id, "/reactions"), body=body))
        return str(data.get("reaction_id", ""))

    async def unreact(self, message_id: str, reaction_id: str) -> None:
        """Take an emoji of our own away."""
        path = _of(message_id, f"/reactions/{quote(reaction_id, safe='')}")
        await self._api.call(Call("DELETE", path))

    async def upload(self, name: str, content: bytes) -> str:
        """Upload a file and return its key."""
        form = {"file_type": "stream", "file_name": name}
        file = (name, "application/octet-stream", content)
        data = await self._api.call(Call("POST", "/open-apis/im/v1/files", form=form, file=file))
        return _text(data, "file_key")

    async def bot_open_id(self) -> str:
        """Return who we are."""
        data = await self._api.call(Call("GET", "/open-apis/bot/v3/info"))
        return _text(data.get("bot") or {}, "open_id")

    async def name_of(self, open_id: str) -> str:
        """Return what a person is called; it takes a scope of its own."""
        path = f"/open-apis/contact/v3/users/{quote(open_id, safe='')}"
        data = await self._api.call(Call("GET", path, query={"user_id_type": "open_id"}), _BRIEF)
        return _text(data.get("user") or {}, "name")

    async def message(self, message_id: str) -> Mapping[str, Any]:
        """Return a message."""
        items = (await self._api.call(Call("GET", _of(message_id)))).get("items")
        return items[0] if isinstance(items, list) and items else {}

    async def messages(
        self, kind: str, container: str, since: float
    ) -> AsyncGenerator[Mapping[str, Any]]:
        """Yield the messages of a `chat` or a `thread` since a moment (seconds), oldest first."""
        query = {
            "container_id_type": kind,
            "container_id": container,
            "sort_type": "ByCreateTimeAsc",
            "page_size": "50",
        }
        if kind == "chat":
            query["start_time"] = str(int(since))
        for _ in range(_PAGES):
            data = await self._api.call(Call("GET", _MESSAGES, query=query))
            for item in data.get("items") or ():
                yield item
            query["page_token"] = str(data.get("page_token") or "")
            if not data.get("has_more") or not query["page_token"]:
                return

    async def _sent(self, call: Call, patience: Patience) -> str:
        return _text(await self._api.call(call, patience), "message_id")


def _of(message_id: str, rest: str = "") -> str:
    return f"{_MESSAGES}/{quote(message_id, safe='')}{rest}"


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str) or not value:
        raise LarkRefused(0, f"its answer has no {name}")
    return value


__all__ = ["COSMETIC", "PATIENT", "LarkCalls", "as_json"]
