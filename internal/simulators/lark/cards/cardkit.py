"""CardKit v1: cards created first, sent by reference and updated element by element.

Every operation carries a `sequence` above all earlier ones of its card; a rejected operation does
not consume it.
"""

import copy
import json

from internal.simulators.lark.cards.card_json import card_config, check_card, is_schema_2, read_card
from internal.simulators.lark.cards.edits import (
    BATCH_ACTIONS,
    Edit,
    add_elements_edit,
    delete_elements_edit,
    find_element,
    merge_settings,
    patch_element_edit,
    read_json_field,
    replace_element_edit,
)
from internal.simulators.lark.errors import (
    TOO_LONG,
    TOO_OLD,
    CardError,
    LarkError,
    bad_field,
    bad_parameter,
)
from internal.simulators.lark.model import CardEntity, Json, new_id
from internal.simulators.lark.rest import scopes
from internal.simulators.lark.rest.call import RestCall, RestEndpoint
from internal.simulators.lark.rest.message_content import MAX_RICH_BYTES
from internal.simulators.lark.state import LarkState

STREAM_CLOSED, OLD_SEQUENCE, NO_CARD = 300309, 300317, 300303
STREAM_TIMEOUT_SECONDS = 600.0
CARD_LIFETIME_SECONDS = 14 * 86_400.0


def create(state: LarkState, call: RestCall) -> Json:
    """Create a card."""
    if call.text("type") != "card_json":
        raise bad_field("type", "the simulator supports card_json only")
    content = _new_card(call.text("data"))
    return {"card_id": add_card(state, call.app.app_id, content).card_id}


def add_card(state: LarkState, app_id: str, content: Json) -> CardEntity:
    """Store a card, and start its stream if it has one."""
    card = CardEntity(new_id("")[1:20], app_id, content, state.clock.now())
    _follow_stream(state, card, was=False)
    state.cards[card.card_id] = card
    return card


def _new_card(text: object) -> Json:
    try:
        card = read_card(text)
    except CardError as error:
        raise error.in_cardkit() from error
    if not is_schema_2(card):
        raise bad_field("data", "must be schema 2.0")
    _check_size(card)
    return card


def _check_size(card: Json) -> None:
    if len(json.dumps(card, ensure_ascii=False).encode("utf-8", "replace")) > MAX_RICH_BYTES:
        raise LarkError(TOO_LONG, f"The card is too long; at most {MAX_RICH_BYTES} bytes.")


def id_convert(state: LarkState, call: RestCall) -> Json:
    """Turn the card of a message into a CardKit card."""
    message = state.message(call.app, call.text("message_id"))
    if message.sender != call.app.app_id or state.shown_card(message) is None:
        raise bad_parameter("the message is not a card of this app")
    if not message.card_id:
        card = add_card(state, call.app.app_id, copy.deepcopy(message.card or {}))
        card.message_id, message.card_id = message.message_id, card.card_id
    return {"card_id": message.card_id}


def is_streaming(state: LarkState, card: CardEntity) -> bool:
    """Return True while a card streams; streams end after ten minutes."""
    since = card.streaming_since
    return since is not None and state.clock.now() - since < STREAM_TIMEOUT_SECONDS


def put_content(state: LarkState, call: RestCall) -> Json:
    """Set the whole text of an element; only while the card streams."""
    text = call.text("content")

    def edit(card: Json) -> None:
        element = find_element(card, call.path["element_id"])
        if element.get("tag") not in {"markdown", "plain_text"}:
            raise bad_field("element_id", "the element has no streamable text")
        element["content"] = text

    return _operate(state, call, edit, streams=True)


def put_settings(state: LarkState, call: RestCall) -> Json:
    """Change the card's settings, for example to end its stream."""
    settings = read_json_field(call.text("settings"), dict, "settings")
    return _operate(state, call, lambda card: merge_settings(card, settings))


def put_card(state: LarkState, call: RestCall) -> Json:
    """Replace the whole card, streaming or not."""
    given = call.body.get("card")
    if not isinstance(given, dict) or given.get("type") != "card_json":
        raise bad_field("card", "type must be card_json")
    fresh = _new_card(given.get("data"))

    def edit(card: Json) -> None:
        card.clear()
        card.update(fresh)

    return _operate(state, call, edit)


def add_elements(state: LarkState, call: RestCall) -> Json:
    """Add elements before or after another one, or at the end."""
    call.text("elements")
    return _operate(state, call, add_elements_edit(call.body))


def put_element(state: LarkState, call: RestCall) -> Json:
    """Replace an element."""
    call.text("element")
    return _operate(state, call, replace_element_edit({**call.body, **call.path}))


def patch_element(state: LarkState, call: RestCall) -> Json:
    """Change properties of an element."""
    call.text("partial_element")
    return _operate(state, call, patch_element_edit({**call.body, **call.path}))


def delete_element(state: LarkState, call: RestCall) -> Json:
    """Remove an element."""
    return _operate(state, call, delete_elements_edit({"element_ids": [call.path["element_id"]]}))


def batch_update(state: LarkState, call: RestCall) -> Json:
    """Apply several operations, all or none."""
    edits: list[Edit] = []
    for action in read_json_field(call.text("actions"), list, "actions"):
        make = BATCH_ACTIONS.get(str(action.get("action"))) if isinstance(action, dict) else None
        if make is None or not isinstance(action.get("params"), dict):
            raise bad_field("actions", "an action is unknown or has no params")
        edits.append(make(action["params"]))

    def edit(card: Json) -> None:
        for each in edits:
            each(card)

    return _operate(state, call, edit)


def _operate(state: LarkState, call: RestCall, edit: Edit, *, streams: bool = False) -> Json:
    """Apply an operation to a copy of the card, check the result and publish it."""
    card = state.cards.get(call.path["card_id"])
    if card is None or card.app_id != call.app.app_id:
        raise LarkError(NO_CARD, "card_id is invalid")
    state.limits.card(card.card_id)
    if state.clock.now() - card.created > CARD_LIFETIME_SECONDS:
        raise LarkError(TOO_OLD, "The card is older than 14 days.")
    sequence = call.body.get("sequence")
    if not isinstance(sequence, int) or isinstance(sequence, bool) or sequence < 1:
        raise bad_field("sequence", "must be a positive integer")
    if sequence <= card.sequence:
        raise LarkError(OLD_SEQUENCE, f"sequence number compare failed, current {card.sequence}")
    call.uuid()
    if streams and not is_streaming(state, card):
        raise LarkError(STREAM_CLOSED, "streaming mode is closed")
    changed = copy.deepcopy(card.content)
    edit(changed)
    try:
        check_card(changed)
    except CardError as error:
        raise error.in_cardkit() from error
    _check_size(changed)
    was = card_config(card.content).get("streaming_mode") is True and is_streaming(state, card)
    card.content, card.sequence = changed, sequence
    _follow_stream(state, card, was=was)
    if message := state.messages.get(card.message_id):
        message.updated = state.clock.now_ms()
        state.touch(message)
    return {}


def _follow_stream(state: LarkState, card: CardEntity, *, was: bool) -> None:
    if card_config(card.content).get("streaming_mode") is not True:
        card.streaming_since = None
    elif not was:
        card.streaming_since = state.clock.now()


_ROOT = "/open-apis/cardkit/v1/cards"
_ONE = _ROOT + "/{card_id}"
_PART = _ONE + "/elements/{element_id}"
ENDPOINTS = (
    RestEndpoint("POST", _ROOT, create, scopes.CARDS),
    RestEndpoint("POST", _ROOT + "/id_convert", id_convert, scopes.CARDS),
    RestEndpoint("PUT", _ONE, put_card, scopes.CARDS),
    RestEndpoint("PATCH", _ONE + "/settings", put_settings, scopes.CARDS),
    RestEndpoint("POST", _ONE + "/batch_update", batch_update, scopes.CARDS),
    RestEndpoint("POST", _ONE + "/elements", add_elements, scopes.CARDS),
    RestEndpoint("PUT", _PART, put_element, scopes.CARDS),
    RestEndpoint("PATCH", _PART, patch_element, scopes.CARDS),
    RestEndpoint("DELETE", _PART, delete_element, scopes.CARDS),
    RestEndpoint("PUT", _PART + "/content", put_content, scopes.CARDS),
)
