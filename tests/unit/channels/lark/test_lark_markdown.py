"""Markdown of a model: code is shown exactly, nothing else is active."""

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import tests.support
from internal.channels.lark.lark_markdown import (
    as_card_markdown,
    as_plain_text,
    as_summary,
    escape_active,
    fence,
    limit_nesting,
    parse_markdown,
)
from tests.support.lark_markdown import as_shown, block_codes, codes, shown_tags, written_blocks
from tests.support.property_examples import examples

MAX_TABLES = 1_000
ROWS = json.loads(Path(tests.support.__path__[0], "cjk_emphasis.json").read_text("utf-8"))
_commonmark = MarkdownIt("commonmark").enable("strikethrough")
pieces = st.sampled_from(
    [
        *("`", "``", "```", "~~~", "\n", "\n\n", "    ", "  ", "- ", "1. ", "> ", "|", "|---|\n"),
        *("<at id=all>", "</at>", "<b>", "<!--", "<https://e.x>", "![", "[", "](", ")", "]:", "\\"),
        *("<a href='", "'>", '"', "http://e.x", "(", "!", "#", "*", "_", "&#60;", "<", "x y", "--"),
    ]
)
answers = st.lists(pieces, max_size=25).map("".join)


def in_card(text: str) -> str:
    return as_card_markdown(parse_markdown(text), MAX_TABLES)


@examples(400)
@given(answers)
@example("`\n<!--`")
@example("`\n<b>` <i> `x")
def test_nothing_of_an_answer_is_active(answer: str) -> None:
    assert shown_tags(in_card(answer)) == []


@examples(400)
@given(answers)
@example("-     a\n    b\nc")
@example("10.  a\n\n     ```\n     b\n     ```\n     c\n\nd")
def test_code_blocks_are_kept_exactly(answer: str) -> None:
    assert block_codes(in_card(answer)) == written_blocks(limit_nesting(answer))


@examples(200)
@given(st.text(st.characters(exclude_characters="`\r\n\0"), min_size=1, max_size=60))
def test_inline_code_is_kept_exactly(code: str) -> None:
    for text in (f"a `{code}` <b>", f"- ``{code}`` <b>", f"# `{code}`"):
        assert codes(in_card(text)) == codes(text.replace("<b>", ""))


@examples(200)
@given(st.text(st.characters(exclude_characters="\r\0")) | answers)
def test_a_fence_shows_its_code_exactly(code: str) -> None:
    assert codes(fence(code)) == [f"{code}\n" if code else ""]
    assert codes(f"text\n{fence(code, 'sh')}\ntext") == [f"{code}\n" if code else ""]


@pytest.mark.parametrize(
    ("text", "card"),
    [
        ("1 < 2 <at id=all></at>", "1 &#60; 2 &#60;at id=all>&#60;/at>"),
        (r"\<b> \\<i>", r"&#60;b> \\&#60;i>"),
        ("`<a>` <b>", "`<a>` &#60;b>"),
        ("``a`<b>`` \\`<c>`", "``a`<b>`` \\`&#60;c>`"),
        ("| ` | <at> ` |\n|---|---|", "| ` | &#60;at> ` |\n|---|---|"),
        ("- a\n  ```sh\n  <b>\n  ```\n  c", "- a\n```sh\n<b>\n```\nc"),
        ("> ```\n> <b>\n> ```", "```\n<b>\n```"),
        ("~~~~ py x=<y>\n```\n~~~~", "````py\n```\n````"),
        ("``` <at>\nx\n```", "```\nx\n```"),
        ("    <b>", "```\n<b>\n```"),
        ("![a](img_v2_1) !![b](img_v2_2)", "[a](img_v2_1) [b](img_v2_2)"),
        ("[a [b](x) ![](w)", "[a [b](x) [w](w)"),
        ("wow![1] !", "wow![1] !"),
        ("[x]: http://e.x\n\n[x]", "[x] : http://e.x\n\n[x]"),
        ("[x](javascript:a) [y](tel://1)", "[x] (javascript:a) [y] (tel://1)"),
        ("[x](<http://e.x>)", "[x] (&#60;http://e.x>)"),
    ],
)
def test_text_outside_of_code_is_shown_as_it_is(text: str, card: str) -> None:
    assert in_card(text) == card


@pytest.mark.parametrize(
    ("text", "card"),
    [
        # headings of the first levels are very large
        ("# A\n\n## B\n### C", "#### A\n\n##### B\n##### C"),
        ("## B\n### C\n## D", "#### B\n##### C\n#### D"),
        ("A\n===\n\nB\n---\n`# c`", "#### A\n\n\n##### B\n\n`# c`"),
        ("> # A\n\n```\n# c\n```", "> #### A\n\n```\n# c\n```"),
        # a level of a list is four blanks
        ("- a\n  - b\n    - c\n- d", "- a\n    - b\n        - c\n- d"),
        ("1. a\n   - b\n     1. c", "1. a\n    - b\n        1. c"),
        ("100. a\n     - b\n\n     c", "100. a\n        - b\n\n        c"),
        ("- a\n    - b\n        - c", "- a\n    - b\n        - c"),
        ("- a\n\t- b\nlazy", "- a\n    - b\nlazy"),
        ("- a\n\n  b\n  - c\n\n    d", "- a\n\n    b\n    - c\n\n        d"),
        # tasks
        ("- [ ] a\n* [x] b\n  1. [X] c", "- ☐ a\n* ☑ b\n    1. ☑ c"),
        ("[ ] a `- [ ] b`\n- [x](y)", "[ ] a `- [ ] b`\n- [x](y)"),
        # footnotes
        ("a[^1] b[^n]\n\n[^1]: c\n[^n]: d", "a[1] b[n]\n\n[1] c\n[n] d"),
        ("[^abc] `[^1]`\n\n[^1]: c", "[^abc] `[^1]`\n\n[1] c"),
        # line breaks and marked text
        ("|a<br>b|`<br>`|\n|-|-|", "|a b|`<br>`|\n|-|-|"),
        ("a ==b== c a==b && c==d `==e==`", "a b c a==b && c==d `==e==`"),
        # a blank line before and after a table
        ("a\n\n|b|\n|-|\n\nc", "a\n\n|b|\n|-|\n\nc"),
        ("a\n|b|\n|-|\n# c", "a\n\n|b|\n|-|\n\n#### c"),
        # formulas, but neither prices nor variables nor escaped brackets
        ("$E=mc^2$ and \\(x_1\\)", "E = mc² and x₁"),
        ("$$\n\\frac{a}{b}\n$$\nc", "a/b\n\n\nc"),
        ("$x^{y}$ `$x^2$`", "`x^{y}` `$x^2$`"),
        ("$a*b*c=1$", r"a\*b\*c = 1"),
        ("$5 and $6, $A/$B, $A_1 and x=$B", "$5 and $6, $A/$B, $A_1 and x=$B"),
        (r"\[see a\] \(b c\)", r"\[see a\] \(b c\)"),
    ],
)
def test_a_card_gets_the_form_that_it_can_show(text: str, card: str) -> None:
    assert in_card(text) == card


@pytest.mark.parametrize(("text", "shown"), ROWS)
def test_a_card_shows_emphasis_beside_chinese_signs(text: str, shown: str) -> None:
    # a card, a cell of a table and a rich text
    table = in_card(f"|{text}|\n|-|").split("|")[1]
    for form in (in_card(text), table, parse_markdown(text)[0].text):
        assert visible(_commonmark.renderInline(form)) == shown


@pytest.mark.parametrize(
    ("link", "host"),
    [
        ("[https://good.x.com](https://evil.com/a)", "evil.com"),
        ("[good.com](http://evil.com)", "evil.com"),
        ("[**good.com**](http://evil.com)", "evil.com"),
        ("[see https://good.com](http://evil.com)", "evil.com"),
        ("[good.com](https://good.com@evil.com)", "evil.com"),
        ("[good&#46;com](https://evil.com)", "evil.com"),
        ("[good.com](https://evil&#46;com)", "evil.com"),
        ("[\uff47ood.com](https://evil.com)", "evil.com"),
        ("[`good.com`](https://evil.com)", "evil.com"),
        ("![good.com](https://evil.com)", "evil.com"),
    ],
)
def test_a_link_to_another_host_than_its_text_names_shows_it(link: str, host: str) -> None:
    assert in_card(link).endswith(f" ({host})")


@pytest.mark.parametrize(
    "link",
    [
        "[good.com](https://www.good.com/x)",
        "[docs](https://a.b/c)",
        "[a](b.md)",
        "[1.5](http://e.x)",
    ],
)
def test_other_links_are_kept(link: str) -> None:
    assert in_card(link) == link


@pytest.mark.parametrize("label", ["", " ", "\u200b", "**", "&#8203;"])
def test_a_link_without_text_shows_its_host(label: str) -> None:
    assert "evil.com](https://evil.com/a)" in in_card(f"[{label}](https://evil.com/a)")


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("> " * 2_000 + "deep", "> " * 8 + "deep"),
        (">" * 2_000 + "deep", ">" * 8 + "deep"),
        ("- " * 2_000 + "deep", "- " * 8 + "deep"),
        ("1. " * 2_000 + "deep", "1. " * 8 + "deep"),
        ("> - " * 1_000 + "deep", "> - " * 4 + "deep"),
        (" " * 4_000 + "- deep", " " * 4_000 + "- deep"),  # indented code
        ("- a\n" + " " * 4_000 + "- deep", "- a\n" + " " * 32 + "- deep"),
        ("```\n" + "> " * 2_000 + "deep\n```\n", "```\n" + "> " * 2_000 + "deep\n```\n"),
        ("~~~\n" + "> " * 2_000 + "deep\n~~~\n", "~~~\n" + "> " * 2_000 + "deep\n~~~\n"),
        ("> - 1. kept\n" + " " * 40 + "kept", "> - 1. kept\n" + " " * 40 + "kept"),
    ],
)
def test_deep_nesting_is_flattened_and_its_text_kept(answer: str, shown: str) -> None:
    assert limit_nesting(answer) == shown


def test_an_invisible_character_makes_tags_outside_of_cards_inactive() -> None:
    text = "a < b <at user_id='all'></at>"
    assert escape_active(text) == "a < b <\u200bat user_id='all'><\u200b/at>"
    assert visible(escape_active(text)) == text


def visible(text: str) -> str:
    return text.replace("\u200b", "")


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("a <b> `f[0](x) <at>` \\*c\\*", "a <b> `f[0](x) <at>` *c*"),
        ("- `\\d+` and \\_x\\_", "- `\\d+` and _x_"),
        ("| `a\\b` | \\<i> |\n|---|---|", "| `a\\b` | <i> |\n|---|---|"),
        ("```c\nif (a<b) x[0](\\n);\n```", "```c\nif (a<b) x[0](\\n);\n```"),
        ("```\n<div> <b>\n```", "```\n<div> <b>\n```"),
    ],
)
def test_a_text_message_shows_what_was_written_without_escapes(answer: str, shown: str) -> None:
    text = as_plain_text(parse_markdown(answer))
    assert visible(text) == shown
    assert not re.search(r"<(?=/?(at|a|b|i|u|s)\b)|\]\(http", text, re.IGNORECASE)


def test_code_in_a_text_message_is_changed_only_where_it_would_be_active() -> None:
    code = "```\nvector<int> v; <div>x</div> a[0](1)\n```"
    assert as_plain_text(parse_markdown(code)) == code


def test_inline_code_of_a_rich_text_is_kept_exactly() -> None:
    [block] = parse_markdown("Call `<at id=all></at>` or <at id=all></at>")
    assert block.text == "Call `<at id=all></at>` or <\u200bat id=all><\u200b/at>"


@pytest.mark.parametrize(
    ("answer", "summary"),
    [
        ("# Result\n\nIt is **42**, see [docs](https://e.x).", "Result It is 42, see docs."),
        ("| a | b |\n|---|---|\n| 1 | `x<y>` |", "a b 1 x<y>"),
        ("```sh\nls -l\n```\nend", "ls -l end"),
        ("Use <font> & \\*x\\*", "Use <font> & *x*"),
        ("", ""),
        ("字" * 300, "字" * 99 + "…"),
    ],
)
def test_a_summary_is_the_beginning_without_markup(answer: str, summary: str) -> None:
    assert as_summary(parse_markdown(answer), 100) == summary


MARKS = (
    *("[", "![", "`", "<at ", "|-\n", "> ", "](", "[a](b", "\\", "```\n"),
    *(
        "$",
        "\\(",
        "\\[ ",
        "$$",
        "$\\frac{",
        "[^1]",
        "==",
        "==a",
        "- [ ] ",
        "- a\n  ",
        "\u4e2d*\uff1a",
    ),
)


@pytest.mark.parametrize("mark", MARKS)
def test_the_time_grows_with_the_length_only(mark: str) -> None:
    def seconds(count: int) -> float:
        begun = time.process_time()
        in_card(mark * (count // len(mark)))
        return time.process_time() - begun

    seconds(1_000)
    assert seconds(28_000) < max(0.5, 40 * seconds(2_800))


def test_a_card_shows_what_was_written() -> None:
    text = "Use <button>Allow once</button> & `x<y>` \\<i>"
    assert as_shown(in_card(text)) == "Use <button>Allow once</button> & x<y> <i>"
