"""Workbooks of Excel 2003 in XML, which reporting tools write with the name `.xls`."""

from collections.abc import Iterator
from typing import BinaryIO
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.extraction import ExtractedDocument, clean
from internal.documents.number_formats import format_number
from internal.documents.package import local_attribute, local_name
from internal.documents.sheets import CellBudget, column_letters, csv_rows, sheet_heading

_MAX_COLUMN = 16_384


def read_xml_spreadsheet(file: BinaryIO) -> ExtractedDocument:
    """Return the values of a workbook.

    Raises:
        DocumentUnreadable: it is damaged.
    """
    file.seek(0)
    try:
        sheets = [
            element
            for _, element in iterparse(file, events=("end",))
            if local_name(element) == "Worksheet"
        ]
    except DefusedXmlException as error:
        raise DocumentUnreadable(
            "The Excel file contains XML entities, which are not read."
        ) from error
    except (ParseError, ValueError) as error:
        raise DocumentUnreadable("The Excel file is damaged: it cannot be opened.") from error
    return ExtractedDocument(len(sheets), _text(sheets), "[There are no sheets.]")


def _text(sheets: list[Element]) -> Iterator[str]:
    budget = CellBudget()
    for sheet in sheets:
        visible = (each.text or "" for each in sheet.iter() if local_name(each) == "Visible")
        hidden = next(visible, "") in {"SheetHidden", "SheetVeryHidden"}
        yield sheet_heading(local_attribute(sheet, "Name"), is_hidden=hidden)
        comments: list[str] = []
        yield from csv_rows(_rows(sheet, comments), budget)
        yield from comments
        yield "\n"
        if budget.is_spent:
            yield budget.note()
            return


def _rows(sheet: Element, comments: list[str]) -> Iterator[tuple[int, list[str]]]:
    number = 0
    for row in sheet.iterfind("{*}Table/{*}Row"):
        number = _place(row, number + 1)
        cells: list[str] = []
        for cell in row.iterfind("{*}Cell"):
            column = min(_place(cell, len(cells) + 1), _MAX_COLUMN)
            cells.extend([""] * (column - len(cells)))
            cells[column - 1] = _shown(cell)
            across = local_attribute(cell, "MergeAcross")
            cells.extend([""] * (min(int(across), _MAX_COLUMN) if across.isdigit() else 0))
            for comment in cell.iterfind("{*}Comment"):
                author = clean(local_attribute(comment, "Author"))
                by = f" by {author}" if author else ""
                text = " ".join(clean("".join(comment.itertext())).split())
                comments.append(f"Comment at {column_letters(column)}{number}{by}: {text}\n")
        yield number, cells


def _place(element: Element, default: int) -> int:
    index = local_attribute(element, "Index")
    return int(index) if index.isdigit() and int(index) else default


def _shown(cell: Element) -> str:
    data = cell.find("{*}Data")
    if data is None:
        return local_attribute(cell, "Formula")
    text = "".join(data.itertext())
    match local_attribute(data, "Type"):
        case "Number":
            return format_number(text, "General")
        case "DateTime":
            return text.partition(".")[0].replace("T", " ").removesuffix(" 00:00:00")
        case "Boolean":
            return "TRUE" if text.strip() == "1" else "FALSE"
        case _:
            return text
