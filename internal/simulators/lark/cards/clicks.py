"""Clicks on cards: the callback to the app and the effect of its response."""

import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from internal.simulators.lark.cards.card_json import CardPart, check_card, is_schema_2, iter_parts
from internal.simulators.lark.cards.cardkit import is_streaming
from internal.simulators.lark.errors import CardError, LarkError, bad_field, bad_parameter
from internal.simulators.lark.model import App, ChatMessage, ClickToken, Json, new_id
from internal.simulators.lark.rest.call import RestCall, RestEndpoint
from internal.simulators.lark.rest.im_messages import show_card
from internal.simulators.lark.state import LarkState
from internal.simulators.lark.user_actions import ActionError, visible_message
from internal.simulators.lark.websocket.connection import EventAck

TOKEN_LIFETIME_SECONDS, MAX_TOKEN_USES = 1_800.0, 2
CLICKABLE_DAYS_V1, CLICKABLE_DAYS_V2 = 30, 14
"""For cards of schema 1.0 and of 2.0."""
BAD_TOKEN = 300090
FAILED = {"type": "error", "content": "Something went wrong; the bot did not answer in time."}
Callback = Callable[[App, Json], Awaitable[EventAck | None]]


class CardClick(msgspec.Struct, forbid_unknown_fields=True):
    """A click: the path to the element, and the values entered there or in its form."""

    path: list[str | int] = []
    form_value: dict[str, Any] | None = None
    input_value: str | None = None
    option: str | None = None
    options: list[str] | None = None
    checked: bool | None = None


def find_clickable(card: Json, label: str) -> list[str | int]:
    """Return the path to the clickable element with this name, element_id or text.

    Raises:
        ActionError: There is none, or more than one.
    """
    found = [part for part in iter_parts(card) if _clickable(part.value) and label in _labels(part)]
    if len(found) != 1:
        raise ActionError(f"{len(found)} clickable elements match {label!r}")
    return list(found[0].path)


def _labels(part: CardPart) -> list[object]:
    words = part.value.get("text")
    content = words.get("content") if isinstance(words, dict) else None
    return [part.value.get("name"), part.value.get("element_id"), content]


def _clickable(value: Json) -> bool:
    tag = value["tag"]
    return tag in {"button", "overflow", "input", "checker", "interactive_container"} or (
        tag.startswith(("select_", "multi_select_", "picker_", "date_"))
    )


async def click(
    state: LarkState, call_back: Callback, person: str, *, message_id: str, press: CardClick
) -> Json:
    """Click as a person; return the toast and, in `error`, why the card was not updated.

    Raises:
        ActionError: The person cannot click such an element.
    """
    message = visible_message(state, person, message_id)
    app = state.apps.get(message.sender)
    card = state.shown_card(message)
    if app is None or card is None:
        raise ActionError("the message is not a bot's card")
    action = _action(_at(card, press.path), press)
    days = CLICKABLE_DAYS_V2 if is_schema_2(card) else CLICKABLE_DAYS_V1
    if state.clock.now_ms() - message.created > days * 86_400_000:
        return {"toast": {"type": "error", "content": "This card has expired."}}
    token = new_id("c").replace("_", "-")
    state.clicks[token] = ClickToken(message_id, app.app_id, state.clock.now())
    event = {
        "operator": {
            **state.people[person].ids(),
            "tenant_key": state.people[person].tenant_key,
        },
        "token": token,
        "action": action,
        "host": "im_message",
        "context": {"open_message_id": message_id, "open_chat_id": message.chat_id},
    }
    ack = await call_back(app, event)
    state.clicks[token].answered = True
    return {"toast": FAILED} if ack is None else _apply(state, message, ack)


def _at(card: Json, path: list[str | int]) -> Json:
    value: Any = card
    try:
        for key in path:
            value = value[key]
    except (KeyError, IndexError, TypeError) as error:
        raise ActionError("the card has no such element") from error
    if not isinstance(value, dict) or "tag" not in value or not _clickable(value):
        raise ActionError("the element is not clickable")
    if value.get("disabled") is True:
        raise ActionError("the element is disabled")
    return value


def _action(part: Json, press: CardClick) -> Json:
    entered = msgspec.to_builtins(press)
    del entered["path"]
    action = {name: value for name, value in entered.items() if value is not None}
    action["tag"] = part["tag"]
    if name := part.get("name"):
        action["name"] = name
    value = part.get("value")
    behaviors = part.get("behaviors")
    for behavior in behaviors if isinstance(behaviors, list) else ():
        if isinstance(behavior, dict) and behavior.get("type") == "callback":
            value = behavior.get("value")
    if value is not None:
        action["value"] = value
    return action


def _apply(state: LarkState, message: ChatMessage, ack: EventAck) -> Json:
    """Apply the app's response to a click."""
    try:
        answer = json.loads(base64.b64decode(ack.data or "e30=", validate=True))
    except (ValueError, RecursionError):
        return {"toast": FAILED, "error": "the response is not base64-encoded JSON"}
    if not isinstance(answer, dict):
        return {"toast": FAILED, "error": "the response is not a JSON object"}
    outcome: Json = {"toast": answer.get("toast")}
    card = answer.get("card")
    if card is not None:
        try:
            _replace(state, message, card)
        except (CardError, ActionError) as error:
            outcome["error"] = str(error)
    return outcome


def _replace(state: LarkState, message: ChatMessage, given: Any) -> None:
    if not isinstance(given, dict) or given.get("type") != "raw":
        raise ActionError("card.type is not raw")
    card: Json = given.get("data") or {}
    check_card(card)
    entity = state.cards.get(message.card_id)
    if entity is not None and is_streaming(state, entity):
        raise ActionError("a streaming card cannot be updated by a callback")
    show_card(state, message, card)


def update_later(state: LarkState, call: RestCall) -> Json:
    """Update a card with a callback token, at most twice within 30 minutes."""
    click_ = state.clicks.get(call.text("token"))
    if click_ is None or click_.app_id != call.app.app_id:
        raise LarkError(BAD_TOKEN, "The token is invalid.")
    if not click_.answered:
        raise LarkError(BAD_TOKEN, "The callback was not answered yet.")
    if state.clock.now() - click_.at > TOKEN_LIFETIME_SECONDS or click_.uses >= MAX_TOKEN_USES:
        raise LarkError(BAD_TOKEN, "The token has expired or was used twice.")
    card = call.body.get("card")
    if not isinstance(card, dict):
        raise bad_field("card", "must be an object")
    message = state.messages[click_.message_id]
    if message.deleted:
        raise bad_parameter("the message was recalled")
    try:
        check_card(card)
    except CardError as error:
        raise error.in_message() from error
    click_.uses += 1
    show_card(state, message, card)
    return {}


ENDPOINTS = (RestEndpoint("POST", "/open-apis/interactive/v1/card/update", update_later),)
