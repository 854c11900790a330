"""PowerPoint: the content of each slide, with its notes and comments."""

import re
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO
from xml.etree.ElementTree import Element

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.drawings import drawn, picture_text
from internal.documents.equations import equation_text
from internal.documents.extraction import ExtractedDocument, clean, table_row, table_rule
from internal.documents.package import (
    PackageReader,
    local_attribute,
    local_name,
    open_package,
    relationship_id,
)
from internal.documents.word_numbers import format_count

_NUMBERS = frozenset({"dt", "hdr", "sldImg", "sldNum"})
_FOOTER = "ftr"
_OFF = frozenset({"0", "false"})
_AUTOMATIC = re.compile(r"(alphaLc|alphaUc|arabic|romanLc|romanUc|circleNum|ea\w*)(\w*)")
_FORMS = {"alphaLc": "lowerLetter", "alphaUc": "upperLetter", "romanLc": "lowerRoman"}
_FORMS |= {"romanUc": "upperRoman", "circleNum": "decimalEnclosedCircle"}
_MAX_LEVEL = 8


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
    return [targets[each].target for each in ids if each in targets]


def _slides(package: PackageReader, slides: list[str]) -> Iterator[str]:
    authors = _authors(package)
    repeated: dict[str, None] = {}
    for number, part in enumerate(slides, start=1):
        try:
            root = package.tree(part)
        except DocumentUnreadable as error:
            yield f"## Slide {number}\n\n[This slide was not understood. {error}]\n\n"
            continue
        hidden = " (hidden)" if local_attribute(root, "show") in _OFF else ""
        reader = _SlideReader(package, part)
        text = "\n".join(reader.blocks(root))
        repeated |= dict.fromkeys(reader.footers)
        repeated |= dict.fromkeys(_layout_texts(package, part))
        notes = (_notes(package, name) for name in package.related(part, "notesSlide"))
        text += "".join(f"\n\nNotes: {each}" for each in notes if each)
        comments = "\n".join(_comments(package, part, authors))
        text += f"\n\n{comments}" if comments else ""
        yield f"## Slide {number}{hidden}\n\n{text.strip()}\n\n"
    if repeated:
        yield "## On several slides\n\n" + "\n".join(repeated) + "\n\n"
    if note := package.note():
        yield note


class _SlideReader:
    """Reads the shapes of a slide, of its layout or of its notes.

    Attributes:
        footers: the texts of footers, which slides repeat.
    """

    def __init__(self, package: PackageReader, part: str) -> None:
        self.footers: list[str] = []
        self._package = package
        self._part = part
        self._addresses = package.addresses(part)

    def blocks(self, element: Element) -> Iterator[str]:
        """Yield the paragraphs and table rows of a slide in their order in the file."""
        match local_name(element):
            case "sp" if (kind := placeholder(element)) in _NUMBERS or kind == _FOOTER:
                inner = chain.from_iterable(self.blocks(each) for each in element)
                self.footers += [text for text in inner if text and kind == _FOOTER]
            case "AlternateContent":
                yield from self._alternative(element)
            case "txBody":
                yield from self._paragraphs(element)
            case "tbl":
                yield from self._table(element)
            case "pic":
                yield picture_text(element.find("{*}nvPicPr/{*}cNvPr"))
                yield from self._media(element)
            case "oleObj":
                yield f"[Embedded object: {local_attribute(element, 'progId')}]"
            case "chart" | "relIds":
                yield from drawn(self._package, self._part, element)
            case name:
                yield from self._described(element)
                for child in () if name == "Fallback" else element:
                    yield from self.blocks(child)

    def _alternative(self, element: Element) -> Iterator[str]:
        """Yield the first form that has anything; they all show the same."""
        for form in element:
            if texts := [text for each in form for text in self.blocks(each)]:
                yield from texts
                return

    def _described(self, element: Element) -> Iterator[str]:
        """Yield the description of a shape that has no text."""
        if local_name(element) not in {"sp", "graphicFrame", "grpSp", "cxnSp"}:
            return
        for properties in element.iterfind("*/{*}cNvPr"):
            if description := " ".join(clean(properties.get("descr") or "").split()):
                yield f"[Description: {description}]"

    def _media(self, element: Element) -> Iterator[str]:
        for each in element.iterfind("{*}nvPicPr/{*}nvPr/*"):
            if local_name(each) in {"audioFile", "videoFile", "wavAudioFile", "quickTimeFile"}:
                yield "[Sound or film]"

    def _paragraphs(self, body: Element) -> Iterator[str]:
        counts: dict[int, int] = {}
        for paragraph in body:
            if local_name(paragraph) != "p" or not (text := self._paragraph(paragraph)):
                continue
            properties = paragraph.find("{*}pPr")
            level, label = _automatic_number(properties, counts)
            yield f"{'  ' * level}{label} {text}" if label else text

    def _paragraph(self, element: Element) -> str:
        if local_name(element) != "p":
            return ""
        return clean("".join(self._texts(element))).strip()

    def _texts(self, paragraph: Element) -> Iterator[str]:
        for each in paragraph:
            match local_name(each):
                case "r" | "fld":
                    text = "".join(t.text or "" for t in each if local_name(t) == "t")
                    link = each.find("{*}rPr/{*}hlinkClick")
                    address = "" if link is None else relationship_id(link)
                    address = clean(self._addresses.get(address, "")).strip()
                    shown = address and address != text.strip()
                    yield f"[{text}]({address})" if shown else text
                case "br":
                    yield "\n"
                case "tab":
                    yield "\t"
                case "oMath" | "oMathPara":
                    yield equation_text(each)
                case "m" | "AlternateContent" | "Choice":
                    yield from self._texts(each)
                case _:
                    pass

    def _table(self, table: Element) -> Iterator[str]:
        for number, row in enumerate(table.iterfind("{*}tr")):
            cells = [
                " ".join(filter(None, map(self._paragraph, cell.iterfind("{*}txBody/{*}p"))))
                for cell in row.iterfind("{*}tc")
            ]
            yield table_row(cells)
            if not number:
                yield table_rule(len(cells))


def placeholder(shape: Element) -> str:
    """Return the type of the placeholder that a shape is, "" if it has none."""
    found = shape.iterfind("*/{*}nvPr/{*}ph")
    return next((local_attribute(each, "type") or "obj" for each in found), "")


def _automatic_number(properties: Element | None, counts: dict[int, int]) -> tuple[int, str]:
    """Count a paragraph; return its level and its number, "" if it has none."""
    level = "" if properties is None else local_attribute(properties, "lvl")
    depth = min(int(level), _MAX_LEVEL) if level.isdigit() else 0
    for deeper in [each for each in counts if each > depth]:
        del counts[deeper]
    numbering = None if properties is None else properties.find("{*}buAutoNum")
    if numbering is None:
        counts.pop(depth, None)
        return depth, ""
    start = local_attribute(numbering, "startAt")
    first = int(start) if start.isdigit() else 1
    counts[depth] = counts[depth] + 1 if depth in counts else first
    found = _AUTOMATIC.fullmatch(local_attribute(numbering, "type"))
    kind, ending = (found[1], found[2]) if found else ("arabic", "Period")
    form = "chineseCounting" if kind.startswith("ea") else _FORMS.get(kind, "decimal")
    number = format_count(counts[depth], form)
    if "ParenBoth" in ending:
        return depth, f"({number})"
    return depth, number + {"ParenR": ")", "Period": ".", "": "."}.get(ending, "")


def _layout_texts(package: PackageReader, slide: str) -> Iterator[str]:
    """Yield the texts of the layout and the master of a slide, without placeholders."""
    for layout in package.related(slide, "slideLayout"):
        masters = package.related(layout, "slideMaster")
        for part in (layout, *masters):
            root = package.optional_tree(part)
            reader = _SlideReader(package, part)
            for shape in () if root is None else root.iterfind("{*}cSld/{*}spTree/*"):
                if local_name(shape) == "sp" and not placeholder(shape):
                    yield from reader.blocks(shape)
            if root is not None and local_attribute(root, "showMasterSp") in _OFF:
                break


def _notes(package: PackageReader, part: str) -> str:
    root = package.optional_tree(part)
    return "" if root is None else "\n".join(_SlideReader(package, part).blocks(root))


def _authors(package: PackageReader) -> dict[str, str]:
    """Return the names of the authors of comments, by their ids."""
    main = package.main_part("ppt/presentation.xml")
    parts = [*package.related(main, "commentAuthors"), *package.related(main, "authors")]
    roots = (package.optional_tree(part) for part in parts)
    return {
        local_attribute(each, "id"): clean(local_attribute(each, "name"))
        for root in roots
        if root is not None
        for each in root
    }


def _comments(package: PackageReader, part: str, authors: dict[str, str]) -> Iterator[str]:
    for name in package.related(part, "comments"):
        root = package.optional_tree(name)
        for each in () if root is None else root.iter():
            if local_name(each) in {"cm", "reply"}:
                text = "".join(t.text or "" for t in each.iterfind("{*}text"))
                paragraphs = each.iterfind("{*}txBody/{*}p")
                text = text or " ".join(
                    "".join(t.text or "" for t in p.iter() if local_name(t) == "t")
                    for p in paragraphs
                )
                author = authors.get(local_attribute(each, "authorId"), "")
                by = f" by {author}" if author else ""
                yield f"[Comment{by}: {' '.join(clean(text).split())}]"
