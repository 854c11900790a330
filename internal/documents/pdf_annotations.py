"""Content of a PDF page besides its text: form fields, comments, links, attached files."""

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

from pypdfium2 import raw as pdfium  # type: ignore[import-untyped]  # it has no type hints

from internal.documents.extraction import clean

MAX_ANNOTATIONS = 2_000
"""Maximum number of annotations read in a page."""

_MAX_QUOTE = 200
_HIDDEN = pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW
_MARKS = {
    pdfium.FPDF_ANNOT_HIGHLIGHT: "Highlighted",
    pdfium.FPDF_ANNOT_UNDERLINE: "Underlined",
    pdfium.FPDF_ANNOT_SQUIGGLY: "Underlined",
    pdfium.FPDF_ANNOT_STRIKEOUT: "Struck out",
}
_NOT_SHOWN = frozenset(
    {
        pdfium.FPDF_ANNOT_POPUP,  # it repeats the text of another one
        *(pdfium.FPDF_ANNOT_PRINTERMARK, pdfium.FPDF_ANNOT_TRAPNET),
    }
)
_TICKED = {
    pdfium.FPDF_FORMFIELD_CHECKBOX: "checkbox",
    pdfium.FPDF_FORMFIELD_RADIOBUTTON: "choice",
}
_PASSWORD_FLAG = 1 << 13
_OFF = frozenset({"", "Off"})


class PageAnnotations:
    """Reads the annotations of one page, which is open.

    Args:
        document: the `pypdfium2.PdfDocument`.
        page: the `pypdfium2.PdfPage`.
        content: its `PdfTextPage`, for the text that is marked.
    """

    def __init__(self, document: Any, page: Any, content: Any) -> None:
        self._document = document
        self._page = page
        self._content = content
        self._form = document.formenv

    def text(self, page_text: str) -> str:
        """Return the annotations, each on a line; "" if the page has none."""
        fields, notes, links = list[str](), list[str](), dict[str, None]()
        count = pdfium.FPDFPage_GetAnnotCount(self._page)
        for number in range(min(count, MAX_ANNOTATIONS)):
            annotation = pdfium.FPDFPage_GetAnnot(self._page, number)
            if not annotation:
                continue
            try:
                if pdfium.FPDFAnnot_GetFlags(annotation) & _HIDDEN:
                    continue
                self._add(annotation, fields, notes, links)
            finally:
                pdfium.FPDFPage_CloseAnnot(annotation)
        lines = ["Form fields:", *fields] if fields else []
        lines += notes
        lines += [f"Link: {each}" for each in links if each not in page_text]
        if count > MAX_ANNOTATIONS:
            lines.append(f"[The page has {count:,} annotations: the rest is missing.]")
        return "\n".join(lines)

    def _add(
        self, annotation: Any, fields: list[str], notes: list[str], links: dict[str, None]
    ) -> None:
        kind = pdfium.FPDFAnnot_GetSubtype(annotation)
        if kind == pdfium.FPDF_ANNOT_WIDGET:
            fields += self._field(annotation)
        elif kind == pdfium.FPDF_ANNOT_LINK:
            if address := self._address(annotation):
                links[address] = None
        elif kind == pdfium.FPDF_ANNOT_FILEATTACHMENT:
            notes.append(f"[Attached file: {_attachment(annotation)}]")
        elif kind not in _NOT_SHOWN:
            notes += self._comment(annotation, kind)

    def _field(self, annotation: Any) -> Iterator[str]:
        kind = pdfium.FPDFAnnot_GetFormFieldType(self._form, annotation) if self._form else -1
        if kind == pdfium.FPDF_FORMFIELD_PUSHBUTTON:
            return
        name = self._of_field(pdfium.FPDFAnnot_GetFormFieldName, annotation)
        name = name or _value(annotation, "T") or "(without a name)"
        tip = self._of_field(pdfium.FPDFAnnot_GetFormFieldAlternateName, annotation)
        label = f"{name} ({tip})" if tip and tip != name else name
        yield f"- {label}: {self._field_value(annotation, kind)}"

    def _field_value(self, annotation: Any, kind: int) -> str:
        value = self._of_field(pdfium.FPDFAnnot_GetFormFieldValue, annotation)
        value = value or _value(annotation, "V")
        if kind in _TICKED or _value(annotation, "AS"):
            state = _value(annotation, "AS")
            ticked = bool(self._form) and pdfium.FPDFAnnot_IsChecked(self._form, annotation)
            export = self._of_field(pdfium.FPDFAnnot_GetFormFieldExportValue, annotation)
            mark = "[x]" if ticked or state not in _OFF else "[ ]"
            return f"{mark} {export or (state if state not in _OFF else '')}".strip()
        if kind == pdfium.FPDF_FORMFIELD_SIGNATURE:
            return "(a signature)"
        if kind in {pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX}:
            return ", ".join(self._chosen(annotation)) or value or "(empty)"
        flags = pdfium.FPDFAnnot_GetFormFieldFlags(self._form, annotation) if self._form else 0
        if flags & _PASSWORD_FLAG and value:
            return "(a password, not shown)"
        return value or "(empty)"

    def _chosen(self, annotation: Any) -> Iterator[str]:
        count = pdfium.FPDFAnnot_GetOptionCount(self._form, annotation)
        for number in range(min(count, MAX_ANNOTATIONS)):
            if pdfium.FPDFAnnot_IsOptionSelected(self._form, annotation, number):
                yield _string(
                    lambda *buffer, place=number: pdfium.FPDFAnnot_GetOptionLabel(
                        self._form, annotation, place, *buffer
                    )
                )

    def _of_field(self, function: Callable[..., int], annotation: Any) -> str:
        if not self._form:
            return ""
        return _string(lambda *buffer: function(self._form, annotation, *buffer))

    def _comment(self, annotation: Any, kind: int) -> Iterator[str]:
        author, text = _value(annotation, "T"), _value(annotation, "Contents")
        quoted = self._marked(annotation) if kind in _MARKS else ""
        about = f' on "{quoted}"' if quoted else ""
        if text:
            by = f" by {author}" if author else ""
            yield f"[Comment{by}{about}: {text}]"
        elif quoted:
            yield f'[{_MARKS[kind]}: "{quoted}"]'
        elif kind == pdfium.FPDF_ANNOT_STAMP:
            yield f"[Stamp: {_value(annotation, 'Name') or 'a picture'}]"

    def _marked(self, annotation: Any) -> str:
        """Return the text of the page below the marks of an annotation."""
        texts = []
        points = pdfium.FS_QUADPOINTSF()
        for number in range(min(pdfium.FPDFAnnot_CountAttachmentPoints(annotation), 100)):
            if pdfium.FPDFAnnot_GetAttachmentPoints(annotation, number, points):
                across = (points.x1, points.x2, points.x3, points.x4)
                along = (points.y1, points.y2, points.y3, points.y4)
                texts.append(
                    self._content.get_text_bounded(min(across), min(along), max(across), max(along))
                )
        text = " ".join(clean(" ".join(texts)).split())
        return text if len(text) <= _MAX_QUOTE else f"{text[:_MAX_QUOTE]}…"

    def _address(self, annotation: Any) -> str:
        link = pdfium.FPDFAnnot_GetLink(annotation)
        action = pdfium.FPDFLink_GetAction(link) if link else None
        if not action or pdfium.FPDFAction_GetType(action) != pdfium.PDFACTION_URI:
            return ""
        size = pdfium.FPDFAction_GetURIPath(self._document, action, None, 0)
        buffer = ctypes.create_string_buffer(size)
        pdfium.FPDFAction_GetURIPath(self._document, action, buffer, size)
        return clean(buffer.raw[:size].rstrip(b"\0").decode("utf-8", "replace")).strip()


def attached_files(document: Any) -> Iterator[str]:
    """Yield a line for each file that is attached to a document as a whole."""
    count = pdfium.FPDFDoc_GetAttachmentCount(document)
    if count > 0:
        yield "## Attached files, which were not read\n\n"
    for number in range(min(count, MAX_ANNOTATIONS)):
        attachment = pdfium.FPDFDoc_GetAttachment(document, number)
        yield f"- {_file(attachment)}\n" if attachment else ""


def _attachment(annotation: Any) -> str:
    attachment = pdfium.FPDFAnnot_GetFileAttachment(annotation)
    return _file(attachment) if attachment else _value(annotation, "Contents") or "without a name"


def _file(attachment: Any) -> str:
    name = _string(lambda *buffer: pdfium.FPDFAttachment_GetName(attachment, *buffer))
    size = ctypes.c_ulong()
    has_content = pdfium.FPDFAttachment_GetFile(attachment, None, 0, size)
    return (name or "without a name") + (f" ({size.value:,} bytes)" if has_content else "")


def _value(annotation: Any, key: str) -> str:
    return _string(
        lambda *buffer: pdfium.FPDFAnnot_GetStringValue(annotation, key.encode(), *buffer)
    )


def _string(read: Callable[..., int]) -> str:
    """Return the UTF-16 text that a function of pdfium writes into a buffer."""
    size = read(None, 0)
    if size <= 2:  # noqa: PLR2004 - the final NUL
        return ""
    buffer = (pdfium.FPDF_WCHAR * (size // 2))()
    read(buffer, size)
    return clean(bytes(buffer).decode("utf-16-le", "replace").rstrip("\0")).strip()
