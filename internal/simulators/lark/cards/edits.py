"""Edits of a card's JSON, as used by CardKit operations and batches. Pure.

Each function reads its parameters at once and returns an edit that is applied to a copy later.
"""

import copy
import json
from collections.abc import Callable
from typing import Any

from internal.simulators.lark.cards.card_json import (
    card_config,
    check_parts,
    find_part,
    iter_parts,
    sibling_list,
)
from internal.simulators.lark.errors import CardError, LarkError, bad_field
from internal.simulators.lark.model import Json

NO_ELEMENT = 300313
Edit = Callable[[Json], None]


def merge_settings(card: Json, settings: Json) -> None:
    """Merge settings into a card: `config` is merged, `card_link` replaced.

    Raises:
        LarkError: A setting is unknown or not an object.
    """
    for key, value in settings.items():
        if key not in {"config", "card_link"} or not isinstance(value, dict):
            raise bad_field("settings", f"{key} is not a setting, or not an object")
    if "config" in settings:
        card["config"] = {**card_config(card), **settings["config"]}
    if "card_link" in settings:
        card["card_link"] = settings["card_link"]


def _setting(params: Json) -> Edit:
    settings = read_json_field(params.get("settings"), dict, "settings")
    return lambda card: merge_settings(card, settings)


def add_elements_edit(params: Json) -> Edit:
    """Add elements before or after another one, into it, or to the card.

    Raises:
        LarkError: A parameter is invalid.
    """
    elements = read_json_field(params.get("elements"), list, "elements")
    where, target = params.get("type"), params.get("target_element_id")
    if where not in ("insert_before", "insert_after", "append"):  # may be of any type
        raise bad_field("type", "options: [append, insert_after, insert_before]")
    _check_elements(elements)

    def edit(card: Json) -> None:
        if not target:
            into, at = card["body"]["elements"], 0 if where == "insert_before" else None
        elif where == "append":
            into, at = find_element(card, target).setdefault("elements", []), None
            if not isinstance(into, list):
                raise bad_field("target_element_id", "the element cannot contain elements")
        else:
            into, at = _locate(card, target)
            at += where == "insert_after"
        at = len(into) if at is None else at
        into[at:at] = copy.deepcopy(elements)

    return edit


def replace_element_edit(params: Json) -> Edit:
    """Replace an element.

    Raises:
        LarkError: A parameter is invalid.
    """
    element = read_json_field(params.get("element"), dict, "element")
    _check_elements([element])

    def edit(card: Json) -> None:
        into, at = _locate(card, str(params.get("element_id")))
        into[at] = element

    return edit


def patch_element_edit(params: Json) -> Edit:
    """Change properties of an element.

    Raises:
        LarkError: A parameter is invalid.
    """
    change = read_json_field(params.get("partial_element"), dict, "partial_element")
    if "tag" in change:
        raise bad_field("partial_element", "an element's tag cannot change")
    return lambda card: find_element(card, str(params.get("element_id"))).update(change)


def delete_elements_edit(params: Json) -> Edit:
    """Remove elements.

    Raises:
        LarkError: A parameter is invalid.
    """
    names = params.get("element_ids")
    if not isinstance(names, list):
        raise bad_field("element_ids", "must be a list")

    def edit(card: Json) -> None:
        for name in names:
            into, at = _locate(card, str(name))
            del into[at]

    return edit


def _check_elements(elements: list[Any]) -> None:
    if not all(isinstance(one, dict) and "tag" in one for one in elements):
        raise bad_field("elements", "every element needs a tag")
    try:
        check_parts(list(iter_parts(elements)))
    except CardError as error:
        raise error.in_cardkit() from error


def find_element(card: Json, element_id: str) -> Json:
    """Return the element with this id.

    Raises:
        LarkError: There is none.
    """
    part = find_part(card, element_id)
    if part is None:
        raise LarkError(NO_ELEMENT, f"element not found: {element_id}")
    return part.value


def _locate(card: Json, element_id: str) -> tuple[list[Any], int]:
    part = find_part(card, element_id)
    into = None if part is None else sibling_list(card, part)
    if part is None or into is None:
        raise LarkError(NO_ELEMENT, f"element not found: {element_id}")
    return into, int(part.path[-1])


def read_json_field(text: object, kind: type, field: str) -> Any:
    """Return a JSON value of this type: parsed from a string or, in a batch, as given.

    Raises:
        LarkError: It is not JSON, or of another type.
    """
    try:
        value = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError) as error:
        raise bad_field(field, "must be JSON") from error
    if not isinstance(value, kind):
        raise bad_field(field, f"must be a JSON {kind.__name__}")
    return value


BATCH_ACTIONS: dict[str, Callable[[Json], Edit]] = {
    "partial_update_setting": _setting,
    "add_elements": add_elements_edit,
    "delete_elements": delete_elements_edit,
    "partial_update_element": patch_element_edit,
    "update_element": replace_element_edit,
}
"""Operations allowed in a batch."""
