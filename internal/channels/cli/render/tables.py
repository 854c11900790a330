"""Markdown tables as rich tables, or as one record per row where columns do not fit."""

from collections.abc import Sequence
from typing import Literal

from rich.box import Box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from internal.channels.cli.render.layout import Prefixed, style_class
from internal.channels.cli.render.text import cell_width

Alignment = Literal["left", "right", "center"]
_GAP = 2
_MIN_COLUMN_WIDTH = 6
"""With fewer columns of text than this per column a table is rendered as records."""


class MarkdownTable:
    """A table; `rule` is the character that is drawn below its head."""

    def __init__(
        self,
        head: Sequence[Text],
        rows: Sequence[Sequence[Text]],
        alignments: Sequence[Alignment],
        rule: str,
    ) -> None:
        self._head = head
        self._rows = rows
        self._alignments = alignments
        self._rule_style = style_class("marker")
        self._box = _head_rule_box(rule)

    def mark_unsettled(self) -> None:
        """Mark the whole table: another row may change the width of every column."""
        self._rule_style += style_class("unsettled")
        for cell in (*self._head, *(cell for row in self._rows for cell in row)):
            cell.stylize(style_class("unsettled"))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._fits(options.max_width):
            yield self._as_table()
        else:
            yield from self._as_records()

    def _fits(self, width: int) -> bool:
        columns = zip(self._head, *self._rows, strict=False)
        natural = [max(1, *(cell_width(cell.plain) for cell in column)) for column in columns]
        needed = sum(min(width, _MIN_COLUMN_WIDTH) for width in natural)
        return needed + _GAP * (len(natural) - 1) <= width

    def _as_table(self) -> Table:
        table = Table(
            box=self._box,
            padding=(0, 1, 0, 0),
            pad_edge=False,
            show_edge=False,
            header_style=style_class("strong"),
            border_style=self._rule_style,
        )
        for cell, alignment in zip(self._head, self._alignments, strict=True):
            table.add_column(cell, justify=alignment, overflow="fold")
        for row in self._rows:
            table.add_row(*row)
        return table

    def _as_records(self) -> RenderResult:
        for number, row in enumerate(self._rows or ((),)):
            if number:
                yield Text("")
            for column, name in enumerate(self._head):
                record = name.copy()
                record.stylize(style_class("strong"))
                record.append(": ")
                record.append_text(row[column] if column < len(row) else Text(""))
                yield Prefixed(record, "", "  ")


def _head_rule_box(rule: str) -> Box:
    """Return a rich box that draws a rule below the head and nothing else."""
    blank, head = "    \n", f" {rule}{rule} \n"
    return Box(blank + blank + head + blank * 5, ascii=rule.isascii())
