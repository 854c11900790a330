"""The greeting of a chat: its card with suggested messages as buttons, and clicks on them. Pure."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from internal.channels.chat.transport import GreetingContent
from internal.channels.lark.api import as_json
from internal.channels.lark.lark_markdown import as_card_markdown, as_summary, parse_markdown
from internal.channels.lark.message_format import (
    MAX_TABLES,
    MessagePart,
    Rendering,
    card_json,
    render_answer,
)

CARD_ACTION_EVENT = "card.action.trigger"
MAX_SUGGESTION_LENGTH = 500
_SUMMARY_CHARS = 100
_PLACE = "#"


class SuggestionButton(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The payload of a button that suggests a message. It belongs to one chat and grants nothing.

    `number` tells the buttons of a card apart.
    """

    suggest: str
    number: int
    chat: str
    direct: bool


class LarkSuggestion(NamedTuple):
    """A suggested message that the user `open_id` chose; `at` is in milliseconds since 1970."""

    card_id: str
    chat_id: str
    open_id: str
    text: str
    direct: bool
    number: int
    is_external: bool
    at: int | None = None

    @property
    def name(self) -> str:
        """An id in which the card's message comes first; each user chooses a button once."""
        return f"{self.card_id}{_PLACE}{self.open_id}:{self.number}"


def shown_message(message_id: str) -> str:
    """Return the message of Lark that a stored event belongs to; "" for a choice in the menu.

    That of a suggested message is the card with its button.
    """
    return "" if message_id.startswith("menu:") else message_id.partition(_PLACE)[0]


def read_suggestion(
    value: Any, *, card_id: str, chat_id: str, open_id: str, is_external: bool
) -> LarkSuggestion | None:
    """Return the suggestion of a click; None for other buttons and for a card of another chat."""
    try:
        button = msgspec.convert(value, SuggestionButton)
    except msgspec.ValidationError:
        return None
    text = button.suggest.strip()
    is_valid = bool(card_id and open_id and text) and len(text) <= MAX_SUGGESTION_LENGTH
    if not is_valid or button.chat != chat_id:
        return None
    return LarkSuggestion(
        card_id, chat_id, open_id, text, button.direct, button.number, is_external
    )


def render_greeting(content: GreetingContent, chat_id: str) -> Sequence[Rendering]:
    """Return the forms of a greeting: a card with buttons, and forms that list the suggestions."""
    blocks = parse_markdown(content.text)
    elements: list[dict[str, Any]] = [
        {"tag": "markdown", "content": as_card_markdown(blocks, MAX_TABLES)}
    ]
    for number, text in enumerate(content.suggestions):
        button = SuggestionButton(text, number, chat_id, content.is_direct)
        elements.append(
            {
                "tag": "button",
                "name": f"suggest_{number}",
                "type": "default",
                "text": {"tag": "plain_text", "content": text},
                "behaviors": [{"type": "callback", "value": msgspec.to_builtins(button)}],
            }
        )
    card = as_json(card_json(elements, as_summary(blocks, _SUMMARY_CHARS)))
    lines = "\n".join(f"- {each}" for each in content.suggestions)
    simpler = render_answer(f"{content.text}\n\n{lines}", content.phrases)
    buttons: Rendering = ("buttons", (MessagePart("interactive", card),))
    return (buttons, *simpler)
