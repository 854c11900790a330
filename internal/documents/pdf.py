"""PDF: the text of each page, with its form fields and comments."""

import ctypes
import re
from collections.abc import Iterator
from html import unescape
from typing import Any, BinaryIO

import pypdfium2  # type: ignore[import-untyped]  # it has no type hints
from pypdfium2 import raw as pdfium

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.extraction import ExtractedDocument, clean
from internal.documents.pdf_annotations import PageAnnotations, attached_files

MAX_PAGES = 2_000
"""Maximum number of pages read in a PDF."""
_NO_TEXT = "[This page has no text that can be read: it may be a picture.]"
_XFA_FORMS = frozenset({pdfium.FORMTYPE_XFA_FULL, pdfium.FORMTYPE_XFA_FOREGROUND})
_XFA_VALUE = re.compile(r"<(?:[\w.-]+:)?([\w.-]+)(?:\s[^<>]*)?>([^<>]+)</")
_MAX_PACKET_NAME = 100


def read_pdf(file: BinaryIO) -> ExtractedDocument:
    """Return the text of a PDF, a piece for each page that has any.

    Raises:
        DocumentUnreadable: it is encrypted or damaged.
    """
    document = open_pdf(file)
    pages = len(document)
    return ExtractedDocument(
        pages,
        _pages(document, pages),
        if_empty=f"[The PDF has no text on its {_count(pages)}: probably scanned pictures.]",
    )


def open_pdf(file: BinaryIO) -> Any:
    """Return the `pypdfium2.PdfDocument`, which has at least one page.

    Raises:
        DocumentUnreadable: it is encrypted or damaged.
    """
    try:
        document = pypdfium2.PdfDocument(file)
        document.init_forms()
        pages = len(document)
    except pypdfium2.PdfiumError as error:
        if error.err_code == pdfium.FPDF_ERR_PASSWORD:
            raise DocumentUnreadable(
                "The PDF is encrypted: it opens with a password only."
            ) from error
        raise DocumentUnreadable("The PDF is damaged: it cannot be opened.") from error
    if not pages:
        raise DocumentUnreadable("The PDF is damaged: it has no pages.")
    return document


def _count(pages: int) -> str:
    return "1 page" if pages == 1 else f"{pages:,} pages"


def _pages(document: Any, pages: int) -> Iterator[str]:
    """Yield the pages; one without text is named if others have some."""
    first_pages = ""
    has_text = False
    for number in range(min(pages, MAX_PAGES)):
        try:
            text = _page_text(document, number)
        except pypdfium2.PdfiumError:
            text = "[This page is damaged.]"
        has_text = has_text or bool(text)
        piece = f"{first_pages}## Page {number + 1}\n\n{text or _NO_TEXT}\n\n"
        first_pages = "" if has_text else piece
        yield piece if has_text else ""
    if pages > MAX_PAGES:
        yield f"[The PDF has {pages:,} pages: those after page {MAX_PAGES:,} are not read.]\n"
    yield from attached_files(document)
    yield from _xfa_values(document)


def _page_text(document: Any, number: int) -> str:
    page = document[number]
    try:
        content = page.get_textpage()
        try:
            text = clean(content.get_text_range()).strip()
            more = PageAnnotations(document, page, content).text(text)
            return f"{text}\n\n{more}".strip()
        finally:
            content.close()
    finally:
        page.close()


def _xfa_values(document: Any) -> Iterator[str]:
    """Yield the values of a form that Adobe's programs lay out themselves (XFA)."""
    if document.get_formtype() not in _XFA_FORMS:
        return
    yield "## Form data\n\n"
    yield "[The pages of this form (XFA) were not understood; these are its values.]\n"
    for number in range(pdfium.FPDF_GetXFAPacketCount(document)):
        name = ctypes.create_string_buffer(_MAX_PACKET_NAME)
        pdfium.FPDF_GetXFAPacketName(document, number, name, _MAX_PACKET_NAME)
        if name.value != b"datasets":
            continue
        size = ctypes.c_ulong()
        pdfium.FPDF_GetXFAPacketContent(document, number, None, 0, size)
        content = ctypes.create_string_buffer(size.value)
        pdfium.FPDF_GetXFAPacketContent(document, number, content, size.value, size)
        for field, value in _XFA_VALUE.findall(content.raw.decode("utf-8", "replace")):
            if shown := " ".join(clean(unescape(value)).split()):
                yield f"- {field}: {shown}\n"
