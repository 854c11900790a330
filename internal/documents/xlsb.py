"""Binary workbooks of Excel (.xlsb)."""

import datetime as dt
from collections.abc import Iterator
from typing import BinaryIO

from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook, SheetVisibleEnum

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.extraction import ExtractedDocument
from internal.documents.number_formats import format_number
from internal.documents.sheets import CellBudget, csv_rows, listing, range_name, sheet_heading

_Value = object


def read_xlsb(file: BinaryIO) -> ExtractedDocument:
    """Return the values of a binary workbook. Formats other than of dates are not known.

    Raises:
        DocumentUnreadable: it is damaged.
    """
    file.seek(0)
    try:
        workbook = CalamineWorkbook.from_filelike(file)
    except CalamineError as error:
        raise DocumentUnreadable("The Excel file is damaged: it cannot be opened.") from error
    sheets = workbook.sheets_metadata
    return ExtractedDocument(len(sheets), _sheets(workbook), "[There are no sheets.]")


def _sheets(workbook: CalamineWorkbook) -> Iterator[str]:
    budget = CellBudget()
    for number, about in enumerate(workbook.sheets_metadata):
        yield sheet_heading(about.name, is_hidden=about.visible != SheetVisibleEnum.Visible)
        try:
            sheet = workbook.get_sheet_by_index(number)
        except CalamineError:
            yield "[This sheet was not understood.]\n\n"
            continue
        yield from csv_rows(_rows(sheet), budget)
        merged = [
            range_name(first[0] + 1, first[1] + 1, last[0] + 1, last[1] + 1)
            for first, last in sheet.merged_cell_ranges or ()
        ]
        yield listing("Merged cells", merged)
        yield "\n"
        if budget.is_spent:
            yield budget.note()
            return
    yield "[Comments and formats of percentages in this binary workbook were left out.]\n"


def _rows(sheet: CalamineSheet) -> Iterator[tuple[int, list[str]]]:
    first_row, first_column = sheet.start or (0, 0)
    before = [""] * first_column
    for number, row in enumerate(sheet.to_python(skip_empty_area=True), start=first_row + 1):
        yield number, [*before, *map(_shown, row)]


def _shown(value: _Value) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | float():
            return format_number(repr(value), "General")
        case dt.datetime():
            return value.isoformat(" ", "seconds").removesuffix(" 00:00:00")
        case dt.date() | dt.time():
            return value.isoformat()
        case _:
            return str(value)
