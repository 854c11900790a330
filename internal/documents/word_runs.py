"""The text within a paragraph of Word: runs, fields, links, equations, notes, tracked changes."""

from collections.abc import Callable, Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element

from internal.documents.drawings import drawn, picture_text
from internal.documents.equations import equation_text
from internal.documents.extraction import clean
from internal.documents.package import (
    PackageReader,
    local_attribute,
    local_name,
    relationship_id,
)
from internal.documents.word_numbers import format_count

_SKIPPED = frozenset(
    {
        *("commentRangeEnd", "Fallback", "instrText", "pPr", "rPr", "sdtPr", "sectPr", "tblPr"),
        *("tcPr", "trPr", "rubyPr", "numberingChange"),
    }
)
_SIGNS = {
    "br": "\n",
    "cr": "\n",
    "imagedata": "[Picture]",
    "noBreakHyphen": "-",
    "ptab": "\t",
    "tab": "\t",
}
_SYMBOLS = {
    "wingdings": {0xFC: "✓", 0xFB: "✗", 0xFD: "☒", 0xFE: "☑", 0xA8: "☐", 0x6F: "☐", 0x78: "☒"}
    | {0xE0: "→", 0xDF: "←", 0xA7: "▪", 0xB7: "•", 0x6C: "●", 0x6E: "■", 0x76: "❖", 0xD8: "➢"},
    "wingdings 2": {0x50: "✓", 0x4F: "✗", 0x52: "☑", 0x51: "☒", 0x53: "☒", 0x54: "☒", 0xA3: "☐"}
    | {0x30: "☐"},
    "symbol": {0xB7: "•", 0xAE: "→", 0xB0: "°", 0xB1: "±", 0xA3: "≤", 0xB3: "≥", 0xB4: "\u00d7"}
    | dict(zip(range(0x61, 0x7B), "αβχδεφγηιϕκλμνοπθρστυϖωξψζ", strict=True)),
}
"""Signs of fonts that have their own; others are named."""
_PRIVATE_AREA = 0xF000
_MAX_QUOTE = 80
_PAGE_NUMBERS = {"PAGE": "(page)", "NUMPAGES": "(pages)", "SECTIONPAGES": "(pages)"}
_OFF = frozenset({"0", "false", "off"})


class Comment(NamedTuple):
    """A comment of a reviewer."""

    author: str
    text: str


class TrackedChange(NamedTuple):
    """A tracked change: `verb` is inserted, deleted, moved away or moved here."""

    author: str
    verb: str
    text: str


class ReadParagraph(NamedTuple):
    """The text of a paragraph, and the lines that follow it."""

    text: str
    boxes: list[Element]
    comments: list[str]
    changes: list[TrackedChange]


class _Field(NamedTuple):
    """A field that has begun; `code` is complete when its result begins."""

    code: list[str]
    in_result: bool


class RunReader:
    """Reads the paragraphs of one part in their order: fields and comments span paragraphs.

    Args:
        package: the document.
        part: the part that links and pictures of its paragraphs are related to.
        comments: the comments by their ids; a comment is removed once it is referred to.
        notes: the numbers of foot- and endnotes by kind and id, in the order of references.
    """

    def __init__(
        self,
        package: PackageReader,
        part: str,
        *,
        comments: dict[str, Comment],
        notes: dict[tuple[str, str], str],
    ) -> None:
        self._package = package
        self._part = part
        self._comments = comments
        self._notes = notes
        self._addresses: dict[str, str] | None = None
        self._fields: list[_Field] = []
        self._ranges: dict[str, list[str]] = {}
        self._handlers = self._handlers_by_name()
        self._begin()

    def _handlers_by_name(self) -> dict[str, Callable[[Element], Iterator[str]]]:
        return {
            "AlternateContent": self._alternative,
            "OLEObject": lambda e: iter([f"[Embedded object: {local_attribute(e, 'ProgID')}]"]),
            "anchor": self._drawing,
            "chart": self._drawn,
            "commentRangeStart": self._begin_range,
            "commentReference": self._comment,
            "del": self._change,
            "endnoteReference": self._note_reference,
            "fldChar": self._field,
            "fldSimple": self._simple_field,
            "footnoteReference": self._note_reference,
            "hyperlink": self._link,
            "inline": self._drawing,
            "ins": self._change,
            "moveFrom": self._change,
            "moveTo": self._change,
            "oMath": lambda e: iter([equation_text(e)]),
            "r": self._formatted,
            "relIds": self._drawn,
            "ruby": self._ruby,
            "sym": lambda e: iter([_symbol(e)]),
            "t": lambda e: iter([e.text or ""]),
            "textpath": lambda e: iter([local_attribute(e, "string")]),
            "txbxContent": self._box,
        }

    def _begin(self) -> None:
        self._boxes: list[Element] = []
        self._said: list[str] = []
        self._changes: list[TrackedChange] = []

    def read(self, paragraph: Element) -> ReadParagraph:
        """Return a paragraph as text."""
        self._begin()
        text = clean("".join(self._runs(paragraph))).strip()
        return ReadParagraph(text, self._boxes, self._said, self._changes)

    def _runs(self, element: Element) -> Iterator[str]:
        for child in element:
            for text in self._run(child):
                for quoted in self._ranges.values():
                    quoted.append(text)
                yield text

    def _run(self, child: Element) -> Iterator[str]:
        name = local_name(child)
        if self._in_code():
            yield from self._of_code(child, name)
        elif name in _SIGNS:
            yield _SIGNS[name]
        elif name in self._handlers:
            yield from self._handlers[name](child)
        elif name not in _SKIPPED:
            yield from self._inner(child)

    def _note_reference(self, child: Element) -> Iterator[str]:
        yield f"[^{self._note(local_name(child).removesuffix('Reference'), child)}]"

    def _simple_field(self, child: Element) -> Iterator[str]:
        code = local_attribute(child, "instr")
        text = _page_number(code) or "".join(self._inner(child))
        yield from _linked(text, _address_of(code))

    def _begin_range(self, child: Element) -> Iterator[str]:
        self._ranges[local_attribute(child, "id")] = []
        yield ""

    def _box(self, child: Element) -> Iterator[str]:
        self._boxes.append(child)
        yield ""

    def _drawn(self, child: Element) -> Iterator[str]:
        yield from (f"\n{text}\n" for text in drawn(self._package, self._part, child))

    def _ruby(self, child: Element) -> Iterator[str]:
        base, reading = (
            "".join(text for e in child if local_name(e) == name for text in self._inner(e))
            for name in ("rubyBase", "rt")
        )
        yield f"{base}({reading})"

    def _formatted(self, child: Element) -> Iterator[str]:
        yield from self._hidden(child) if _is_hidden(child) else self._inner(child)

    def _inner(self, element: Element) -> Iterator[str]:
        for child in element:
            yield from self._run(child)

    def _hidden(self, run: Element) -> Iterator[str]:
        text = "".join(self._inner(run))
        yield f"[hidden: {text}]" if text.strip() else text

    def _alternative(self, element: Element) -> Iterator[str]:
        """Yield the first form that has anything; they all show the same."""
        for form in element:
            before = len(self._boxes)
            text = "".join(self._inner(form))
            if text.strip() or len(self._boxes) > before:
                yield text
                return

    def _drawing(self, element: Element) -> Iterator[str]:
        properties = next((e for e in element if local_name(e) == "docPr"), None)
        if any(local_name(each) == "pic" for each in element.iter()):
            yield picture_text(properties)
        yield from self._inner(element)

    def _link(self, element: Element) -> Iterator[str]:
        if self._addresses is None:
            self._addresses = self._package.addresses(self._part)
        address = self._addresses.get(relationship_id(element), "")
        yield from _linked("".join(self._inner(element)), address)

    def _in_code(self) -> bool:
        return bool(self._fields) and not self._fields[-1].in_result

    def _of_code(self, child: Element, name: str) -> Iterator[str]:
        """Collect the code of a field, which is not shown."""
        match name:
            case "instrText":
                self._fields[-1].code.append(child.text or "")
            case "fldChar":
                yield from self._field(child)
            case "rPr" | "pPr":
                pass
            case _:
                yield from self._inner(child)

    def _field(self, element: Element) -> Iterator[str]:
        match local_attribute(element, "fldCharType"):
            case "begin":
                yield _form_field(element)
                self._fields.append(_Field([], in_result=False))
            case "separate" if self._fields:
                counted = _page_number("".join(self._fields[-1].code))
                yield counted
                self._fields[-1] = self._fields[-1]._replace(in_result=not counted)
            case "end" if self._fields:
                if address := _address_of("".join(self._fields.pop().code)):
                    yield f" ({address})"
            case _:
                pass

    def _note(self, kind: str, element: Element) -> str:
        key = (kind, local_attribute(element, "id"))
        if key not in self._notes:
            count = sum(known == kind for known, _ in self._notes) + 1
            self._notes[key] = (
                str(count) if kind == "footnote" else format_count(count, "lowerRoman")
            )
        return self._notes[key]

    def _change(self, element: Element) -> Iterator[str]:
        name = local_name(element)
        text = "".join(_deleted_texts(element) if name == "del" else self._inner(element))
        verb = {"ins": "inserted", "del": "deleted", "moveTo": "moved here"}.get(name, "moved away")
        if text.strip():
            author = clean(local_attribute(element, "author"))
            last = self._changes[-1] if self._changes else None
            if last and (last.author, last.verb) == (author, verb):
                self._changes[-1] = last._replace(text=last.text + text)
            else:
                self._changes.append(TrackedChange(author, verb, text))
        if name in {"ins", "moveTo"}:
            yield text

    def _comment(self, element: Element) -> Iterator[str]:
        number = local_attribute(element, "id")
        quoted = " ".join(clean("".join(self._ranges.pop(number, []))).split())
        comment = self._comments.pop(number, None)
        if comment is not None:
            self._said.append(comment_line(comment, quoted))
        yield ""


def comment_line(comment: Comment, quoted: str = "") -> str:
    """Return a comment with its author and the text that it is about."""
    about = quoted if len(quoted) <= _MAX_QUOTE else f"{quoted[:_MAX_QUOTE]}…"
    about = f' on "{about}"' if about else ""
    by = f" by {comment.author}" if comment.author else ""
    return f"[Comment{by}{about}: {comment.text}]"


def change_line(changes: list[TrackedChange], text: str) -> str:
    """Return the tracked changes of a paragraph on one line, "" if there are none."""
    said = []
    for each in changes:
        shown = " ".join(clean(each.text).split())
        what = "this paragraph" if shown == " ".join(text.split()) else f'"{shown}"'
        said.append(f"{each.author or 'someone'} {each.verb} {what}")
    return f"[Tracked changes: {'; '.join(said)}]" if said else ""


def _deleted_texts(element: Element) -> Iterator[str]:
    for each in element.iter():
        match local_name(each):
            case "delText" | "t":
                yield each.text or ""
            case "tab":
                yield "\t"
            case "br" | "cr":
                yield "\n"
            case _:
                pass


def _linked(text: str, address: str) -> Iterator[str]:
    address = clean(address).strip()
    if not address or address == text.strip():
        yield text
    else:
        yield f"[{text}]({address})" if text.strip() else f"<{address}>"


def _page_number(code: str) -> str:
    """Return a placeholder for the number of a page, which differs from page to page."""
    name = code.split(maxsplit=1)[:1]
    return _PAGE_NUMBERS.get(name[0].upper(), "") if name else ""


def _address_of(code: str) -> str:
    """Return the address in the code of a HYPERLINK field, "" if it is another field."""
    words = code.split(maxsplit=1)
    if len(words) < 2 or words[0].upper() != "HYPERLINK":  # noqa: PLR2004 - a name and its value
        return ""
    rest = words[1].strip()
    if rest.startswith('"'):
        return rest[1:].partition('"')[0]
    first = rest.split()[0]
    return "" if first.startswith("\\") else first


def _form_field(element: Element) -> str:
    """Return the text for a form field without text of its own: a box, or a choice."""
    for each in element.iter():
        values = {local_name(e): local_attribute(e, "val") for e in each}
        match local_name(each):
            case "checkBox":
                ticked = values.get("checked", values.get("default", "0"))
                return "☐" if ticked in _OFF else "☒"
            case "ddList":
                entries = [local_attribute(e, "val") for e in each if local_name(e) == "listEntry"]
                chosen = values.get("result", values.get("default", "0"))
                place = int(chosen) if chosen.isdigit() else 0
                return entries[place] if place < len(entries) else ""
            case _:
                pass
    return ""


def _symbol(element: Element) -> str:
    code = local_attribute(element, "char")
    font = local_attribute(element, "font")
    try:
        number = int(code, 16)
    except ValueError:
        return "[symbol]"
    if number < _PRIVATE_AREA:
        return chr(number)
    known = _SYMBOLS.get(font.lower(), {})
    return known.get(number - _PRIVATE_AREA, f"[symbol {clean(code)} of {clean(font)}]")


def _is_hidden(run: Element) -> bool:
    hidden = run.find("{*}rPr/{*}vanish")
    return hidden is not None and local_attribute(hidden, "val") not in _OFF
