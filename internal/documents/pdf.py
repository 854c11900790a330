"""PDF: the text of each page."""

from collections.abc import Iterator
from typing import Any, BinaryIO

import pypdfium2  # type: ignore[import-untyped]  # it has no type hints
import pypdfium2.raw  # type: ignore[import-untyped]  # as above

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.extraction import ExtractedDocument, clean

MAX_PAGES = 2_000
"""How many pages of a PDF are read."""


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
        pages = len(document)
    except pypdfium2.PdfiumError as error:
        if error.err_code == pypdfium2.raw.FPDF_ERR_PASSWORD:
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
    for number in range(min(pages, MAX_PAGES)):
        try:
            text = _page_text(document, number)
        except pypdfium2.PdfiumError:
            text = "[This page is damaged.]"
        yield f"## Page {number + 1}\n\n{text}\n\n" if text else ""
    if pages > MAX_PAGES:
        yield f"[The PDF has {pages:,} pages: those after page {MAX_PAGES:,} are not read.]\n"


def _page_text(document: Any, number: int) -> str:
    page = document[number]
    try:
        content = page.get_textpage()
        try:
            return clean(content.get_text_range()).strip()
        finally:
            content.close()
    finally:
        page.close()
