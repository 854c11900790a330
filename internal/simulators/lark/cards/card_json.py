"""Card JSON: Lark's validation rules and lookup of card elements. Pure.

Schema 2.0 has `body.elements`; 1.0 has `elements` or `i18n_elements` at the top level. Limits on
tables and elements come from user reports, not from Lark's documentation.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from internal.simulators.lark.errors import CardError
from internal.simulators.lark.model import Json

MAX_TABLES, MAX_ELEMENTS = 3, 200
TABLES_OVER, ELEMENTS_OVER, ID_TWICE, ID_INVALID = 11310, 300305, 300301, 300302
UNPARSABLE = 200621
_ID = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,19}")
_FENCED = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1|\Z)", re.MULTILINE | re.DOTALL)
_BOTH = frozenset(
    {
        *(
            "audio",
            "avatar",
            "button",
            "chart",
            "checker",
            "collapsible_panel",
        ),
        *(
            "column",
            "column_set",
            "custom_icon",
            "date_picker",
            "div",
            "form",
        ),
        *(
            "hr",
            "img",
            "img_combination",
            "input",
            "interactive_container",
            "lark_md",
        ),
        *(
            "markdown",
            "multi_select_person",
            "multi_select_static",
            "overflow",
            "person",
            "person_list",
        ),
        *(
            "picker_datetime",
            "picker_time",
            "plain_text",
            "select_img",
            "select_person",
            "select_static",
        ),
        *(
            "standard_icon",
            "table",
            "text_tag",
        ),
    }
)
_ENTERED = frozenset({"button", "checker", "input", "multi_select_static", "select_static"})
_OLD_ONLY = frozenset({"action", "note", "select_chat"})
_TEXTS = frozenset({"plain_text", "lark_md", "standard_icon", "custom_icon", "text_tag"})
_DATA = frozenset({"value", "behaviors", "rows", "columns_data", "chart_spec"})  # opaque to Lark
_MAX_DEPTH = 40


class CardPart(NamedTuple):
    """A part of a card that has a tag, and the way to it: keys and indices."""

    path: tuple[str | int, ...]
    value: Json


def read_card(text: object) -> Json:
    """Parse and check a card.

    Raises:
        CardError: It is not JSON, or `check_card` rejects it.
    """
    if not isinstance(text, str):
        raise CardError(UNPARSABLE, "parse card json err, card is not a string")
    try:
        card = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CardError(UNPARSABLE, f"parse card json err, {error}") from error
    check_card(card)
    assert isinstance(card, dict)  # noqa: S101 - guaranteed by check_card; mypy cannot infer it
    return card


def check_card(card: object) -> None:
    """Check a card.

    Raises:
        CardError: Its structure, a tag, an element_id or a count is not allowed.
    """
    if not isinstance(card, dict):
        raise CardError(UNPARSABLE, "parse card json err, card is not an object")
    new = is_schema_2(card)
    if not any(isinstance(where, list) for where in _roots(card)):
        due = "body.elements" if new else "elements"
        raise CardError(UNPARSABLE, f"parse card json err, {due} is missing")
    if new and "elements" in card:
        raise CardError(UNPARSABLE, "parse card json err, unknown property: elements")
    found = list(iter_parts(card))
    check_parts(found, new=new)
    if new:
        _check_forms(found)


def _check_forms(found: list[CardPart]) -> None:
    """Check that forms are at the root, can be submitted and have uniquely named fields.

    Raises:
        CardError: A form violates a rule.
    """
    names: list[object] = []
    for form in (part for part in found if part.value["tag"] == "form"):
        if form.path[:-1] != ("body", "elements"):
            raise CardError(UNPARSABLE, "parse card json err, a form must be at the root")
        inside = [part.value for part in found if part.path[: len(form.path)] == form.path]
        entries = [each for each in inside if each["tag"] in _ENTERED]
        if not any(each.get("form_action_type") == "submit" for each in entries):
            raise CardError(UNPARSABLE, "parse card json err, a form needs a submit button")
        names += [form.value.get("name"), *(each.get("name") for each in entries)]
    if not all(isinstance(name, str) and name for name in names) or len(names) > len(set(names)):
        raise CardError(UNPARSABLE, "parse card json err, form fields need unique names")


def check_parts(found: list[CardPart], *, new: bool = True) -> None:
    """Check the elements of a card together.

    Raises:
        CardError: As for `check_card`.
    """
    allowed = _BOTH if new else _BOTH | _OLD_ONLY
    ids: set[str] = set()
    for part in found:
        if part.value["tag"] not in allowed:
            raise CardError(UNPARSABLE, f"parse card json err, unknown tag: {part.value['tag']!r}")
        name = part.value.get("element_id")
        if name is None:
            continue
        if not isinstance(name, str) or not _ID.fullmatch(name):
            raise CardError(ID_INVALID, f"element_id is invalid: {name!r}")
        if name in ids:
            raise CardError(ID_TWICE, f"element_id is duplicated: {name}")
        ids.add(name)
    if sum(part.value["tag"] not in _TEXTS for part in found) > MAX_ELEMENTS:
        raise CardError(ELEMENTS_OVER, "card elements number over limit")
    if sum(_tables(part.value) for part in found) > MAX_TABLES:
        raise CardError(TABLES_OVER, "card table number over limit")


def is_schema_2(card: Json) -> bool:
    """Return True for a card of schema 2.0."""
    return card.get("schema") == "2.0"


def card_config(card: Json) -> Json:
    """Return the card's `config`, or an empty object."""
    found = card.get("config")
    return found if isinstance(found, dict) else {}


def is_shared(card: Json) -> bool:
    """Return True if the card may be patched: `config.update_multi`."""
    return card_config(card).get("update_multi") is True


def iter_parts(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[CardPart]:
    """Yield every object with a tag, outer ones first.

    Raises:
        CardError: The nesting is too deep, or a tag is not a string.
    """
    if len(path) > _MAX_DEPTH:
        raise CardError(UNPARSABLE, "parse card json err, nested too deeply")
    if isinstance(value, dict) and "tag" in value:
        if not isinstance(value["tag"], str):
            raise CardError(UNPARSABLE, "parse card json err, tag is not a string")
        yield CardPart(path, value)
    for key, inner in _inside(value):
        yield from iter_parts(inner, (*path, key))


def _inside(value: Any) -> Iterable[tuple[str | int, Any]]:
    if isinstance(value, list):
        return enumerate(value)
    if not isinstance(value, dict):
        return ()
    return [pair for pair in value.items() if pair[0] not in _DATA]


def find_part(card: Json, element_id: str) -> CardPart | None:
    """Return the element with this element_id, or None."""
    return next(
        (part for part in iter_parts(card) if part.value.get("element_id") == element_id), None
    )


def sibling_list(card: Json, part: CardPart) -> list[Any] | None:
    """Return the list that contains an element, or None."""
    where: Any = card
    for key in part.path[:-1]:
        where = where[key]
    return where if isinstance(where, list) else None


def _roots(card: Json) -> list[Any]:
    if is_schema_2(card):
        body = card.get("body")
        return [body.get("elements")] if isinstance(body, dict) else []
    languages = card.get("i18n_elements")
    return [card.get("elements"), *(languages.values() if isinstance(languages, dict) else ())]


def _tables(part: Json) -> int:
    if part["tag"] == "table":
        return 1
    text = part.get("content")
    if part["tag"] not in {"markdown", "lark_md"} or not isinstance(text, str):
        return 0
    return sum(_is_ruler(line) for line in _FENCED.sub("", text).splitlines())


def _is_ruler(line: str) -> bool:
    """Return True for the delimiter row of a Markdown table."""
    return set(line) <= set(" :|-") and "-" in line and "|" in line
