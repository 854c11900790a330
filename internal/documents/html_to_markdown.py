"""HTML to Markdown.

A hostile page can keep a parser busy for minutes: it is used in a child process, which can be
stopped.
"""

import os
import re
from collections.abc import Callable
from typing import BinaryIO

import bs4
import markdownify

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.extraction import ExtractedDocument, clean
from internal.text_encodings.declarations import declared_codec
from internal.text_encodings.detection import marked_codec

MAX_FILE_BYTES = 3_000_000
_INVISIBLE_ELEMENTS = frozenset(
    {
        *("canvas", "head", "iframe", "noscript", "object", "script", "style", "svg", "template"),
        "title",  # already the heading
    }
)
_FRAME_ELEMENTS = frozenset(
    {
        *("aside", "button", "datalist", "dialog", "footer", "nav", "search", "select"),
        "textarea",
    }
)
_FRAME_ROLES = frozenset(
    {
        *("alertdialog", "banner", "complementary", "contentinfo", "dialog", "navigation"),
        "search",
    }
)
_CONTENT_ELEMENTS = ("article", "main")
_HIDDEN_STYLE = re.compile(r"display:\s*none|visibility:\s*hidden", re.IGNORECASE)


def read_html(file: BinaryIO, codec: str) -> ExtractedDocument:
    """Return the visible text of an HTML file as Markdown.

    Raises:
        DocumentUnreadable: it is too large.
    """
    if file.seek(0, os.SEEK_END) > MAX_FILE_BYTES:
        raise DocumentUnreadable("The HTML file is larger than 3 MB: read its source.")
    file.seek(0)
    text = clean(convert(file.read(), codec))
    return ExtractedDocument(1, iter([text]), "[The page has no text.]")


def convert(html: bytes, charset: str | None) -> str:
    """Return the visible text of a document as Markdown, with its title as a heading.

    Images are left out. A document that is nested too deeply is returned as text alone.
    """
    soup, title = _parse(html, charset)
    return _with_title(title, _to_text(soup))


def convert_page(html: bytes, charset: str | None) -> str:
    """Return the main content of a web page as `convert` does.

    That is its `main` element, else its only `article`, else the page; without menus, side columns,
    footers, forms and what is hidden. A page that consists of nothing else is returned whole.
    """
    soup, title = _parse(html, charset)
    part = _main_part(soup)
    _remove_frame(part)
    text = _to_text(part)
    return _with_title(title, text) if text else convert(html, charset)


def _parse(html: bytes, charset: str | None) -> tuple[bs4.BeautifulSoup, str]:
    """Return a document without invisible elements, and its title."""
    codec = charset or marked_codec(html) or declared_codec(html) or "utf-8"
    soup = bs4.BeautifulSoup(html.decode(codec, "replace"), "html.parser")
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    for element in soup(_INVISIBLE_ELEMENTS):
        element.decompose()
    return soup, title


def _remove_frame(part: bs4.Tag) -> None:
    """Remove menus and the like, in a time that is linear in the size of the page."""
    _remove(part, _is_frame)
    characters = _count_characters(part)
    in_content = set() if isinstance(part, bs4.BeautifulSoup) else {id(part)}

    def is_unwanted(element: bs4.Tag) -> bool:
        if id(element.parent) in in_content or element.name in _CONTENT_ELEMENTS:
            in_content.add(id(element))
        if 2 * characters[id(element)] > characters[id(part)]:
            return False  # around most of the page, such as the form of an ASP.NET page
        is_header = element.name == "header" and id(element) not in in_content
        return is_header or _may_be_frame(element)

    _remove(part, is_unwanted)


def _remove(part: bs4.Tag, is_unwanted: Callable[[bs4.Tag], bool]) -> None:
    removed: set[int] = set()  # of ids: bs4 hashes a Tag by its whole text
    for element in part.find_all(True):
        if id(element.parent) in removed:
            removed.add(id(element))
        elif is_unwanted(element):
            removed.add(id(element))
            element.extract()


def _count_characters(part: bs4.Tag) -> dict[int, int]:
    """Return the number of characters in each element, by its id."""
    characters: dict[int, int] = {}
    for element in (*reversed(part.find_all(True)), part):
        characters[id(element)] = sum(
            characters[id(child)] if isinstance(child, bs4.Tag) else len(str(child).strip())
            for child in element.contents
        )
    return characters


def _is_frame(element: bs4.Tag) -> bool:
    return element.name in _FRAME_ELEMENTS or element.get("role") in _FRAME_ROLES


def _may_be_frame(element: bs4.Tag) -> bool:
    return (
        element.name == "form"
        or element.has_attr("hidden")
        or element.get("aria-hidden") == "true"
        or _HIDDEN_STYLE.search(str(element.get("style", ""))) is not None
    )


def _main_part(soup: bs4.BeautifulSoup) -> bs4.Tag:
    """Return the element with the main content, the whole document if none is marked."""
    found = soup.find("main") or soup.find(role="main")
    if isinstance(found, bs4.Tag) and found.get_text(strip=True):
        return found
    articles = soup.find_all("article", limit=2)
    return articles[0] if len(articles) == 1 else soup


def _to_text(part: bs4.Tag) -> str:
    converter = markdownify.MarkdownConverter(heading_style="ATX", strip=["img"])
    try:
        text = converter.convert_soup(part)
    except RecursionError:
        return "\n".join(text.strip() for text in part.find_all(string=True) if text.strip())
    text = "\n".join(line.rstrip() for line in text.splitlines())
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text.strip()


def _with_title(title: str, text: str) -> str:
    return f"# {title}\n\n{text}" if title and not text.startswith(f"# {title}") else text
