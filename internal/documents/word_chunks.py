"""Word documents that embed web pages, as written by content management systems."""

from typing import BinaryIO

from internal.documents.docx import read_docx
from internal.documents.extraction import ExtractedDocument
from internal.documents.html_to_markdown import convert
from internal.documents.mail import is_message, page_of_message


def read_docx_with_html(file: BinaryIO) -> ExtractedDocument:
    """Return the text of a Word document, including the web pages in it."""
    return read_docx(file, _text_of)


def _text_of(content: bytes) -> str:
    page = page_of_message(content) if is_message(content) else content
    return convert(page, None)
