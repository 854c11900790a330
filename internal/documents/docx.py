"""Word: the visible content of the printed document, as Markdown."""

import io
import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple
from xml.etree.ElementTree import Element

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.extraction import (
    ExtractedDocument,
    OtherReaderNeeded,
    clean,
    table_row,
    table_rule,
)
from internal.documents.package import (
    PackageReader,
    local_attribute,
    local_name,
    open_package,
    relationship_id,
)
from internal.documents.word_numbers import (
    BULLET,
    Numbering,
    NumberProperties,
    number_properties,
)
from internal.documents.word_runs import Comment, RunReader, change_line, comment_line

WITH_HTML = "docx+html"
"""The kind of a Word document that embeds web pages."""

_SKIPPED = frozenset({"Fallback", "pPr", "rPr", "sdtPr", "sectPr", "tblPr", "tcPr", "trPr"})
_HEADING_STYLE = re.compile(r"(?:heading )?([1-9])", re.IGNORECASE)
_MAX_HEADING = 6
_MAX_STYLES = 20
_BODY_DEPTH = 2
_HEAD_BYTES = 2_048
_MAX_SPAN = 63
_NOTES = {"footnotes": "footnote", "endnotes": "endnote"}
_REFERENCE = re.compile(rb"<(?:\w+:)?(header|footer)Reference\b([^>]*)>")
_OTHER_FIRST_PAGE = re.compile(rb"<(?:\w+:)?titlePg\b")
_OTHER_EVEN_PAGES = re.compile(rb"<(?:\w+:)?evenAndOddHeaders\b")

ChunkConverter = Callable[[bytes], str]
"""Returns the text of a web page, or of one with its pictures (MHTML)."""


class _Style(NamedTuple):
    based_on: str
    heading: int
    numbering: NumberProperties | None


def read_docx(file: BinaryIO, convert: ChunkConverter | None = None) -> ExtractedDocument:
    """Return the text of a Word document as Markdown.

    Raises:
        DocumentUnreadable: it is encrypted or damaged.
        OtherReaderNeeded: it embeds web pages, and there is no converter of them.
    """
    package = PackageReader(open_package(file, "Word"), "Word")
    document = _Document(package, convert)
    return ExtractedDocument(1, document.text(), "[The document has no text.]")


class _Document:
    """A Word document that is read once, from its beginning to its end."""

    def __init__(self, package: PackageReader, convert: ChunkConverter | None) -> None:
        self._package = package
        self._convert = convert
        self._main = package.main_part("word/document.xml")
        if convert is None and self._embeds_html():
            raise OtherReaderNeeded(WITH_HTML)
        self._styles, self._default_style = self._read_styles()
        self._numbering = Numbering(self._part("numbering"), self._style_lists())
        self._comments = dict(self._read_comments())
        self._notes: dict[tuple[str, str], str] = {}
        self._runs = self._reader(self._main)

    def _reader(self, part: str) -> RunReader:
        return RunReader(self._package, part, comments=self._comments, notes=self._notes)

    def text(self) -> Iterator[str]:
        """Yield the headers, the body, the notes and the footers.

        Raises:
            DocumentUnreadable: the body cannot be read from its beginning on.
        """
        printed = self._headers_and_footers()
        yield from self._printed(printed, "header")
        has_text = False
        try:
            for element in self._body_elements():
                for block in self._blocks(element):
                    has_text = True
                    yield block
        except DocumentUnreadable as error:
            if not has_text:
                raise
            yield f"[The rest of the document was not understood. {error}]\n\n"
        for kind, note in _NOTES.items():
            yield from self._notes_of(kind, note)
        yield from (f"{comment_line(each)}\n" for each in self._comments.values())
        yield from self._printed(printed, "footer")
        yield self._package.note()

    def _body_elements(self) -> Iterator[Element]:
        """Yield the elements of the body one by one; each is removed after it was used."""
        path: list[Element] = []
        for event, element in self._package.events(self._main):
            if event == "start":
                path.append(element)
                continue
            path.pop()
            if len(path) == _BODY_DEPTH and local_name(path[1]) == "body":
                yield element
                path[1].clear()

    def _blocks(self, element: Element) -> Iterator[str]:
        match local_name(element):
            case "p":
                yield from (f"{text}\n\n" for text in self._paragraph(element))
            case "tbl":
                yield from self._table(element)
            case "altChunk":
                yield f"{self._chunk(relationship_id(element))}\n\n"
            case "oMathPara" | "oMath":
                if text := self._runs.read(element).text:
                    yield f"{text}\n\n"
            case name:
                for child in () if name in _SKIPPED else element:
                    yield from self._blocks(child)

    def _paragraph(self, element: Element) -> Iterator[str]:
        read = self._runs.read(element)
        lines = [f"{self._prefix(element)}{read.text}"] if read.text else []
        lines += [*read.comments, change_line(read.changes, read.text)]
        if text := "\n".join(filter(None, lines)):
            yield text
        for box in read.boxes:
            inner = "".join(block for each in box for block in self._blocks(each)).strip()
            if inner:
                yield f"Text box: {inner}"

    def _prefix(self, paragraph: Element) -> str:
        """Return the marks before a paragraph: of a heading, its number, of an item."""
        properties = paragraph.find("{*}pPr")
        named = None if properties is None else properties.find("{*}pStyle")
        style = self._default_style if named is None else local_attribute(named, "val")
        heading = next((s.heading for s in self._chain(style) if s.heading), 0)
        numbers = number_properties(properties)
        inherited = next((s.numbering for s in self._chain(style) if s.numbering), None)
        if numbers is None or (not numbers.list_id and inherited):
            level = numbers.level if numbers else inherited.level if inherited else 0
            numbers = inherited._replace(level=level) if inherited else numbers
        if numbers is None or numbers.list_id == "0":
            return f"{'#' * heading} " if heading else ""
        label = self._numbering.label(numbers)
        if heading:
            shown = f"{label} " if label and label != BULLET else ""
            return f"{'#' * heading} {shown}"
        mark = BULLET if label is None else label
        return f"{'  ' * numbers.level}{mark} " if mark else ""

    def _chain(self, style: str) -> Iterator[_Style]:
        """Yield a style and the styles that it is based on."""
        for _ in range(_MAX_STYLES):
            if style not in self._styles:
                return
            yield self._styles[style]
            style = self._styles[style].based_on

    def _table(self, table: Element) -> Iterator[str]:
        rows = [cells for row in _inner_elements(table, "tr") if (cells := self._row(row))]
        width = max(map(len, rows), default=0)
        for number, cells in enumerate(rows):
            yield table_row(cells + [""] * (width - len(cells))) + "\n"
            if not number:
                yield table_rule(width) + "\n"
        yield "\n"

    def _row(self, row: Element) -> list[str]:
        deleted = row.find("{*}trPr/{*}del")
        cells: list[str] = [""] * _span(row.find("{*}trPr/{*}gridBefore"), 0)
        for cell in _inner_elements(row, "tc"):
            blocks = "".join(block for each in cell for block in self._cell_blocks(each))
            cells.append(" ".join(blocks.split()))
            cells += [""] * (_span(cell.find("{*}tcPr/{*}gridSpan"), 1) - 1)
        if deleted is not None and cells:
            author = clean(local_attribute(deleted, "author")) or "someone"
            text = ", ".join(filter(None, cells))
            return [f"[Tracked changes: {author} deleted a row{': ' + text if text else ''}]"]
        return cells

    def _cell_blocks(self, element: Element) -> Iterator[str]:
        """Yield the blocks of a cell; a table within it is put in brackets."""
        if local_name(element) != "tbl":
            yield from self._blocks(element)
            return
        rows = (self._row(row) for row in _inner_elements(element, "tr"))
        yield f"[{'; '.join(', '.join(filter(None, cells)) for cells in rows)}]\n\n"

    def _chunk(self, relationship: str) -> str:
        """Return a document that is embedded as a whole."""
        found = self._package.relationships(self._main).get(relationship)
        if found is None or not self._package.has(found.target):
            return "[An embedded document is not in the file.]"
        content = self._package.read(found.target)
        if content.startswith(b"PK"):
            return self._embedded_document(content)
        if content.startswith(b"{\\rtf"):
            return "[An embedded document in RTF was not understood.]"
        if _is_plain_text(content, found.target):
            return clean(content.decode("utf-8-sig", "replace")).strip()
        return clean(self._convert(content)).strip() if self._convert else ""

    def _embedded_document(self, content: bytes) -> str:
        try:
            inner = read_docx(io.BytesIO(content), self._convert or _not_converted)
            return "".join(inner.pieces).strip()
        except DocumentUnreadable as error:
            return f"[An embedded document was not understood. {error}]"

    def _embeds_html(self) -> bool:
        for name in self._package.related(self._main, "aFChunk"):
            with self._package.open(name) as entry:
                head = entry.read(_HEAD_BYTES)
            if not head.startswith((b"PK", b"{\\rtf")) and not _is_plain_text(head, name):
                return True
        return False

    def _printed(self, parts: dict[str, list[str]], kind: str) -> Iterator[str]:
        """Yield each page header or footer once."""
        texts: dict[str, None] = {}
        for part in parts[kind]:
            root = self._package.optional_tree(part)
            outer, self._runs = self._runs, self._reader(part)
            blocks = "".join(block for each in root or () for block in self._blocks(each))
            self._runs = outer
            texts[re.sub(r"\n{2,}", "\n", blocks).strip()] = None
        yield from (f"{kind.capitalize()}: {text}\n\n" for text in texts if text)

    def _headers_and_footers(self) -> dict[str, list[str]]:
        """Return the parts that are printed, in the order of their sections."""
        related = self._package.relationships(self._main)
        parts: dict[str, list[str]] = {"header": [], "footer": []}
        kinds = {each.kind for each in related.values()}
        if kinds.isdisjoint(parts):
            return parts
        body = self._package.read(self._main)
        settings = self._package.related(self._main, "settings")
        shown = {b"default"} | ({b"first"} if _OTHER_FIRST_PAGE.search(body) else set())
        if settings and _OTHER_EVEN_PAGES.search(self._package.read(settings[0])):
            shown.add(b"even")
        for reference in _REFERENCE.finditer(body):
            values = dict(re.findall(rb"(?:\w+:)?(\w+)\s*=\s*[\"']([^\"']*)", reference[2]))
            found = related.get(values.get(b"id", b"").decode("utf-8", "replace"))
            if (
                found
                and values.get(b"type", b"default") in shown
                and self._package.has(found.target)
            ):
                parts[reference[1].decode()].append(found.target)
        return {kind: list(dict.fromkeys(names)) for kind, names in parts.items()}

    def _part(self, kind: str) -> Element | None:
        names = self._package.related(self._main, kind)
        return self._package.optional_tree(names[0]) if names else None

    def _read_styles(self) -> tuple[dict[str, _Style], str]:
        """Return the styles by their ids, and the id of the default one.

        Headings are recognised whatever the language of their ids.
        """
        styles: dict[str, _Style] = {}
        default = ""
        root = self._part("styles")
        for style in () if root is None else root:
            if local_name(style) != "style":
                continue
            values = {local_name(each): local_attribute(each, "val") for each in style}
            matched = _HEADING_STYLE.fullmatch(values.get("name", ""))
            level = min(int(matched[1]), _MAX_HEADING) if matched else 0
            number = local_attribute(style, "styleId")
            numbering = number_properties(style.find("{*}pPr"))
            styles[number] = _Style(values.get("basedOn", ""), level, numbering)
            is_default = local_attribute(style, "default") in {"1", "true"}
            if is_default and local_attribute(style, "type") == "paragraph":
                default = number
        return styles, default

    def _style_lists(self) -> dict[str, str]:
        return {
            number: style.numbering.list_id
            for number, style in self._styles.items()
            if style.numbering
        }

    def _read_comments(self) -> Iterator[tuple[str, Comment]]:
        root = self._part("comments")
        reader = RunReader(self._package, self._main, comments={}, notes={})
        for each in () if root is None else root:
            paragraphs = (e for e in each.iter() if local_name(e) == "p")
            text = " ".join(filter(None, (reader.read(p).text for p in paragraphs)))
            author = clean(local_attribute(each, "author")).strip()
            yield local_attribute(each, "id"), Comment(author, " ".join(text.split()))

    def _notes_of(self, kind: str, note: str) -> Iterator[str]:
        """Yield the notes in the order in which the text refers to them."""
        names = self._package.related(self._main, kind)
        root = self._package.optional_tree(names[0]) if names else None
        outer, self._runs = self._runs, self._reader(names[0] if names else "")
        order = list(self._notes)
        texts = {}
        for each in () if root is None else root:
            number = local_attribute(each, "id")
            blocks = "".join(block for e in each for block in self._blocks(e))
            if text := " ".join(blocks.split()):
                texts[(note, number)] = f"[^{self._notes.get((note, number), number)}]: {text}\n"
        self._runs = outer
        yield from (texts.pop(key) for key in order if key in texts)
        yield from texts.values()


def _inner_elements(parent: Element, name: str) -> Iterator[Element]:
    """Yield the rows of a table or the cells of a row, including ones in a content control."""
    for child in parent:
        match local_name(child):
            case found if found == name:
                yield child
            case "sdt" | "sdtContent" | "customXml" | "smartTag" | "ins" | "moveTo":
                yield from _inner_elements(child, name)
            case _:
                pass


def _span(element: Element | None, default: int) -> int:
    value = "" if element is None else local_attribute(element, "val")
    return min(int(value), _MAX_SPAN) if value.isdigit() else default


def _is_plain_text(content: bytes, name: str) -> bool:
    start = content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return name.lower().endswith(".txt") or (
        start != b"<" and b"MIME-Version" not in content[:2_048]
    )


def _not_converted(_: bytes) -> str:
    return "[An embedded web page was not understood.]"
