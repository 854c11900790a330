"""Tables as columns, or as records where columns do not fit."""

from rich.text import Text

from internal.channels.cli.render.layout import render_rows
from internal.channels.cli.render.tables import MarkdownTable
from internal.channels.cli.render.text import RenderedRow, plain_text


def table() -> MarkdownTable:
    rows = [[Text("alpha"), Text("1")], [Text("模型"), Text("1000")]]
    return MarkdownTable([Text("name"), Text("size")], rows, ["left", "right"], "-")


def shown(rows: list[RenderedRow]) -> list[str]:
    return [plain_text(row.fragments) for row in rows]


def test_columns_are_aligned_below_a_rule() -> None:
    assert shown(render_rows(table(), 40)) == [
        "name   size",
        "-----------",
        "alpha     1",
        "模型   1000",
    ]


def test_records_are_separated_by_a_blank_row() -> None:
    assert shown(render_rows(table(), 10)) == [
        *("name:", "  alpha", "size: 1"),
        *("", "name:", "  模型", "size:", "  1000"),
    ]


def test_a_table_without_rows_shows_its_head() -> None:
    empty = MarkdownTable([Text("a"), Text("b")], [], ["left", "left"], "-")
    assert shown(render_rows(empty, 40))[0] == "a  b"
    assert shown(render_rows(empty, 3)) == ["a:", "b:"]


def test_a_table_that_may_grow_has_no_settled_row() -> None:
    growing = table()
    growing.mark_unsettled()
    assert not any(row.settled for row in render_rows(growing, 40))
    assert all(row.settled for row in render_rows(table(), 40))
