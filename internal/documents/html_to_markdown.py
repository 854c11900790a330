"""HTML to Markdown.

A hostile page can keep a parser busy for minutes: it is used in a child process, which can be
stopped.
"""

import os
import re
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

import bs4
import markdownify

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.extraction import ExtractedDocument, clean
from internal.normal_forms.urls import join_url, parse_refresh
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
_SCRIPT_TYPES = re.compile(
    r"(?:text|application)/(?:x-)?(?:java|ecma)script|module|", re.IGNORECASE
)
_MAX_FRAMES = 20
_MAX_ASIDE_CHARS = 300
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


class ConvertedPage(NamedTuple):
    """A web page as Markdown, with its references to text that is elsewhere.

    Attributes:
        text: the main content below the title.
        has_text: False if there is nothing but the title.
        refresh: the address that the page leads on to, "" if it leads nowhere.
        refresh_seconds: the time for which it is shown before.
        scripts: the number of programs, which are not run.
        without_scripts: its text for readers who run none.
        frames: addresses of pages that it shows as parts of itself.
    """

    text: str
    has_text: bool = True
    refresh: str = ""
    refresh_seconds: int = 0
    scripts: int = 0
    without_scripts: str = ""
    frames: tuple[str, ...] = ()


def convert(html: bytes, codec: str | None) -> str:
    """Return the visible text of a document as Markdown, with its title as a heading.

    Images are left out. A document that is nested too deeply is returned as text alone.
    """
    soup, title = _parse(html, codec)
    _remove_invisible(soup)
    return _with_title(title, _to_text(soup))


def convert_page(html: bytes, codec: str | None, address: str = "") -> ConvertedPage:
    """Return the main content of a web page as `convert` does.

    That is its `main` element, else its only `article`, else the page, without menus, side columns,
    footers, forms and hidden elements. A page that consists of nothing else is returned whole.

    Args:
        html: the bytes of the page.
        codec: the encoding of the bytes, None for the one that the page declares.
        address: the address of the page, to make its links absolute; "" leaves them unchanged.
    """
    soup, title = _parse(html, codec)
    page = _about(soup, address)
    is_for_all = soup.select_one("noscript meta[http-equiv]") is None
    _remove_invisible(soup)
    part = _main_part(soup)
    _remove_frame(part)
    text = _to_text(part)
    if not text:
        soup, title = _parse(html, codec)
        _make_absolute(soup, _base(soup, address))
        _remove_invisible(soup)
        text = _to_text(soup)
    if text and not is_for_all:  # readers without scripts are sent to a page that asks for them
        page = page._replace(refresh="")
    return page._replace(text=_with_title(title, text), has_text=bool(text))


def _parse(html: bytes, codec: str | None) -> tuple[bs4.BeautifulSoup, str]:
    """Return a document and its title."""
    codec = marked_codec(html) or codec or declared_codec(html) or "utf-8"
    soup = bs4.BeautifulSoup(html.decode(codec, "replace"), "html.parser")
    return soup, " ".join(soup.title.get_text().split()) if soup.title else ""


def _remove_invisible(soup: bs4.BeautifulSoup) -> None:
    for element in soup(_INVISIBLE_ELEMENTS):
        element.decompose()


def _about(soup: bs4.BeautifulSoup, address: str) -> ConvertedPage:
    """Return the references of a page to text elsewhere, and make its links absolute."""
    base = _base(soup, address)
    _make_absolute(soup, base)
    seconds, refresh = _find_refresh(soup)
    scripts = [each for each in soup("script") if _SCRIPT_TYPES.fullmatch(_value(each, "type"))]
    asides = (" ".join(each.get_text(" ").split()) for each in soup("noscript"))
    frames = [_absolute(base, _value(each, "src")) for each in soup(["frame", "iframe"])]
    return ConvertedPage(
        text="",
        refresh=_absolute(base, refresh),
        refresh_seconds=seconds,
        scripts=len(scripts),
        without_scripts=next(filter(None, asides), "")[:_MAX_ASIDE_CHARS],
        frames=tuple(dict.fromkeys(each for each in frames if each.startswith("http")))[
            :_MAX_FRAMES
        ],
    )


def _find_refresh(soup: bs4.BeautifulSoup) -> tuple[int, str]:
    """Return after how many seconds a page leads on, and to which address."""
    for element in soup("meta"):
        if _value(element, "http-equiv").strip().lower() == "refresh":
            return parse_refresh(_value(element, "content"))
    return 0, ""


def _base(soup: bs4.BeautifulSoup, address: str) -> str:
    """Return the address that the links of a page are relative to, "" if it is not known."""
    element = soup.find("base", href=True)
    return _absolute(address, _value(element, "href")) if isinstance(element, bs4.Tag) else address


def _make_absolute(soup: bs4.BeautifulSoup, base: str) -> None:
    if base:
        for element in soup(["a", "area"], href=True):
            element["href"] = _absolute(base, _value(element, "href"))


def _absolute(base: str, reference: str) -> str:
    """Return a reference as an absolute address; a link within the page stays unchanged."""
    reference = "".join(reference.split("\n")).strip()
    if not base or not reference or reference.startswith("#"):
        return reference
    try:
        address = join_url(base, reference)
    except ValueError:
        return reference
    place = reference.partition("#")[2]
    is_whole = address == reference or not place
    return (address if is_whole else f"{address}#{place}").replace(" ", "%20")


def _value(element: bs4.Tag, attribute: str) -> str:
    value = element.get(attribute)
    return value if isinstance(value, str) else ""


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
