"""Blocks of Markdown: nesting beyond the limit is shown as text, and no text is lost."""

import pytest

from internal.channels.cli.render.markdown import parse_blocks
from internal.channels.cli.render.text import plain_text
from internal.channels.cli.render.theme import UNICODE

LEVELS = 20
"""Quotes inside of each other; lists are half as deep, because their items count too."""


def render(text: str, width: int = 80) -> str:
    rows = [row for block in parse_blocks(text, UNICODE) for row in block.render(width)]
    return "\n".join(plain_text(row.fragments) for row in rows)


@pytest.mark.parametrize("width", [10, 80])
@pytest.mark.parametrize(
    "text",
    [
        "> " * 2_000 + "deep",
        ">" * 2_000 + "deep",
        "- " * 2_000 + "deep",
        "1. " * 2_000 + "deep",
        "> - " * 1_000 + "deep",
        "[" * 10_000 + "deep",
        "*" * 10_000 + "deep",
        "**a" * 5_000 + "deep",
        f"|{'a|' * 1_000}\n|{'-|' * 1_000}\n|{'b|' * 999}deep|",
    ],
)
@pytest.mark.first_rows(4)
def test_nested_and_repeated_marks_are_shown_with_their_text(text: str, width: int) -> None:
    assert "deep" in render(text, width)


def test_every_item_of_a_deep_list_is_shown() -> None:
    depth = 200
    shown = render("\n".join(f"{'  ' * level}- item {level}." for level in range(depth)))
    assert all(f"item {level}." in shown for level in range(depth))
    assert shown.count(UNICODE.bullet) == LEVELS // 2


def test_quotes_are_bars_up_to_the_limit() -> None:
    [row, *_] = render("> " * (LEVELS + 2) + "deep").splitlines()
    assert row == f"{UNICODE.bar} " * LEVELS + "> > deep"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<https://good.example/x>", "https://good.example/x"),
        ("<a@good.example>", "a@good.example"),
        ("[the report](https://evil.example)", "the report (https://evil.example)"),
        (
            "[https://good.example](https://evil.example)",
            "https://good.example (https://evil.example)",
        ),
        ("[](https://evil.example)", " (https://evil.example)"),
        ("[\u2060](https://evil.example)", r"\u2060 (https://evil.example)"),
        (
            "[![good.example](a.png)](https://evil.example)",
            "[good.example] (a.png) (https://evil.example)",
        ),
        (
            "<https://good.example@evil.example/>",
            "https://good.example@evil.example/ (evil.example)",
        ),
        ("<https://good.example/a@b>", "https://good.example/a@b"),
        (
            "<https://b\u00fccher.example/>",
            "https://b\u00fccher.example/ (https://xn--bcher-kva.example/)",
        ),
        ("[x](/api/logout)", "x (/api/logout)"),
        ("# [good.example](https://evil.example)", "good.example (https://evil.example)"),
        ("- [good.example](https://evil.example)", "• good.example (https://evil.example)"),
    ],
)
def test_a_link_says_where_it_leads(text: str, shown: str) -> None:
    assert render(text).rstrip() == shown


def test_a_link_in_a_table_says_where_it_leads() -> None:
    assert "(https://evil.example)" in render("|a|\n|-|\n|[good.example](https://evil.example)|")


@pytest.mark.parametrize(
    ("text", "shown", "style", "styled"),
    [
        ("**重点\uff1a**请注意", "重点\uff1a请注意", "strong", "重点\uff1a"),
        (
            "- 这是**\uff08备注\uff09**文字",
            "• 这是\uff08备注\uff09文字",
            "strong",
            "\uff08备注\uff09",
        ),
        ("~~旧的。~~新的", "旧的。新的", "strike", "旧的。"),
        ("a**(b)**c", "a**(b)**c", "strong", ""),
    ],
)
def test_emphasis_beside_chinese_signs_is_shown(
    text: str, shown: str, style: str, styled: str
) -> None:
    [block] = parse_blocks(text, UNICODE)
    [row] = block.render(80)
    assert plain_text(row.fragments).rstrip() == shown
    assert "".join(part for name, part in row.fragments if style in name) == styled
