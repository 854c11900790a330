"""The code of a card error decides which form comes next, and chats remember it."""

import pytest

from internal.channels.lark.card_ladder import (
    RefusalMemory,
    Refusals,
    first_form,
    simpler_form,
)
from internal.channels.lark.message_format import AnswerExtras, MessagePart, render_answer
from internal.i18n.chat import ChatPhrases

MENTIONS, PICTURES, TABLES, OTHER = 100290, 200570, 11310, 230099
TABLE = "| a | b |\n|---|---|\n| 1 | 2 |\n\n"
ANSWER = f"![p](p.png)\n\n{TABLE * 2}## More\n\n{TABLE * 2}"


def page() -> MessagePart:
    """Return the first of two cards, with a mention, a picture and three tables."""
    extras = AnswerExtras({"p.png": "img_1"}, ("ou_1",))
    return dict(render_answer(ANSWER, ChatPhrases("en"), extras))["cards"][0]


@pytest.mark.parametrize(
    ("codes", "form"),
    [
        ([], "card-with-mentions"),
        ([MENTIONS], "card"),
        ([PICTURES], "card-without-pictures-with-mentions"),
        ([TABLES], "plain-card-with-mentions"),
        ([MENTIONS, PICTURES], "card-without-pictures"),
        ([PICTURES, MENTIONS], "card-without-pictures"),
        ([MENTIONS, TABLES], "plain-card"),
        ([TABLES, MENTIONS], "plain-card"),
        ([TABLES, OTHER], "post-with-mentions"),
        ([MENTIONS, TABLES, OTHER], "post"),
        ([MENTIONS, TABLES, OTHER, OTHER], "text"),
    ],
)
def test_the_error_says_what_the_next_form_leaves_out(codes: list[int], form: str) -> None:
    part: MessagePart | None = page()
    for code in codes:
        assert part is not None
        part = simpler_form(part, code)
    assert part is not None
    assert part.form == form


def test_after_the_text_there_is_no_form() -> None:
    part: MessagePart | None = page()
    forms = 0
    while part is not None:
        part = simpler_form(part, OTHER)
        forms += 1
        assert forms < 20


def test_a_chat_remembers_people_and_the_fewest_tables_but_no_picture() -> None:
    memory = RefusalMemory()
    for code in (PICTURES, OTHER):
        memory.note("chat", page(), code)
    assert memory.begin("1", "chat") == Refusals()
    memory.note("chat", page(), MENTIONS)
    assert first_form(page(), memory.begin("2", "chat")).form == "card"
    assert first_form(page(), memory.begin("3", "other chat")).form == "card-with-mentions"
    two = page()._replace(mentions=frozenset({"ou_2"}))
    assert first_form(two, memory.begin("4", "chat")).form == "card-with-mentions"
    memory.note("chat", page(), TABLES)
    assert first_form(page(), memory.begin("5", "chat")).form == "plain-card"
    assert memory.begin("5", "chat").tables == 3


def test_a_message_that_is_tried_again_begins_with_the_same_form() -> None:
    memory = RefusalMemory()
    begun = memory.begin("key", "chat")
    memory.note("chat", page(), MENTIONS)
    assert memory.begin("key", "chat") == begun
    assert memory.begin("another key", "chat") != begun
