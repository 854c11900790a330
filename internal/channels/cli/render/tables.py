"""Tables in columns, or one record below the other where there is no room for columns."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from internal.channels.cli.render.text import (
    Fragments,
    StyledLine,
    cell_width,
    plain_text,
    wrap_line,
)

Side = Literal["left", "right", "center"]
_GAP = 2
_NARROWEST = 6
"""A column with less room than this is not worth being one, unless it needs no more."""


class Table(NamedTuple):
    """The head, the rows below it, and to which side each column leans."""

    head: tuple[Fragments, ...]
    rows: tuple[tuple[Fragments, ...], ...]
    sides: tuple[Side, ...]


def table_lines(table: Table, width: int, rule: str) -> Iterator[StyledLine]:
    """Yield a table as lines of at most `width` columns. `rule` is drawn below the head."""
    widths = _widths(table, width)
    if widths is None:
        yield from _records(table)
        return
    yield from _row(_strong(table.head), widths, table.sides)
    yield StyledLine(
        (("class:faint", (" " * _GAP).join(rule * one for one in widths)),), verbatim=True
    )
    for row in table.rows:
        yield from _row(row, widths, table.sides)


def _widths(table: Table, width: int) -> list[int] | None:
    """Return how wide each column is: its natural width if all fit, else the widest give way."""
    every = (table.head, *table.rows)
    natural = [
        max(1, *(cell_width(plain_text(row[column])) for row in every))
        for column in range(len(table.head))
    ]
    room = width - _GAP * (len(natural) - 1)
    if room < sum(min(one, _NARROWEST) for one in natural):
        return None
    left, widths = room, list(natural)
    # the narrow ones take what they need, the others share what is left
    for taken, column in enumerate(sorted(range(len(natural)), key=natural.__getitem__)):
        share = left // (len(natural) - taken)
        widths[column] = min(natural[column], share)
        left -= widths[column]
    return widths


def _row(
    row: Sequence[Fragments], widths: Sequence[int], sides: Sequence[Side]
) -> Iterator[StyledLine]:
    columns = [
        [shown for shown, _ in wrap_line(StyledLine(cell), width)]
        for cell, width in zip(row, widths, strict=True)
    ]
    for number in range(max(map(len, columns))):
        body: list[tuple[str, str]] = []
        for cell, width, side in zip(columns, widths, sides, strict=True):
            shown = cell[number] if number < len(cell) else ()
            before, behind = _blanks(width - cell_width(plain_text(shown)), side)
            body += [("", " " * before), *shown, ("", " " * (behind + _GAP))]
        yield StyledLine(_trimmed(body), verbatim=True)


def _records(table: Table) -> Iterator[StyledLine]:
    for number, row in enumerate(table.rows or ((),)):
        if number:
            yield StyledLine(())
        for column, name in enumerate(_strong(table.head)):
            value = row[column] if column < len(row) else ()
            yield StyledLine((*name, ("", ": "), *value), rest=(("", "  "),))


def _blanks(room: int, side: Side) -> tuple[int, int]:
    room = max(room, 0)
    before = {"left": 0, "right": room, "center": room // 2}[side]
    return before, room - before


def _strong(head: Sequence[Fragments]) -> list[Fragments]:
    return [tuple((f"{style} class:strong", text) for style, text in cell) for cell in head]


def _trimmed(body: list[tuple[str, str]]) -> Fragments:
    while body and not body[-1][1].strip():
        body.pop()
    return tuple(one for one in body if one[1])
