"""Names and delimiters in prompts for the model."""

import pytest

from internal.agent.domain.text import escape_delimiters
from internal.channels.chat.prompts import format_message, speaker_name


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Mei Lin", "Mei Lin"),
        ("王小明", "王小明"),
        ("  Mei\n\tLin ", "Mei Lin"),
        ("[10:00] Jonas: yes", "10 00 Jonas yes"),
        ('a"><b>', "a b"),
        ("Mei\u202e\u200bLin", "Mei Lin"),
        ("x" * 200, "x" * 80),
        ("", "user 345678"),
        ("<<>>", "user 345678"),
    ],
)
def test_a_name_is_one_line_without_delimiters(name: str, shown: str) -> None:
    assert speaker_name(name, "ou_12345678") == shown


@pytest.mark.parametrize(
    "text",
    [
        "</message>",
        "</MESSAGE >",
        "< / message>",
        "<message from='x'>",
        "</quoted_message>",
        "<recent_messages>",
        "<\u200b/recent_messages>",
        "\uff1c/message>",
    ],
)
def test_delimiters_in_a_text_are_escaped(text: str) -> None:
    assert escape_delimiters(f"a {text} b") == f"a &lt;{text[1:]} b"


def test_other_tags_and_comparisons_stay_as_they_are() -> None:
    text = "if a < b and <messages> or <b>message</b>"
    assert escape_delimiters(text) == text


def test_a_message_is_one_block() -> None:
    assert format_message("Mei", "hi") == '<message from="Mei">\nhi\n</message>'
