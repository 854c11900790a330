"""Emphasis beside Chinese, Japanese and Korean signs; the page has a test with the same rows."""

import json
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import tests.support
from internal.channels.cjk_emphasis import find_separators, use_cjk_emphasis
from tests.support.property_examples import examples

ROWS = json.loads(Path(tests.support.__path__[0], "cjk_emphasis.json").read_text("utf-8"))
SEPARATOR = "\u200b"
commonmark = MarkdownIt("commonmark").enable("strikethrough")
friendly = use_cjk_emphasis(MarkdownIt("commonmark").enable("strikethrough"))
pieces = st.sampled_from(
    ["中", "\uff08", "\uff09", "\uff1a", "a", " ", "(", ")", "`x`", "%", "[l](x)"]
)
marked = st.recursive(
    pieces,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.tuples(st.sampled_from(["**", "~~"]), inner).map(
            lambda pair: f"{pair[0]}{pair[1]}{pair[0]}"
        ),
    ),
    max_leaves=8,
)


def separated(text: str) -> str:
    parts, done = [], 0
    for place in find_separators(friendly, text):
        parts.append(text[done:place])
        done = place
    return SEPARATOR.join([*parts, text[done:]])


@pytest.mark.parametrize(("text", "shown"), ROWS)
def test_a_letter_or_sign_on_either_side_is_enough(text: str, shown: str) -> None:
    assert friendly.renderInline(text) == shown


@pytest.mark.parametrize(("text", "shown"), ROWS)
def test_separators_make_commonmark_show_the_same(text: str, shown: str) -> None:
    assert commonmark.renderInline(separated(text)).replace(SEPARATOR, "") == shown


@examples(400)
@example("中~~**\uff08**~~")
@given(marked.filter(lambda text: "***" not in text))
def test_separated_texts_are_the_same(text: str) -> None:
    expected = friendly.renderInline(text)
    # A mark without a partner may find one beside a separator.
    assume("**" not in expected and "~~" not in expected)
    shown = commonmark.renderInline(separated(text)).replace(SEPARATOR, "")
    assert shown == expected


@pytest.mark.parametrize(
    "text", ["**Note:**see", "a**(b)**c ~~old.~~new", "*a* **b** ***c***", "é**“x”**é"]
)
def test_texts_without_such_letters_are_read_as_commonmark(text: str) -> None:
    assert friendly.renderInline(text) == commonmark.renderInline(text)
    assert find_separators(friendly, text) == []
