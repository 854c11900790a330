import base64
import json
from typing import Any

import pytest

from internal.simulators.lark.cards.clicks import CardClick, click, find_clickable, update_later
from internal.simulators.lark.errors import LarkError
from internal.simulators.lark.model import App, ChatMessage, Json
from internal.simulators.lark.user_actions import ActionError
from internal.simulators.lark.websocket.connection import EventAck
from tests.unit.simulators.lark import APP, make_call, make_state

BUTTON = {
    "tag": "button",
    "name": "yes",
    "text": {"tag": "plain_text", "content": "Yes"},
    "behaviors": [{"type": "callback", "value": {"n": 1}}],
}
CARD: Json = {"schema": "2.0", "config": {"update_multi": True}, "body": {"elements": [BUTTON]}}
REPLACED: Json = {"schema": "2.0", "body": {"elements": [{"tag": "markdown", "content": "done"}]}}


def test_an_element_is_found_by_name_or_text() -> None:
    assert find_clickable(CARD, "yes") == find_clickable(CARD, "Yes") == ["body", "elements", 0]
    with pytest.raises(ActionError):
        find_clickable(CARD, "No")


async def test_the_response_replaces_the_card_and_the_token_updates_it_twice() -> None:
    state = make_state()
    person = next(iter(state.people))
    chat = state.dm(person).chat_id
    message = ChatMessage("om_1", chat, APP.app_id, "app", "interactive", "{}", 0, card=CARD)
    message.created = state.clock.now_ms()
    state.keep(message)
    events: list[Any] = []

    async def answer(_: App, event: Json) -> EventAck:
        events.append(event)
        response = {"toast": {"content": "ok"}, "card": {"type": "raw", "data": REPLACED}}
        return EventAck(200, base64.b64encode(json.dumps(response).encode()).decode())

    shown = await click(
        state,
        answer,
        person,
        message_id="om_1",
        press=CardClick(path=find_clickable(CARD, "yes")),
    )
    assert shown == {"toast": {"content": "ok"}}
    assert events[0]["action"]["value"] == {"n": 1}
    assert message.card == REPLACED
    call = make_call({"token": events[0]["token"], "card": REPLACED})
    update_later(state, call)
    update_later(state, call)
    with pytest.raises(LarkError):
        update_later(state, call)
