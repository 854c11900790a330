"""Excel files from before 2007 (.xls)."""

import io
import struct
import warnings
from collections.abc import Iterator
from typing import Any, BinaryIO

import xlrd  # type: ignore[import-untyped]  # it has no type hints
from xlrd.compdoc import CompDocError  # type: ignore[import-untyped]  # as above

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.extraction import ExtractedDocument, clean
from internal.documents.number_formats import format_number
from internal.documents.sheets import (
    CellBudget,
    column_letters,
    csv_rows,
    joined_runs,
    listing,
    range_name,
    sheet_heading,
)

_ERRORS = xlrd.error_text_from_code
_ODD_STYLES = (
    *(AssertionError, IndexError, KeyError, NotImplementedError, TypeError, ValueError),
    struct.error,
)
_DAMAGE = (xlrd.XLRDError, CompDocError, *_ODD_STYLES)


def read_xls(file: BinaryIO) -> ExtractedDocument:
    """Return the values of a workbook.

    Raises:
        DocumentUnreadable: it is encrypted or damaged.
    """
    file.seek(0)
    content = file.read()
    try:
        workbook = _open(content)
    except _DAMAGE as error:
        if "encrypted" in str(error).lower():
            raise DocumentUnreadable(
                "The Office file is encrypted: it opens with a password only."
            ) from error
        raise DocumentUnreadable("The Excel file is damaged: it cannot be opened.") from error
    return ExtractedDocument(workbook.nsheets, _sheets(workbook), "[There are no sheets.]")


def _open(content: bytes) -> Any:
    log = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return xlrd.open_workbook(file_contents=content, logfile=log, formatting_info=True)
        except _ODD_STYLES:
            # styles that are odd never decide whether the values can be read
            return xlrd.open_workbook(
                file_contents=content, logfile=log, ignore_workbook_corruption=True
            )


def _sheets(workbook: Any) -> Iterator[str]:
    budget = CellBudget()
    for sheet in workbook.sheets():
        yield sheet_heading(sheet.name, is_hidden=sheet.visibility != 0)
        yield from csv_rows(_rows(workbook, sheet), budget)
        yield from _besides(sheet)
        yield "\n"
        if budget.is_spent:
            yield budget.note()
            return


def _rows(workbook: Any, sheet: Any) -> Iterator[tuple[int, list[str]]]:
    for number in range(sheet.nrows):
        cells = sheet.row(number)
        yield number + 1, [_shown(workbook, cell) for cell in cells]


def _shown(workbook: Any, cell: Any) -> str:
    match cell.ctype:
        case xlrd.XL_CELL_TEXT:
            return str(cell.value)
        case xlrd.XL_CELL_NUMBER | xlrd.XL_CELL_DATE:
            code = _format(workbook, cell)
            return format_number(repr(cell.value), code, since_1904=workbook.datemode == 1)
        case xlrd.XL_CELL_BOOLEAN:
            return "TRUE" if cell.value else "FALSE"
        case xlrd.XL_CELL_ERROR:
            return str(_ERRORS.get(cell.value, "#ERROR"))
        case _:
            return ""


def _format(workbook: Any, cell: Any) -> str:
    """Return the number format of a cell; without styles, of a date one with all of it."""
    index = cell.xf_index
    if index is not None and index < len(workbook.xf_list):
        found = workbook.format_map.get(workbook.xf_list[index].format_key)
        if found is not None:
            return str(found.format_str)
    return "yyyy-mm-dd h:mm:ss" if cell.ctype == xlrd.XL_CELL_DATE else "General"


def _besides(sheet: Any) -> Iterator[str]:
    """Yield lines about the data of a sheet besides its rows."""
    merged = [
        range_name(first_row + 1, first_column + 1, last_row, last_column)
        for first_row, last_row, first_column, last_column in sheet.merged_cells
    ]
    yield listing("Merged cells", merged)
    rows = sorted(number + 1 for number, row in sheet.rowinfo_map.items() if row.hidden)
    yield listing("Hidden rows", joined_runs(rows))
    columns = sorted(number + 1 for number, each in sheet.colinfo_map.items() if each.hidden)
    yield listing("Hidden columns", [column_letters(number) for number in columns])
    for link in sheet.hyperlink_list:
        if link.url_or_path:
            address = link.url_or_path
            shown = address.decode("utf-8", "replace") if isinstance(address, bytes) else address
            yield f"Link at {column_letters(link.fcolx + 1)}{link.frowx + 1}: {clean(shown)}\n"
    for (row, column), note in sorted(sheet.cell_note_map.items()):
        by = f" by {clean(note.author)}" if note.author else ""
        text = " ".join(clean(note.text).split())
        yield f"Comment at {column_letters(column + 1)}{row + 1}{by}: {text}\n"
