"""Elements of cards in Lark's card JSON 2.0. Pure.

Text written by a person or a model goes into plain text and code elements, in which Lark interprets
nothing: it cannot mention anyone, load an image or imitate the bot's own messages.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

ActionName = Literal[
    "approve", "session", "rule", "reject", "because", "each", "choose", "say", "edit", "change"
]
"""What a button does.

Approve once, in this session or by a rule; reject, or with a reason; decide call by call; choose an
option; reply with text and options; approve an edited plan; save an edited plan for another review.
"""

MAX_FIELD_LENGTH = 1_000
"""Characters in a text input (Lark's limit)."""


class ButtonAction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The payload of a button. It names the question and grants nothing."""

    question: str
    act: ActionName
    number: int = 0


Element = dict[str, Any]


def plain_text(text: str, *, soft: bool = False) -> Element:
    """Return a text without markup; a soft one is small and grey."""
    content: Element = {"tag": "plain_text", "content": text}
    if soft:
        content |= {"text_size": "notation", "text_color": "grey"}
    return {"tag": "div", "text": content}


def markdown(text: str) -> Element:
    """Return a text of the bot itself, with Lark's Markdown."""
    return {"tag": "markdown", "content": text}


def button(
    label: str, action: ButtonAction, kind: str = "default", *, submits: bool = False
) -> Element:
    """Return a button; one that submits sends the values of its form."""
    element: Element = {
        "tag": "button",
        "name": f"{action.act}_{action.number}",
        "type": kind,
        "text": {"tag": "plain_text", "content": label},
        "behaviors": [{"type": "callback", "value": msgspec.to_builtins(action)}],
    }
    if submits:
        element["form_action_type"] = "submit"
    return element


def button_row(buttons: Sequence[Element]) -> Element:
    """Return buttons side by side, wrapped if they do not fit."""
    columns = [{"tag": "column", "width": "auto", "elements": [each]} for each in buttons]
    return {"tag": "column_set", "flex_mode": "flow", "columns": columns}


def form(name: str, elements: Sequence[Element]) -> Element:
    """Return a form; Lark accepts forms at a card's root only."""
    return {"tag": "form", "name": name, "elements": list(elements)}


def text_input(name: str, hint: str, value: str = "", label: str = "") -> Element:
    """Return a text input; with a value it has several lines."""
    element: Element = {
        "tag": "input",
        "name": name,
        "placeholder": {"tag": "plain_text", "content": hint},
        "max_length": MAX_FIELD_LENGTH,
        "width": "fill",
    }
    if label:
        element |= {"label": {"tag": "plain_text", "content": label}, "label_position": "top"}
    if value:
        rows = min(max(value.count("\n") + 1, 3), 10)
        element |= {"default_value": value, "input_type": "multiline_text", "rows": rows}
    return element


def checkbox(name: str, label: str) -> Element:
    """Return a checkbox."""
    return {
        "tag": "checker",
        "name": name,
        "checked": False,
        "text": {"tag": "plain_text", "content": label},
    }


def select(name: str, hint: str, options: Sequence[str], *, multiple: bool) -> Element:
    """Return a drop-down list; the values are numbers from 1."""
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
