"""Word: paragraphs, headings, lists, tables and notes."""

import re
from collections.abc import Iterator
from typing import BinaryIO
from xml.etree.ElementTree import Element

from internal.documents.extraction import ExtractedDocument, clean, table_row, table_rule
from internal.documents.package import PackageReader, local_attribute, local_name, open_package

_SKIPPED = frozenset({"Fallback", "moveFrom", "pPr", "rPr", "sectPr", "tblPr", "tcPr", "trPr"})
_HEADING_STYLE = re.compile(r"(?:heading )?([1-9])", re.IGNORECASE)
_MAX_HEADING = 6
_BODY_DEPTH = 2
_NOTES = ("footnotes", "endnotes")


def read_docx(file: BinaryIO) -> ExtractedDocument:
    """Return the text of a Word document as Markdown. Deleted text is left out.

    Raises:
        DocumentUnreadable: it is encrypted or damaged.
    """
    package = PackageReader(open_package(file, "Word"), "Word")
    main = package.main_part("word/document.xml")
    return ExtractedDocument(1, _text(package, main), "[The document has no text.]")


def _text(package: PackageReader, main: str) -> Iterator[str]:
    parts = dict(package.relationships(main).values())
    levels = _heading_levels(package, parts.get("styles", ""))
    for element in _body_elements(package, main):
        yield from _blocks(element, levels)
    for kind in _NOTES:
        if package.has(parts.get(kind, "")):
            yield from _notes(package.tree(parts[kind]))


def _body_elements(package: PackageReader, main: str) -> Iterator[Element]:
    """Yield the elements of the body one by one; each is removed after it was used."""
    path: list[Element] = []
    for event, element in package.events(main):
        if event == "start":
            path.append(element)
            continue
        path.pop()
        if len(path) == _BODY_DEPTH and local_name(path[1]) == "body":
            yield element
            path[1].clear()


def _heading_levels(package: PackageReader, styles: str) -> dict[str, int]:
    """Return the levels of the styles that are headings, whatever the language of their ids."""
    if not package.has(styles):
        return {}
    levels = {}
    for style in package.tree(styles):
        for each in style:
            matched = _HEADING_STYLE.fullmatch(local_attribute(each, "val"))
            if local_name(each) == "name" and matched:
                levels[local_attribute(style, "styleId")] = min(int(matched[1]), _MAX_HEADING)
    return levels


def _blocks(element: Element, levels: dict[str, int]) -> Iterator[str]:
    match local_name(element):
        case "p":
            if text := _paragraph(element, levels):
                yield f"{text}\n\n"
        case "tbl":
            yield from _table(element)
        case name:
            for child in () if name in _SKIPPED else element:
                yield from _blocks(child, levels)


def _paragraph(element: Element, levels: dict[str, int]) -> str:
    text = _run_text(element).strip()
    if not text:
        return ""
    for each in element.findall("./{*}pPr/*"):
        match local_name(each):
            case "pStyle" if level := levels.get(local_attribute(each, "val")):
                return f"{'#' * level} {text}"
            case "numPr":
                depth = next((local_attribute(e, "val") for e in each.findall("{*}ilvl")), "0")
                return f"{'  ' * (int(depth) if depth in _LIST_DEPTHS else 0)}- {text}"
            case _:
                pass
    return text


_LIST_DEPTHS = frozenset("012345678")


def _run_text(element: Element) -> str:
    return clean("".join(_runs(element)))


def _runs(element: Element) -> Iterator[str]:
    for child in element:
        match local_name(child):
            case "t":
                yield child.text or ""
            case "tab":
                yield "\t"
            case "br" | "cr":
                yield "\n"
            case "noBreakHyphen":
                yield "-"
            case "footnoteReference" | "endnoteReference":
                yield f"[^{local_attribute(child, 'id')}]"
            case "p":  # of a text box
                yield from _runs(child)
                yield "\n"
            case name:
                yield from () if name in _SKIPPED else _runs(child)


def _table(table: Element) -> Iterator[str]:
    for number, row in enumerate(table.iterfind("{*}tr")):
        cells = [_cell(cell) for cell in row.iterfind("{*}tc")]
        yield table_row(cells) + "\n"
        if not number:
            yield table_rule(len(cells)) + "\n"
    yield "\n"


def _cell(cell: Element) -> str:
    return " ".join(
        _run_text(paragraph) for paragraph in cell.iter() if local_name(paragraph) == "p"
    )


def _notes(notes: Element) -> Iterator[str]:
    for note in notes:
        text = " ".join(_run_text(each) for each in note if local_name(each) == "p").strip()
        if text:
            yield f"[^{local_attribute(note, 'id')}]: {text}\n"
