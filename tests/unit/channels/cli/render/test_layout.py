"""Rich renderables become rows of prompt_toolkit fragments."""

from rich.console import Group, RenderableType

from internal.channels.cli.render.layout import (
    BrokenText,
    HorizontalRule,
    Prefixed,
    render_rows,
    style_class,
)
from internal.channels.cli.render.text import plain_text


def styled(text: str, name: str) -> BrokenText:
    made = BrokenText(text)
    made.stylize(style_class(name))
    return made


def shown(renderable: RenderableType, width: int) -> list[str]:
    return [plain_text(row.fragments) for row in render_rows(renderable, width)]


def test_styles_become_classes_and_blanks_at_the_end_are_dropped() -> None:
    (row,) = render_rows(styled("bold  ", "strong"), 20)
    assert row.fragments == (("class:strong", "bold"),)
    assert row.content == "bold"


def test_lines_and_blank_lines_are_rows() -> None:
    assert shown(BrokenText("one\n\ntwo words"), 5) == ["one", "", "two", "words"]


def test_prefixes_are_markers_and_no_content() -> None:
    rows = render_rows(Prefixed(BrokenText("one two three"), "1. ", "   "), 10)
    assert [plain_text(row.fragments) for row in rows] == ["1. one two", "   three"]
    assert rows[0].fragments[0] == ("class:marker", "1. ")
    assert [row.content for row in rows] == ["onetwo", "three"]


def test_nested_prefixes_are_left_out_where_there_is_no_room() -> None:
    inner = Prefixed(BrokenText("abcdef"), "• ", "  ")
    assert shown(Prefixed(inner, "│ ", "│ "), 10) == ["│ • abcdef"]
    assert shown(Prefixed(inner, "│ ", "│ "), 8) == ["│ abcdef"]
    assert shown(Prefixed(inner, "│ ", "│ "), 5) == ["abcde", "f"]


def test_groups_keep_the_order_of_their_parts() -> None:
    parts = Group(BrokenText("one"), HorizontalRule("-"), BrokenText("two"))
    assert shown(Prefixed(parts, "> ", "> "), 8) == ["> one", "> ------", "> two"]


def test_a_rule_is_at_most_forty_columns_wide() -> None:
    assert shown(HorizontalRule("-"), 200) == ["-" * 40]


def test_rows_after_an_open_span_are_not_settled() -> None:
    text = BrokenText("one two *three four")
    text.mark_unsettled()
    assert [row.settled for row in render_rows(text, 7)] == [True, False, False]


def test_a_star_in_code_may_not_become_a_span() -> None:
    text = BrokenText("a * b")
    text.stylize(style_class("code"))
    text.mark_unsettled()
    assert all(row.settled for row in render_rows(text, 40))
