"""PowerPoint: the text, tables and notes of each slide."""

from collections.abc import Iterator
from typing import BinaryIO
from xml.etree.ElementTree import Element

from internal.documents.extraction import ExtractedDocument, clean, table_row, table_rule
from internal.documents.package import (
    PackageReader,
    local_attribute,
    local_name,
    open_package,
    relationship_id,
)

_DECORATION = frozenset({"dt", "ftr", "hdr", "sldImg", "sldNum"})


def read_pptx(file: BinaryIO) -> ExtractedDocument:
    """Return the text of a presentation, a piece for each slide.

    Raises:
        DocumentUnreadable: it is encrypted or damaged.
    """
    package = PackageReader(open_package(file, "PowerPoint"), "PowerPoint")
    slides = _slide_parts(package)
    return ExtractedDocument(len(slides), _slides(package, slides), "[There are no slides.]")


def _slide_parts(package: PackageReader) -> list[str]:
    main = package.main_part("ppt/presentation.xml")
    targets = package.relationships(main)
    ids = (relationship_id(each) for each in package.tree(main).iterfind("{*}sldIdLst/{*}sldId"))
    return [targets[each][1] for each in ids if each in targets]


def _slides(package: PackageReader, slides: list[str]) -> Iterator[str]:
    for number, part in enumerate(slides, start=1):
        text = "\n".join(_blocks(package.tree(part)))
        for kind, target in package.relationships(part).values():
            if kind == "notesSlide" and package.has(target):
                notes = "\n".join(_blocks(package.tree(target)))
                text += f"\n\nNotes: {notes}" if notes else ""
        yield f"## Slide {number}\n\n{text.strip()}\n\n"


def _blocks(element: Element) -> Iterator[str]:
    """Yield the paragraphs and table rows of a slide in their order in the file."""
    match local_name(element):
        case "sp" if _is_decoration(element):
            return
        case "Fallback":
            return
        case "txBody":
            yield from (text for each in element if (text := _paragraph(each)))
        case "tbl":
            yield from _table(element)
        case _:
            for child in element:
                yield from _blocks(child)


def _is_decoration(shape: Element) -> bool:
    return any(
        local_attribute(each, "type") in _DECORATION
        for each in shape.iterfind("{*}nvSpPr/{*}nvPr/{*}ph")
    )


def _paragraph(element: Element) -> str:
    if local_name(element) != "p":
        return ""
    return clean("".join(_texts(element))).strip()


def _texts(paragraph: Element) -> Iterator[str]:
    for each in paragraph.iter():
        match local_name(each):
            case "t":
                yield each.text or ""
            case "br":
                yield "\n"
            case "tab":
                yield "\t"
            case _:
                pass


def _table(table: Element) -> Iterator[str]:
    for number, row in enumerate(table.iterfind("{*}tr")):
        cells = [
            " ".join(_paragraph(each) for each in cell.iterfind("{*}txBody/{*}p"))
            for cell in row.iterfind("{*}tc")
        ]
        yield table_row(cells)
        if not number:
            yield table_rule(len(cells))
