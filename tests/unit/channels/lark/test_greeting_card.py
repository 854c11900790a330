"""The card of a greeting."""

import json

from internal.channels.chat.transport import GreetingContent
from internal.channels.lark.greeting_card import render_greeting
from internal.i18n.chat import ChatPhrases

CONTENT = GreetingContent("Hello.", ("Plan my day", "Write"), ChatPhrases("en"), is_direct=True)
VALUE = {"suggest": "Write", "number": 1, "chat": "oc_1", "direct": True}


def test_a_button_says_its_text_and_the_simpler_forms_list_it() -> None:
    (_, [card]), *simpler = render_greeting(CONTENT, "oc_1")
    buttons = json.loads(card.content)["body"]["elements"][1:]
    assert buttons[1]["behaviors"][0]["value"] == VALUE
    assert all("Plan my day" in parts[0].content for name, parts in simpler if name != "only-file")
