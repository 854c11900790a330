"""CardKit v1: cards that are made first, sent by reference and written to element by element.

Every operation carries a `sequence` above all earlier ones of the card; a refused one uses none up.
"""

import copy
import json

from internal.simulators.lark.card_edits import (
    ACTIONS,
    Edit,
    adding,
    deleting,
    element_of,
    merge,
    patching,
    read_json,
    replacing,
)
from internal.simulators.lark.cards import check_card, config, is_new, read_card
from internal.simulators.lark.content import LARGEST_RICH
from internal.simulators.lark.errors import (
    TOO_LONG,
    TOO_OLD,
    CardError,
    LarkError,
    bad_field,
    bad_parameter,
)
from internal.simulators.lark.model import Card, Json, new_id
from internal.simulators.lark.rest_call import Call, Endpoint
from internal.simulators.lark.state import World

STREAM_CLOSED, OLD_SEQUENCE, NO_CARD = 300309, 300317, 300303
STREAM_SECONDS = 600.0
CARD_SECONDS = 14 * 86_400.0


def create(world: World, call: Call) -> Json:
    """Make a card."""
    if call.text("type") != "card_json":
        raise bad_field("type", "the simulator knows card_json only")
    content = _new_card(call.text("data"))
    return {"card_id": add_card(world, call.app.app_id, content).card_id}


def add_card(world: World, app_id: str, content: Json) -> Card:
    """Keep a card; one that streams begins to."""
    card = Card(new_id("")[1:20], app_id, content, world.clock.now())
    _follow_stream(world, card, was=False)
    world.cards[card.card_id] = card
    return card


def _new_card(text: object) -> Json:
    try:
        card = read_card(text)
    except CardError as error:
        raise error.in_cardkit() from error
    if not is_new(card):
        raise bad_field("data", "schema 2.0 is due")
    _check_size(card)
    return card


def _check_size(card: Json) -> None:
    if len(json.dumps(card, ensure_ascii=False).encode("utf-8", "replace")) > LARGEST_RICH:
        raise LarkError(TOO_LONG, f"The card is too long; at most {LARGEST_RICH} bytes.")


def id_convert(world: World, call: Call) -> Json:
    """Make the card of a message one of CardKit's."""
    message = world.message(call.app, call.text("message_id"))
    if message.sender != call.app.app_id or world.shown_card(message) is None:
        raise bad_parameter("the message is no card of this app")
    if not message.card_id:
        card = add_card(world, call.app.app_id, copy.deepcopy(message.card or {}))
        card.message_id, message.card_id = message.message_id, card.card_id
    return {"card_id": message.card_id}


def streaming(world: World, card: Card) -> bool:
    """Say whether a card streams; after ten minutes it has stopped by itself."""
    since = card.streaming_since
    return since is not None and world.clock.now() - since < STREAM_SECONDS


def put_content(world: World, call: Call) -> Json:
    """Set the whole text of an element; only while the card streams."""
    text = call.text("content")

    def edit(card: Json) -> None:
        element = element_of(card, call.path["element_id"])
        if element.get("tag") not in {"markdown", "plain_text"}:
            raise bad_field("element_id", "the element has no text that could stream")
        element["content"] = text

    return _operate(world, call, edit, streams=True)


def put_settings(world: World, call: Call) -> Json:
    """Change the card's settings, such as to end its streaming."""
    settings = read_json(call.text("settings"), dict, "settings")
    return _operate(world, call, lambda card: merge(card, settings))


def put_card(world: World, call: Call) -> Json:
    """Replace the whole card; works whether it streams or not."""
    given = call.body.get("card")
    if not isinstance(given, dict) or given.get("type") != "card_json":
        raise bad_field("card", "type card_json is due")
    fresh = _new_card(given.get("data"))

    def edit(card: Json) -> None:
        card.clear()
        card.update(fresh)

    return _operate(world, call, edit)


def add_elements(world: World, call: Call) -> Json:
    """Add elements before or behind another one, or at the end."""
    call.text("elements")
    return _operate(world, call, adding(call.body))


def put_element(world: World, call: Call) -> Json:
    """Replace an element."""
    call.text("element")
    return _operate(world, call, replacing({**call.body, **call.path}))


def patch_element(world: World, call: Call) -> Json:
    """Change some properties of an element."""
    call.text("partial_element")
    return _operate(world, call, patching({**call.body, **call.path}))


def delete_element(world: World, call: Call) -> Json:
    """Remove an element."""
    return _operate(world, call, deleting({"element_ids": [call.path["element_id"]]}))


def batch_update(world: World, call: Call) -> Json:
    """Do several things at once, or none of them."""
    edits: list[Edit] = []
    for action in read_json(call.text("actions"), list, "actions"):
        make = ACTIONS.get(str(action.get("action"))) if isinstance(action, dict) else None
        if make is None or not isinstance(action.get("params"), dict):
            raise bad_field("actions", "an action is unknown or has no params")
        edits.append(make(action["params"]))

    def edit(card: Json) -> None:
        for each in edits:
            each(card)

    return _operate(world, call, edit)


def _operate(world: World, call: Call, edit: Edit, *, streams: bool = False) -> Json:
    """Do an operation on a copy of the card, check it, and only then let it be seen."""
    card = world.cards.get(call.path["card_id"])
    if card is None or card.app_id != call.app.app_id:
        raise LarkError(NO_CARD, "card_id is invalid")
    world.limits.card(card.card_id)
    if world.clock.now() - card.created > CARD_SECONDS:
        raise LarkError(TOO_OLD, "The card is older than 14 days.")
    sequence = call.body.get("sequence")
    if not isinstance(sequence, int) or isinstance(sequence, bool) or sequence < 1:
        raise bad_field("sequence", "an int above 0 is due")
    if sequence <= card.sequence:
        raise LarkError(OLD_SEQUENCE, f"sequence number compare failed, current {card.sequence}")
    call.uuid()
    if streams and not streaming(world, card):
        raise LarkError(STREAM_CLOSED, "streaming mode is closed")
    changed = copy.deepcopy(card.content)
    edit(changed)
    try:
        check_card(changed)
    except CardError as error:
        raise error.in_cardkit() from error
    _check_size(changed)
    was = config(card.content).get("streaming_mode") is True and streaming(world, card)
    card.content, card.sequence = changed, sequence
    _follow_stream(world, card, was=was)
    if message := world.messages.get(card.message_id):
        message.updated = world.clock.now_ms()
        world.touch(message)
    return {}


def _follow_stream(world: World, card: Card, *, was: bool) -> None:
    if config(card.content).get("streaming_mode") is not True:
        card.streaming_since = None
    elif not was:
        card.streaming_since = world.clock.now()


_ROOT = "/open-apis/cardkit/v1/cards"
_ONE = _ROOT + "/{card_id}"
_PART = _ONE + "/elements/{element_id}"
ENDPOINTS = (
    Endpoint("POST", _ROOT, create),
    Endpoint("POST", _ROOT + "/id_convert", id_convert),
    Endpoint("PUT", _ONE, put_card),
    Endpoint("PATCH", _ONE + "/settings", put_settings),
    Endpoint("POST", _ONE + "/batch_update", batch_update),
    Endpoint("POST", _ONE + "/elements", add_elements),
    Endpoint("PUT", _PART, put_element),
    Endpoint("PATCH", _PART, patch_element),
    Endpoint("DELETE", _PART, delete_element),
    Endpoint("PUT", _PART + "/content", put_content),
)
