"""The parts of a card that people read and press, in Lark's card JSON 2.0. Pure.

What a person or a model wrote stands in plain text and code, where it means nothing to Lark: it can
neither call somebody nor fetch a picture nor look like words of ours.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

ActionName = Literal[
    "approve", "session", "rule", "reject", "because", "each", "choose", "say", "edit", "change"
]


MAX_FIELD_LENGTH = 1_000


class ButtonAction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a button carries: it names the question, nothing in it gives a right."""

    question: str
    act: ActionName
    number: int = 0


Element = dict[str, Any]


def plain_text(text: str, *, soft: bool = False) -> Element:
    """Return a text in which nothing has a meaning; a soft one is small and grey."""
    words: Element = {"tag": "plain_text", "content": text}
    if soft:
        words |= {"text_size": "notation", "text_color": "grey"}
    return {"tag": "div", "text": words}


def markdown(text: str) -> Element:
    """Return a text of ours, with Lark's Markdown."""
    return {"tag": "markdown", "content": text}


def button(
    label: str, press: ButtonAction, kind: str = "default", *, submits: bool = False
) -> Element:
    """Return a button; one that submits sends the fields of its form along."""
    made: Element = {
        "tag": "button",
        "name": f"{press.act}_{press.number}",
        "type": kind,
        "text": {"tag": "plain_text", "content": label},
        "behaviors": [{"type": "callback", "value": msgspec.to_builtins(press)}],
    }
    if submits:
        made["form_action_type"] = "submit"
    return made


def button_row(buttons: Sequence[Element]) -> Element:
    """Return buttons beside each other, in more lines where one is too short."""
    columns = [{"tag": "column", "width": "auto", "elements": [each]} for each in buttons]
    return {"tag": "column_set", "flex_mode": "flow", "columns": columns}


def form(name: str, elements: Sequence[Element]) -> Element:
    """Return fields with the button that submits them; Lark takes forms at a card's root only."""
    return {"tag": "form", "name": name, "elements": list(elements)}


def text_input(name: str, hint: str, value: str = "", label: str = "") -> Element:
    """Return a field for text, of several lines when it comes with a value."""
    made: Element = {
        "tag": "input",
        "name": name,
        "placeholder": {"tag": "plain_text", "content": hint},
        "max_length": MAX_FIELD_LENGTH,
        "width": "fill",
    }
    if label:
        made |= {"label": {"tag": "plain_text", "content": label}, "label_position": "top"}
    if value:
        rows = min(max(value.count("\n") + 1, 3), 10)
        made |= {"default_value": value, "input_type": "multiline_text", "rows": rows}
    return made


def checkbox(name: str, label: str) -> Element:
    """Return a box to tick."""
    return {
        "tag": "checker",
        "name": name,
        "checked": False,
        "text": {"tag": "plain_text", "content": label},
    }


def select(name: str, hint: str, options: Sequence[str], *, multiple: bool) -> Element:
    """Return a list to choose from; what is chosen are numbers from 1."""
    return {
        "tag": "multi_select_static" if multiple else "select_static",
        "name": name,
        "placeholder": {"tag": "plain_text", "content": hint},
        "width": "fill",
        "options": [
            {"text": {"tag": "plain_text", "content": option}, "value": str(number)}
            for number, option in enumerate(options, 1)
        ],
    }


"""Yes, yes in this session, yes for good, no, no with a reason, call by call; an option, words (and
options chosen); yes to a plan as a person wants it, or such a plan without a yes."""


"""Characters that a field of a card takes (Lark's limit)."""
