"""OpenDocument, as LibreOffice and WPS write it: text, spreadsheets, presentations."""

import re
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO
from xml.etree.ElementTree import Element

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.extraction import ExtractedDocument, clean, table_row, table_rule
from internal.documents.number_formats import format_number
from internal.documents.package import PackageReader, local_attribute, local_name, open_package
from internal.documents.sheets import (
    CellBudget,
    column_letters,
    csv_rows,
    joined_runs,
    listing,
    range_name,
    sheet_heading,
)

_MAX_REPEATED = 1_000
_MAX_HEADING = 6
_DURATION = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,]\d+)?S)?")
_SKIPPED = frozenset(
    {
        *("annotation", "tracked-changes", "forms", "sequence-decls", "annotation-end"),
        *("variable-decls", "user-field-decls", "notes", "desc", "title"),
    }
)


def read_odt(file: BinaryIO) -> ExtractedDocument:
    """Return the text of a document as Markdown.

    Raises:
        DocumentUnreadable: it is encrypted or damaged.
    """
    package, body = _opened(file, "text")
    return ExtractedDocument(1, _written(package, body), "[The document has no text.]")


def read_odp(file: BinaryIO) -> ExtractedDocument:
    """Return the text of a presentation, a piece for each slide.

    Raises:
        DocumentUnreadable: it is encrypted or damaged.
    """
    _, body = _opened(file, "presentation")
    pages = [each for each in body if local_name(each) == "page"]
    return ExtractedDocument(len(pages), _slides(pages), "[There are no slides.]")


def read_ods(file: BinaryIO) -> ExtractedDocument:
    """Return the values of a workbook.

    Raises:
        DocumentUnreadable: it is encrypted or damaged.
    """
    package, body = _opened(file, "spreadsheet")
    hidden = _hidden_styles(package.tree("content.xml"))
    tables = [each for each in body if local_name(each) == "table"]
    return ExtractedDocument(len(tables), _sheets(tables, hidden), "[There are no sheets.]")


def _opened(file: BinaryIO, kind: str) -> tuple[PackageReader, Element]:
    package = PackageReader(open_package(file, "OpenDocument"), "OpenDocument")
    manifest = package.optional_tree("META-INF/manifest.xml")
    if manifest is not None and any(local_name(e) == "encryption-data" for e in manifest.iter()):
        raise DocumentUnreadable("The OpenDocument file is encrypted.")
    body = package.tree("content.xml").find(f"{{*}}body/{{*}}{kind}")
    if body is None:
        raise package.damaged("content.xml")
    return package, body


def _written(package: PackageReader, body: Element) -> Iterator[str]:
    styles = package.optional_tree("styles.xml")
    for kind in ("header", "footer"):
        found = (e for e in (() if styles is None else styles.iter()) if local_name(e) == kind)
        texts = dict.fromkeys("".join(_blocks(e)).strip().replace("\n\n", "\n") for e in found)
        yield from (f"{kind.capitalize()}: {text}\n\n" for text in texts if text)
    for each in body:
        yield from _blocks(each)
    yield from (f"{line}\n" for line in _notes(body))
    yield package.note()


def _blocks(element: Element, level: int = 0) -> Iterator[str]:
    name = local_name(element)
    match name:
        case "h":
            depth = local_attribute(element, "outline-level")
            marks = "#" * min(int(depth) if depth.isdigit() else 1, _MAX_HEADING)
            text = _text(element)
            yield f"{marks} {text}\n\n" if text else ""
        case "p":
            text = _text(element)
            yield f"{text}\n\n" if text else ""
            for box in _boxes(element):
                inner = "".join(chain.from_iterable(map(_blocks, box))).strip()
                yield f"Text box: {inner}\n\n" if inner else ""
        case "list":
            yield from _list(element, level)
        case "table":
            yield from _table(element)
        case _:
            for child in () if name in _SKIPPED else element:
                yield from _blocks(child, level)


def _list(element: Element, level: int) -> Iterator[str]:
    for item in element:
        blocks = [text for child in item for text in _blocks(child, level + 1) if text]
        is_item = local_name(item) == "list-item"
        for number, text in enumerate(blocks):
            is_first = is_item and number == 0 and not text.lstrip().startswith("- ")
            yield f"{'  ' * level}- {text}" if is_first else text


def _table(element: Element) -> Iterator[str]:
    rows = [
        [
            " ".join("".join(chain.from_iterable(map(_blocks, cell))).split())
            for cell in row
            if local_name(cell) in {"table-cell", "covered-table-cell"}
        ]
        for row in element.iter()
        if local_name(row) == "table-row"
    ]
    width = max(map(len, rows), default=0)
    for number, cells in enumerate(rows):
        yield table_row(cells + [""] * (width - len(cells))) + "\n"
        if not number:
            yield table_rule(width) + "\n"
    yield "\n"


def _text(element: Element) -> str:
    return clean("".join(_runs(element))).strip()


def _runs(element: Element) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        match local_name(child):
            case "s":
                count = local_attribute(child, "c")
                yield " " * (int(count) if count.isdigit() else 1)
            case "tab":
                yield "\t"
            case "line-break":
                yield "\n"
            case "note":
                yield f"[^{_citation(child)}]"
            case "annotation":
                yield f" {_annotation(child)}"
            case "a":
                address, text = local_attribute(child, "href"), "".join(_runs(child))
                yield text if address in {"", text} else f"[{text}]({address})"
            case "image":
                yield "[Picture]"
            case name:
                yield from () if name in _SKIPPED | {"text-box"} else _runs(child)
        yield child.tail or ""


def _boxes(element: Element) -> Iterator[Element]:
    return (each for each in element.iter() if local_name(each) == "text-box")


def _citation(note: Element) -> str:
    found = (each.text or "" for each in note if local_name(each) == "note-citation")
    return next(found, "")


def _notes(body: Element) -> Iterator[str]:
    for note in body.iter():
        if local_name(note) == "note":
            inner = (each for each in note if local_name(each) == "note-body")
            text = " ".join("".join(chain.from_iterable(map(_blocks, inner))).split())
            yield f"[^{_citation(note)}]: {text}"


def _annotation(element: Element) -> str:
    author = next((e.text or "" for e in element if local_name(e) == "creator"), "")
    text = " ".join(_text(e) for e in element.iter() if local_name(e) == "p")
    return f"[Comment{f' by {clean(author)}' if author else ''}: {text}]"


def _slides(pages: list[Element]) -> Iterator[str]:
    for number, page in enumerate(pages, start=1):
        notes = [each for each in page if local_name(each) == "notes"]
        shapes = [each for each in page if local_name(each) != "notes"]
        text = "".join(chain.from_iterable(map(_shape, shapes))).strip()
        said = "".join(chain.from_iterable(_blocks(e) for note in notes for e in note)).strip()
        text += f"\n\nNotes: {said}" if said else ""
        yield f"## Slide {number}\n\n{text}\n\n"


def _shape(element: Element) -> Iterator[str]:
    if local_name(element) == "annotation":
        yield f"{_annotation(element)}\n"
        return
    descriptions = (e for e in element.iter() if local_name(e) in {"desc", "title"})
    described = " ".join(_text(each) for each in descriptions)
    has_picture = any(local_name(each) == "image" for each in element.iter())
    if has_picture or described:
        kind = "Picture" if has_picture else "Description"
        yield f"[{kind}: {described}]\n" if described else f"[{kind}]\n"
    yield from (text.replace("\n\n", "\n") for text in _blocks(element))


def _hidden_styles(root: Element) -> set[str]:
    """Return the names of the table styles that hide a sheet."""
    return {
        local_attribute(style, "name")
        for style in root.iterfind("{*}automatic-styles/{*}style")
        for each in style
        if local_name(each) == "table-properties" and local_attribute(each, "display") == "false"
    }


def _sheets(tables: list[Element], hidden: set[str]) -> Iterator[str]:
    budget = CellBudget()
    for table in tables:
        is_hidden = local_attribute(table, "style-name") in hidden
        yield sheet_heading(local_attribute(table, "name"), is_hidden=is_hidden)
        sheet = _SheetRows()
        yield from csv_rows(sheet.rows(table), budget)
        yield listing("Merged cells", sheet.merged)
        yield listing("Hidden rows", joined_runs(sheet.hidden))
        yield from sheet.comments
        yield "\n"
        if budget.is_spent:
            yield budget.note()
            return


class _SheetRows:
    """The rows of a sheet, with its comments, merged cells and hidden rows.

    Attributes:
        merged: the ranges of merged cells.
        hidden: the numbers of hidden rows.
        comments: a line for each comment.
    """

    def __init__(self) -> None:
        self.merged: list[str] = []
        self.hidden: list[int] = []
        self.comments: list[str] = []

    def rows(self, table: Element) -> Iterator[tuple[int, list[str]]]:
        """Yield each row with its number."""
        number = 1
        for row in table.iter():
            if local_name(row) != "table-row":
                continue
            cells = self._cells(row, number)
            repeated = _count(row, "number-rows-repeated")
            if local_attribute(row, "visibility") in {"collapse", "filter"}:
                self.hidden += range(number, number + min(repeated, _MAX_REPEATED))
            for place in range(min(repeated, _MAX_REPEATED) if any(cells) else 0):
                yield number + place, cells
            number += repeated

    def _cells(self, row: Element, number: int) -> list[str]:
        cells: list[str] = []
        for cell in row:
            if local_name(cell) not in {"table-cell", "covered-table-cell"}:
                continue
            column = len(cells) + 1
            value = _value(cell)
            repeated = _count(cell, "number-columns-repeated")
            cells += [value] * (min(repeated, _MAX_REPEATED) if value else repeated)
            across, down = (_count(cell, f"number-{each}-spanned") for each in ("columns", "rows"))
            if across > 1 or down > 1:
                last = number + down - 1, column + across - 1
                self.merged.append(range_name(number, column, *last))
            for each in cell:
                if local_name(each) == "annotation":
                    said = _annotation(each).strip("[]").removeprefix("Comment")
                    name = f"{column_letters(column)}{number}"
                    self.comments.append(f"Comment at {name}{said}\n")
        while cells and not cells[-1]:
            cells.pop()
        return cells


def _count(element: Element, name: str) -> int:
    value = local_attribute(element, name)
    return int(value) if value.isdigit() else 1


def _value(cell: Element) -> str:
    shown = "\n".join(_text(each) for each in cell if local_name(each) in {"p", "h"})
    kind, value = local_attribute(cell, "value-type"), local_attribute(cell, "value")
    match kind:
        case "float":
            has_unit = any(each.isalpha() for each in shown)
            return shown if has_unit else format_number(value, "General")
        case "percentage":
            return format_number(value, "0%")
        case "date":
            date = local_attribute(cell, "date-value")
            return date.removesuffix("T00:00:00").replace("T", " ")
        case "boolean":
            return local_attribute(cell, "boolean-value").upper()
        case _:
            return shown or _time(local_attribute(cell, "time-value"))


def _time(duration: str) -> str:
    found = _DURATION.fullmatch(duration)
    if not found:
        return ""
    hours, minutes, seconds = (int(each or 0) for each in found.groups())
    return f"{hours}:{minutes:02}:{seconds:02}"
