"""HTML to Markdown.

A hostile page can keep a parser busy for minutes: it is used in a child process, which can be
stopped.
"""

import os
from typing import BinaryIO

import bs4
import markdownify

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.extraction import ExtractedDocument, clean
from internal.documents.plain_text import encoding_of

MAX_FILE_BYTES = 3_000_000
_DROPPED_ELEMENTS = (
    *("canvas", "head", "iframe", "noscript", "object", "script", "style", "svg", "template"),
    "title",  # already the heading
)


def read_html(file: BinaryIO) -> ExtractedDocument:
    """Return the visible text of an HTML file as Markdown.

    Raises:
        DocumentUnreadable: it is too large.
    """
    if file.seek(0, os.SEEK_END) > MAX_FILE_BYTES:
        raise DocumentUnreadable("The HTML file is larger than 3 MB: read its source.")
    encoding = encoding_of(file)
    file.seek(0)
    text = clean(convert(file.read(), encoding))
    return ExtractedDocument(1, iter([text]), "[The page has no text.]")


def to_markdown(html: bytes, charset: str | None) -> str:
    """Return the visible text as Markdown, without images and with the title as a heading.

    Raises:
        RecursionError: the document is nested too deeply.
    """
    soup = bs4.BeautifulSoup(html, "html.parser", from_encoding=charset)
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    for element in soup(_DROPPED_ELEMENTS):
        element.decompose()
    converter = markdownify.MarkdownConverter(heading_style="ATX", strip=["img"])
    text = "\n".join(line.rstrip() for line in converter.convert_soup(soup).splitlines())
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    text = text.strip()
    return f"# {title}\n\n{text}" if title and not text.startswith(f"# {title}") else text


def to_plain_text(html: bytes, charset: str | None) -> str:
    """Return the text alone, for documents that are nested too deeply to convert."""
    soup = bs4.BeautifulSoup(html, "html.parser", from_encoding=charset)
    return "\n".join(text.strip() for text in soup.find_all(string=True) if text.strip())


def convert(html: bytes, charset: str | None) -> str:
    """Return the visible text as Markdown, or alone if the document is nested too deeply."""
    try:
        return to_markdown(html, charset)
    except RecursionError:
        return to_plain_text(html, charset)
