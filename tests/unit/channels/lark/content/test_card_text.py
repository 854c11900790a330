"""The text of cards, in each format in which Lark returns them."""

from typing import Any

import pytest

from internal.channels.lark.content.card_text import MAX_CHARACTERS, card_text
from internal.simulators.lark.cards.card_forms import card_in_form

CARD: dict[str, Any] = {
    "header": {"title": {"tag": "plain_text", "content": "Deploy"}},
    "elements": [
        {"tag": "div", "text": {"tag": "lark_md", "content": "**web** is out"}},
        {"tag": "img", "img_key": "img_1", "alt": {"tag": "plain_text", "content": ""}},
        {"tag": "note", "elements": [{"tag": "plain_text", "content": "by Mei"}]},
        {
            "tag": "column_set",
            "columns": [
                {"tag": "column", "elements": [{"tag": "markdown", "content": text}]}
                for text in ("left", "right")
            ],
        },
        {"tag": "action", "actions": [{"tag": "button", "text": {"content": "Undo"}}]},
    ],
}
IMAGE = "[a picture of the card, not shown]"


@pytest.mark.parametrize("form", ["user_card_content", "raw_card_content"])
def test_a_whole_card_is_read_in_order(form: str) -> None:
    lines = ["Deploy", "**web** is out", IMAGE, "by Mei", "left", "right", "[button: Undo]"]
    assert card_text(card_in_form(CARD, form)).split("\n") == lines


def test_a_flattened_card_is_read_as_far_as_it_goes() -> None:
    assert card_text(card_in_form(CARD, "")).split("\n")[:3] == ["Deploy", "**web** is out", IMAGE]


def test_the_parts_of_a_flattened_paragraph_are_one_line() -> None:
    parts = [
        {"tag": "text", "text": "see "},
        {"tag": "a", "text": "this", "href": "https://a.example"},
        {"tag": "text", "text": " "},
        {"tag": "at", "user_name": "Mei"},
    ]
    assert card_text({"elements": [parts]}) == "see [this](https://a.example) @Mei"


def test_a_select_shows_its_options() -> None:
    options = [{"text": {"tag": "plain_text", "content": word}} for word in ("red", "blue")]
    hint = {"tag": "plain_text", "content": "Colour"}
    select = {"tag": "select_static", "placeholder": hint, "options": options}
    assert card_text({"elements": [select]}) == "[Colour (red | blue)]"


def test_a_cell_stays_in_its_table() -> None:
    table = {"tag": "table", "columns": [{"name": "a"}], "rows": [{"a": "x | y\nz"}, {"a": None}]}
    assert card_text({"body": {"elements": [table]}}) == "| a |\n| x / y z |\n|  |"


@pytest.mark.parametrize(
    "card",
    [
        {},
        {"elements": None},
        {"elements": [None, 7, {"tag": 3}, {"tag": "table"}, {"tag": "select_static"}]},
        {"json_card": "{"},
        {"json_card": "[]"},
        {"elements": [{"tag": "table", "columns": 7, "rows": "x"}]},
        {"elements": [{"tag": "select_static", "options": 7}]},
    ],
)
def test_a_malformed_card_is_no_failure(card: dict[str, Any]) -> None:
    assert len(card_text(card)) < 20


def test_a_card_is_bounded_in_depth_and_length() -> None:
    nested: dict[str, Any] = {"tag": "markdown", "content": "deep"}
    for _ in range(200):
        nested = {"tag": "form", "elements": [nested]}
    assert card_text({"elements": [nested]}) == ""
    long = {"elements": [{"tag": "markdown", "content": "x" * 1_000}] * 100}
    assert len(card_text(long)) == MAX_CHARACTERS
