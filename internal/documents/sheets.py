"""Sheets of a workbook as text: rows as CSV below their columns, and data of the whole sheet."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from internal.documents.extraction import clean

MAX_CELLS = 400_000
"""Maximum number of cells read in a workbook, including empty ones."""
_ROWS_BEFORE_HEADING = 100
_MAX_LETTERS = 100


class CellBudget:
    """Counts the cells of a workbook down."""

    def __init__(self) -> None:
        self._left = MAX_CELLS

    @property
    def is_spent(self) -> bool:
        """Whether no further cell may be read."""
        return self._left < 0

    def take(self, cells: int) -> bool:
        """Count cells; return False when they are too many."""
        self._left -= cells
        return self._left >= 0

    def note(self) -> str:
        """Return the sentence about cells that were not read, "" if all were."""
        if not self.is_spent:
            return ""
        return f"[The workbook has over {MAX_CELLS:,} cells: the rest is missing.]\n"


def sheet_heading(title: str, *, is_hidden: bool) -> str:
    """Return the line above a sheet."""
    return f'## Sheet "{clean(title)}"{" (hidden)" if is_hidden else ""}\n\n'


def csv_rows(rows: Iterable[tuple[int, Sequence[str]]], budget: CellBudget) -> Iterator[str]:
    """Yield rows that have a value, each with its number, below the letters of the columns.

    A line that says so if there is none.
    """
    with_values = _with_values(rows, budget)
    first = list(islice(with_values, _ROWS_BEFORE_HEADING))
    if not first:
        yield "" if budget.is_spent else "[No cell of this sheet has a value.]\n"
        return
    line = io.StringIO()
    write = csv.writer(line, lineterminator="\n").writerow
    width = max(len(values) for _, values in first)
    letters = [column_letters(number) for number in range(1, min(width, _MAX_LETTERS) + 1)]
    write(["", *letters])
    for number, values in chain(first, with_values):
        write([number, *values])
        yield line.getvalue()
        line.seek(0)
        line.truncate()


def _with_values(
    rows: Iterable[tuple[int, Sequence[str]]], budget: CellBudget
) -> Iterator[tuple[int, list[str]]]:
    for number, cells in rows:
        if not budget.take(max(len(cells), 1)):
            return
        values = [clean(cell) for cell in cells]
        while values and not values[-1]:
            values.pop()
        if values:
            yield number, values


def column_letters(number: int) -> str:
    """Return the letters of a column, counted from 1: 28 is AB."""
    letters = ""
    while number > 0:
        number, place = divmod(number - 1, 26)
        letters = chr(ord("A") + place) + letters
    return letters


def range_name(first_row: int, first_column: int, last_row: int, last_column: int) -> str:
    """Return a range such as A1:C2; rows and columns are counted from 1."""
    first = f"{column_letters(first_column)}{first_row}"
    return f"{first}:{column_letters(last_column)}{last_row}"


def joined_runs(numbers: Iterable[int]) -> list[str]:
    """Return ascending numbers with runs joined: 3, 5-7."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return [f"{first}" if first == last else f"{first}-{last}" for first, last in runs]


def listing(label: str, items: Sequence[str]) -> str:
    """Return a line such as `Merged cells: A1:B1, A2:A4`, "" if there are no items."""
    return f"{label}: {', '.join(items)}\n" if items else ""
