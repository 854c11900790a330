"""Excel: the rows of each sheet as CSV, and the other visible data of the sheet.

Only the sheets, their texts and the formats of numbers are read. Irregularities elsewhere, such as
in a style or a property, are ignored.
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO, NamedTuple
from xml.etree.ElementTree import Element

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.drawings import drawn, paragraph_text, picture_text
from internal.documents.extraction import ExtractedDocument, clean
from internal.documents.number_formats import BUILT_IN, format_number
from internal.documents.package import (
    PackageReader,
    local_attribute,
    local_name,
    open_package,
    relationship_id,
)
from internal.documents.sheets import (
    CellBudget,
    column_letters,
    csv_rows,
    joined_runs,
    listing,
    sheet_heading,
)

_REFERENCE = re.compile(r"\$?([A-Za-z]{1,3})\$?([0-9]{1,7})")
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
_PRINT_CODES = re.compile(r'&(?:[LCR]|"[^"]*"|[0-9]+|[BIUESXYK][0-9A-F]{0,6}|G)')
_HEADERS = {"oddHeader": "Header", "evenHeader": "Header", "firstHeader": "Header"}
_HEADERS |= {"oddFooter": "Footer", "evenFooter": "Footer", "firstFooter": "Footer"}
_MAX_COLUMN = 16_384
_GENERAL = "General"


class _Sheet(NamedTuple):
    title: str
    part: str
    is_hidden: bool


def read_xlsx(file: BinaryIO) -> ExtractedDocument:
    """Return the values of a workbook; a formula without a stored value is shown itself.

    Raises:
        DocumentUnreadable: it is encrypted, or damaged where its sheets are listed.
    """
    package = PackageReader(open_package(file, "Excel"), "Excel")
    workbook = _Workbook(package)
    return ExtractedDocument(len(workbook.sheets), workbook.text(), "[There are no sheets.]")


class _Workbook:
    """A workbook with the texts and formats that its cells refer to."""

    def __init__(self, package: PackageReader) -> None:
        self._package = package
        main = package.main_part("xl/workbook.xml")
        root = package.tree(main)
        targets = package.relationships(main)
        self.sheets = [
            _Sheet(
                local_attribute(each, "name"),
                found.target if (found := targets.get(relationship_id(each))) else "",
                local_attribute(each, "state").lower() in {"hidden", "veryhidden"},
            )
            for each in root.iterfind("{*}sheets/{*}sheet")
        ] or [
            _Sheet(name.rpartition("/")[2], name, is_hidden=False)
            for name in package.names("xl/worksheets/sheet")
        ]
        self._since_1904 = any(
            local_attribute(each, "date1904") in {"1", "true"}
            for each in root.iter()
            if local_name(each) == "workbookPr"
        )
        self._texts = _shared_texts(package, _first(package, main, "sharedStrings"))
        self._formats = _cell_formats(package, _first(package, main, "styles"))
        self._people = _people(package, _first(package, main, "person"))
        self._budget = CellBudget()

    def text(self) -> Iterator[str]:
        """Yield the sheets in their order; an unreadable one becomes a note."""
        for sheet in self.sheets:
            yield sheet_heading(sheet.title, is_hidden=sheet.is_hidden)
            try:
                yield from self._sheet(sheet.part)
            except DocumentUnreadable as error:
                yield f"[From here on this sheet was not understood. {error}]\n"
            yield "\n"
            if self._budget.is_spent:
                yield self._budget.note()
                break
        yield self._package.note()

    def _sheet(self, part: str) -> Iterator[str]:
        if not self._package.has(part):
            yield "[This sheet is not in the file.]\n"
            return
        page = _Page(self._package, part, self._people)
        has_cells = "/chartsheets/" not in part.lower()
        if has_cells:
            yield from csv_rows(self._rows(page), self._budget)
        else:
            list(self._rows(page))
        yield from page.text()

    def _rows(self, page: "_Page") -> Iterator[tuple[int, list[str]]]:
        """Yield the rows of a sheet with their numbers; the rest of it is kept in `page`."""
        last = 0
        path: list[Element] = []
        for event, element in self._package.events(page.part):
            if event == "start":
                path.append(element)
                continue
            path.pop()
            if local_name(element) == "row":
                number = local_attribute(element, "r")
                last = int(number) if number.isdigit() else last + 1
                if local_attribute(element, "hidden") in {"1", "true"}:
                    page.hidden_rows.append(last)
                cells = self._cells(element)
                path[-1].clear()
                yield last, cells
            elif len(path) == 1:
                page.add(element)

    def _cells(self, row: Element) -> list[str]:
        cells: list[str] = []
        for cell in row:
            if local_name(cell) != "c":
                continue
            found = _REFERENCE.fullmatch(local_attribute(cell, "r"))
            column = _column_number(found[1]) if found else len(cells) + 1
            if column > _MAX_COLUMN:
                continue
            cells.extend([""] * (column - len(cells)))
            cells[column - 1] = self._shown(cell)
        return cells

    def _shown(self, cell: Element) -> str:
        """Return the displayed text of a cell."""
        parts = {local_name(each): each for each in cell}
        kind, value = cell.get("t", "n"), parts.get("v")
        text = "" if value is None else value.text or ""
        if "is" in parts:
            return _text_of(parts["is"])
        if not text:
            return _formula(parts.get("f")) if kind != "str" else ""
        match kind:
            case "s":
                text = self._shared_text(text.strip())
            case "b":
                text = "FALSE" if text.strip() in {"0", "false"} else "TRUE"
            case "n":
                text = self._number(text, cell.get("s", ""))
            case "d":
                text = text.removesuffix("T00:00:00").replace("T", " ")
            case _:
                text = _unescaped(text)
        return text

    def _shared_text(self, place: str) -> str:
        known = place.isdigit() and int(place) < len(self._texts)
        return self._texts[int(place)] if known else "[a text that is not in the file]"

    def _number(self, text: str, style: str) -> str:
        number = int(style) if style.isdigit() else 0
        code = self._formats[number] if number < len(self._formats) else _GENERAL
        return format_number(text, code, since_1904=self._since_1904)


class _Page:
    """Data of a sheet besides its rows."""

    def __init__(self, package: PackageReader, part: str, people: dict[str, str]) -> None:
        self.part = part
        self.hidden_rows: list[int] = []
        self._package = package
        self._people = people
        self._hidden_columns: list[str] = []
        self._merged: list[str] = []
        self._links: list[tuple[str, str]] = []
        self._printed: list[str] = []
        self._has_drawing = False

    def add(self, element: Element) -> None:
        """Store the displayed data of an element that is not a row."""
        match local_name(element):
            case "cols":
                self._hidden_columns += _hidden_columns(element)
            case "mergeCells":
                self._merged += [local_attribute(each, "ref") for each in element]
            case "hyperlinks":
                self._links += [
                    (local_attribute(each, "ref"), relationship_id(each)) for each in element
                ]
            case "headerFooter":
                self._printed += [
                    f"{_HEADERS[local_name(each)]}: {text}\n"
                    for each in element
                    if local_name(each) in _HEADERS and (text := _printed(each.text or ""))
                ]
            case "drawing":
                self._has_drawing = True
            case _:
                pass

    def text(self) -> Iterator[str]:
        """Yield a line for each kind that the sheet has."""
        yield listing("Merged cells", self._merged)
        yield listing("Hidden rows", joined_runs(self.hidden_rows))
        yield listing("Hidden columns", self._hidden_columns)
        addresses = self._package.addresses(self.part) if self._links else {}
        for cell, target in self._links:
            if target in addresses:
                yield f"Link at {cell}: {clean(addresses[target])}\n"
        yield from _comments(self._package, self.part, self._people)
        if self._has_drawing:
            for drawing in self._package.related(self.part, "drawing"):
                yield from _drawings(self._package, drawing)
        yield from dict.fromkeys(self._printed)


def _first(package: PackageReader, part: str, kind: str) -> str:
    return next(iter(package.related(part, kind)), "")


def _shared_texts(package: PackageReader, part: str) -> list[str]:
    """Return the texts that cells refer to, up to where they can be read."""
    texts: list[str] = []
    try:
        texts.extend(_texts_of_part(package, part) if part else ())
    except DocumentUnreadable:
        package.not_understood.append(part)
    return texts


def _texts_of_part(package: PackageReader, part: str) -> Iterator[str]:
    path: list[Element] = []
    for event, element in package.events(part):
        if event == "start":
            path.append(element)
            continue
        path.pop()
        if len(path) == 1:
            yield _text_of(element)
            path[0].clear()


def _text_of(item: Element) -> str:
    """Return a text with runs, without how it is pronounced."""
    runs = (
        (each,) if local_name(each) == "t" else each.iterfind("{*}t")
        for each in item
        if local_name(each) in {"r", "t"}
    )
    return _unescaped("".join(each.text or "" for each in chain.from_iterable(runs)))


def _unescaped(text: str) -> str:
    if "_x" in text:
        text = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    return text.encode("utf-8", "replace").decode()


def _formula(element: Element | None) -> str:
    if element is None:
        return ""
    return f"={element.text}" if element.text else "[a formula without a stored value]"


def _cell_formats(package: PackageReader, part: str) -> list[str]:
    """Return the number format of each cell style."""
    root = package.optional_tree(part) if part else None
    if root is None:
        return []
    own = {
        local_attribute(each, "numFmtId"): local_attribute(each, "formatCode")
        for each in root.iterfind("{*}numFmts/{*}numFmt")
    }
    formats = []
    for each in root.iterfind("{*}cellXfs/{*}xf"):
        number = local_attribute(each, "numFmtId")
        built_in = BUILT_IN.get(int(number), _GENERAL) if number.isdigit() else _GENERAL
        formats.append(own.get(number) or built_in)
    return formats


def _people(package: PackageReader, part: str) -> dict[str, str]:
    root = package.optional_tree(part) if part else None
    return {local_attribute(e, "id"): local_attribute(e, "displayName") for e in root or ()}


def _comments(package: PackageReader, part: str, people: dict[str, str]) -> Iterator[str]:
    """Yield the comments of a sheet; one of the newer form is not shown a second time."""
    threaded = set()
    for name in package.related(part, "threadedComment"):
        for each in package.optional_tree(name) or ():
            cell = local_attribute(each, "ref")
            threaded.add(cell)
            text = " ".join((t.text or "").strip() for t in each.iterfind("{*}text"))
            yield _comment(cell, people.get(local_attribute(each, "personId"), ""), text)
    for name in package.related(part, "comments"):
        root = package.optional_tree(name)
        if root is None:
            continue
        authors = [each.text or "" for each in root.iterfind("{*}authors/{*}author")]
        for each in root.iterfind("{*}commentList/{*}comment"):
            cell, author = local_attribute(each, "ref"), local_attribute(each, "authorId")
            known = author.isdigit() and int(author) < len(authors)
            if cell not in threaded:
                text = " ".join(_text_of(t) for t in each.iterfind("{*}text"))
                yield _comment(cell, authors[int(author)] if known else "", text)


def _comment(cell: str, author: str, text: str) -> str:
    by = f" by {clean(author)}" if author.strip() else ""
    return f"Comment at {cell}{by}: {' '.join(clean(text).split())}\n"


def _drawings(package: PackageReader, part: str) -> Iterator[str]:
    """Yield the text boxes, pictures, charts and diagrams on a sheet."""
    root = package.optional_tree(part)
    for element in () if root is None else root.iter():
        match local_name(element):
            case "txBody":
                lines = [paragraph_text(each) for each in element if local_name(each) == "p"]
                if text := "\n".join(filter(None, lines)):
                    yield f"Text box: {text}\n"
            case "pic":
                yield f"{picture_text(element.find('{*}nvPicPr/{*}cNvPr'))}\n"
            case _:
                yield from (f"{text}\n" for text in drawn(package, part, element))


def _hidden_columns(columns: Element) -> list[str]:
    hidden = []
    for each in columns:
        first, last = local_attribute(each, "min"), local_attribute(each, "max")
        if local_attribute(each, "hidden") in {"1", "true"} and first.isdigit() and last.isdigit():
            start, end = column_letters(int(first)), column_letters(min(int(last), _MAX_COLUMN))
            hidden.append(start if start == end else f"{start}-{end}")
    return hidden


def _column_number(letters: str) -> int:
    number = 0
    for each in letters.upper():
        number = number * 26 + ord(each) - ord("A") + 1
    return number


def _printed(text: str) -> str:
    """Return a page header without its codes for fonts and positions."""
    text = text.replace("&&", "\0").replace("&P", "(page)").replace("&N", "(pages)")
    text = re.sub("&[DTFAZ]", "", text)
    return " ".join(clean(_PRINT_CODES.sub(" ", text)).replace("\0", "&").split())
