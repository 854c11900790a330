"""Long answers are split at blocks, rows and lines; nothing is lost and no character is split."""

import json
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.channels.lark.answer_pages import break_long_lines, split_pages
from internal.channels.lark.api import as_json
from internal.channels.lark.lark_markdown import AnswerBlock, parse_markdown
from internal.channels.lark.message_format import (
    MAX_PAGES,
    MAX_RICH_BYTES,
    MAX_TABLES,
    byte_length,
    render_answer,
)
from internal.i18n.chat import ChatPhrases
from tests.support.lark_markdown import block_codes, written_blocks
from tests.support.property_examples import examples

EN = ChatPhrases("en")
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"


def pages_of(answer: str) -> list[str]:
    """Return the Markdown of the cards of an answer; [] if it is sent as a file."""
    name, parts = render_answer(answer, EN)[0]
    if name not in {"card", "cards"}:
        return []
    for part in parts:
        assert byte_length(as_json(part.content)) <= MAX_RICH_BYTES
    return [json.loads(part.content)["body"]["elements"][0]["content"] for part in parts]


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def paragraphs(count: int, size: int = 40) -> str:
    return "\n\n".join(f"Paragraph {n}. " + "some words " * size + "." for n in range(count))


def test_paragraphs_are_kept_together_and_in_order() -> None:
    answer = paragraphs(150)
    pages = pages_of(answer)
    assert 2 <= len(pages) <= MAX_PAGES
    assert "\n\n".join(page.strip() for page in pages) == answer.strip()
    assert all(page.startswith("Paragraph ") for page in pages)


def test_a_heading_is_not_the_end_of_a_page() -> None:
    sections = "\n\n".join(f"## Part {n}\n\n" + "word " * 300 for n in range(60))
    pages = pages_of(sections)
    assert len(pages) > 1
    assert not any(page.strip().splitlines()[-1].startswith("#") for page in pages)


def test_code_is_continued_in_a_fence_of_its_language() -> None:
    code = "\n".join(f"print({n})  # {'x' * 40}" for n in range(1_200))
    pages = pages_of(f"Before\n\n```python\n{code}\n```\n\nAfter")
    assert len(pages) > 1
    assert "\n".join(block for page in pages for block in block_codes(page)) == code
    assert all("```python\n" in page for page in pages)


def test_a_table_is_continued_with_its_header() -> None:
    rows = [f"| {n} | {'value ' * 10} |" for n in range(700)]
    pages = pages_of("| number | text |\n|---|---|\n" + "\n".join(rows))
    assert len(pages) > 1
    assert all(page.startswith("| number | text |\n|---|---|\n") for page in pages)
    assert [line for page in pages for line in page.splitlines() if line in set(rows)] == rows


def test_a_page_has_at_most_five_tables_and_others_are_code() -> None:
    table = "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 100 + "\n"
    pages = pages_of(table * 40)
    assert len(pages) > 1
    for page in pages:
        shown = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
        assert shown.count("|---|---|") <= MAX_TABLES


@pytest.mark.parametrize(
    "text",
    [
        "这是一个没有换行的很长的段落。" * 1_800,
        "没有标点的字" * 4_000,
        FAMILY * 2_500,
        "\U0001f1e9\U0001f1ea" * 5_000,
        "e\u0301" * 20_000,
        "word " * 15_000,
        "before `code with spaces inside of it` after " * 1_500,
    ],
    ids=["sentences", "characters", "families", "flags", "accents", "words", "code"],
)
def test_a_long_line_is_broken_between_characters_only(text: str) -> None:
    pages = pages_of(text)
    assert 2 <= len(pages) <= MAX_PAGES
    assert squeezed("".join(pages)) == squeezed(text)
    lines = [line for page in pages for line in page.splitlines()]
    for line in lines:
        assert not re.match("[\u200d\u0301\ufe0f]", line)
        assert not line.endswith("\u200d")
        assert line.count("`") % 2 == 0
        if "\U0001f1e9" in line:
            assert line.count("\U0001f1e9") == line.count("\U0001f1ea")
    if "\u3002" in text:
        assert all(line.endswith("\u3002") for line in lines)


def test_short_lines_are_not_changed() -> None:
    text = "a b. " * 500 + "\n```\n" + "x " * 5_000 + "\n```"
    assert break_long_lines(text) == text


def test_an_answer_of_more_than_four_pages_or_with_a_huge_line_of_code_is_a_file() -> None:
    for answer in (paragraphs(400), "```\n" + "x" * 40_000 + "\n```"):
        name, (head, file) = render_answer(answer, EN)[0]
        assert name == "file"
        assert head.kind == "interactive"
        assert file.file is not None
        assert file.file[1].decode() == answer


def measure(block: AnswerBlock) -> int:
    return byte_length(block.card) + 1


pieces = st.sampled_from(
    [
        "para one two three\n\n",
        "#### heading\n\n",
        "- a\n- b\n- c\n\n",
        "```sh\n<b> 1\n2\n\n3\n```\n\n",
        "| a |\n|---|\n| 1 |\n| 2 |\n\n",
        "> quote\n\n",
        "line\n",
    ]
)


@examples(300)
@given(st.lists(pieces, min_size=1, max_size=20).map("".join), st.integers(30, 200))
def test_pages_fit_and_nothing_is_lost(answer: str, max_bytes: int) -> None:
    pages = split_pages(parse_markdown(answer), max_bytes, measure)
    assert pages is not None
    assert all(page and sum(map(measure, page)) <= max_bytes for page in pages)
    shown = ["\n".join(block.card for block in page) for page in pages]
    lines = [line for line in answer.splitlines() if line and line not in {"| a |", "|---|"}]
    found = "\n".join(shown).splitlines()
    assert [line for line in found if line in set(lines) and "```" not in line] == [
        line for line in lines if "```" not in line
    ]
    code = [line for page in shown for block in block_codes(page) for line in block.split("\n")]
    assert code == [line for block in written_blocks(answer) for line in block.split("\n")]


def test_pages_of_random_answers_fit_into_a_card() -> None:
    chance = random.Random(7)  # noqa: S311 - no secret
    kinds = [
        "文字。" * 50 + "\n\n",
        "```\n" + 'x = "\\\\"\n' * 30 + "```\n\n",
        "| a |\n|---|\n" * 3 + "\n",
    ]
    for _ in range(10):
        answer = "".join(chance.choices(kinds, k=150))
        assert pages_of(answer) or render_answer(answer, EN)[0][0] == "file"
