"""The greeting of a chat: its card with suggested messages as buttons. Pure."""

from collections.abc import Sequence
from typing import Any

import msgspec

from internal.channels.chat.transport import GreetingContent
from internal.channels.lark.api import as_json
from internal.channels.lark.events import SuggestionButton
from internal.channels.lark.lark_markdown import as_card_markdown, as_summary, parse_markdown
from internal.channels.lark.message_format import (
    MAX_TABLES,
    MessagePart,
    Rendering,
    card_json,
    render_answer,
)

_SUMMARY_CHARS = 100


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
