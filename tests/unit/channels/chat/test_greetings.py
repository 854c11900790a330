"""The message with which the bot introduces itself."""

import pytest

from internal.agent.domain.chats import InboundMessage
from internal.channels.chat.greetings import build_greeting, greeting_content
from internal.i18n.chat import ChatPhrases
from internal.i18n.language import LANGUAGES, Language

ROW = InboundMessage("lark", "cli_1", "event:1", "oc_1", "lark:cli_1:ou_1", "{}", "2026")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("is_direct", [True, False])
def test_a_greeting_has_three_suggestions_in_its_language(
    language: Language, is_direct: bool
) -> None:
    phrases = ChatPhrases(language)
    greeting = build_greeting(ROW, phrases, is_direct=is_direct)
    content = greeting_content(greeting, phrases)
    assert content is not None
    assert (content.text, content.is_direct) == (greeting.body, is_direct)
    assert len(set(content.suggestions)) == 3


def test_other_messages_are_no_greetings() -> None:
    greeting = build_greeting(ROW, ChatPhrases("en"), is_direct=True)
    other = type(greeting)("cli_1:om_1:note", "lark", "cli_1", "oc_1", "om_1", greeting.body)
    assert greeting_content(other, ChatPhrases("en")) is None
