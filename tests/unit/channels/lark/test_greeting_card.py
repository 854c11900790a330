"""The card of a greeting, and clicks on its buttons."""

import json
from typing import Any

import pytest

from internal.channels.chat.transport import GreetingContent
from internal.channels.lark.greeting_card import (
    MAX_SUGGESTION_LENGTH,
    LarkSuggestion,
    read_suggestion,
    render_greeting,
    shown_message,
)
from internal.i18n.chat import ChatPhrases

CONTENT = GreetingContent("Hello.", ("Plan my day", "Write"), ChatPhrases("en"), is_direct=True)
VALUE = {"suggest": "Write", "number": 1, "chat": "oc_1", "direct": True}


def clicked(value: Any, chat_id: str = "oc_1", open_id: str = "ou_1") -> LarkSuggestion | None:
    return read_suggestion(
        value, card_id="om_1", chat_id=chat_id, open_id=open_id, is_external=False
    )


def test_a_button_says_its_text_and_the_simpler_forms_list_it() -> None:
    (_, [card]), *simpler = render_greeting(CONTENT, "oc_1")
    buttons = json.loads(card.content)["body"]["elements"][1:]
    assert buttons[1]["behaviors"][0]["value"] == VALUE
    assert all("Plan my day" in parts[0].content for name, parts in simpler if name != "only-file")


def test_a_click_is_a_message_with_an_id_for_each_person() -> None:
    first, second = clicked(VALUE), clicked(VALUE, open_id="ou_2")
    assert first is not None
    assert second is not None
    assert (first.text, first.direct, first.chat_id) == ("Write", True, "oc_1")
    assert first.name != second.name
    assert shown_message(first.name) == shown_message(second.name) == "om_1"
    assert (shown_message("om_2"), shown_message("menu:ou_1:1:help")) == ("om_2", "")


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"run": "r1"},
        VALUE | {"suggest": " "},
        VALUE | {"suggest": "x" * (MAX_SUGGESTION_LENGTH + 1)},
        VALUE | {"more": 1},
        VALUE | {"chat": "oc_2"},
    ],
)
def test_other_values_are_no_suggestions(value: Any) -> None:
    assert clicked(value) is None
