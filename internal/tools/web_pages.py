"""Text of fetched pages, and why a page has less text than a person would see.

"There is nothing" and "it could not be seen" are different answers: a page without text gets a
sentence that distinguishes the two, and so does a page that arrived only in part.
"""

import asyncio
import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from internal.agent.domain.errors import DocumentUnreadable, ToolError
from internal.agent.ports.documents import DocumentReader, WebPage
from internal.normal_forms.urls import parse_refresh
from internal.text_encodings.conversion import decode
from internal.text_encodings.detection import marked_codec, wide_codec
from internal.tools.http_client import FetchedPage, HttpResponse

_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_UNKNOWN_TYPES = frozenset({"", "*/*", "application/unknown", "unknown/unknown"})
_SNIFFED_BYTES = 1_445  # how much the MIME Sniffing Standard reads
# the binary data bytes of https://mimesniff.spec.whatwg.org/#binary-data-byte
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_BINARY_STARTS = (b"%PDF-", b"%!PS-Adobe-", b"{\\rtf")
# its patterns of HTML (section 7.1), also behind an XML declaration
_HTML_START = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--|<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a"
    rb"|style|title|b|body|br|p)[\s/>])",
    re.IGNORECASE,
)
_SHORT_CHARS = 200
"""A page with fewer characters and a program may build its text with the program."""

_NEEDS_SCRIPTS = re.compile(r"javascript|scripts?\b", re.IGNORECASE)
MAX_ERROR_CHARS = 2_000
"""Maximum returned part of the body of an error."""


class PageText(msgspec.Struct, frozen=True):
    """The text of a page, sentences about missing parts, and the address that it leads on to.

    `has_text` is False if there is at most a title. `refresh_seconds` is the time for which the
    page is shown before it leads on.
    """

    text: str
    has_text: bool
    notes: tuple[str, ...] = ()
    refresh: str = ""
    refresh_seconds: int = 0


async def read_page(documents: DocumentReader, page: FetchedPage) -> PageText:
    """Return the text of a page.

    Raises:
        ToolError: the page is not text or cannot be converted.
    """
    response = page.response
    form = content_form(response)
    if form == "binary":
        kind = response.media_type or "binary"
        raise ToolError(f"{page.url} is {kind}: only HTML, text and JSON can be read")
    if form == "text":
        text, _ = await asyncio.to_thread(decode, response.body, response.charset or "")
        shown = WebPage(text, has_text=bool(text.strip()))
    else:
        shown = await _convert(documents, page)
    seconds, refresh = parse_refresh(response.headers.get("refresh", ""))
    if not refresh:
        seconds, refresh = shown.refresh_seconds, shown.refresh
    text = "\n\n".join(filter(None, (shown.text, *_asides(shown))))
    return PageText(text, shown.has_text, tuple(_notes(response, shown)), refresh, seconds)


async def _convert(documents: DocumentReader, page: FetchedPage) -> WebPage:
    response = page.response
    try:
        return await documents.convert_html(response.body, response.charset or "", str(page.url))
    except DocumentUnreadable as error:
        raise ToolError(f"the page could not be converted to text: {error}") from error


async def read_error(documents: DocumentReader, page: FetchedPage) -> str:
    """Return the beginning of a page's text about an error, "" if it has no readable text."""
    try:
        text = (await read_page(documents, page)).text.strip()
    except ToolError:
        return ""
    cut = len(text) - MAX_ERROR_CHARS
    return text if cut <= 0 else f"{text[:MAX_ERROR_CHARS]}[… {cut:,} more characters]"


def content_form(response: HttpResponse) -> Literal["html", "text", "binary"]:
    """Return how a body is read: by its declared type, else by its beginning."""
    kind, head = response.media_type, response.body[:_SNIFFED_BYTES]
    if _is_binary(head, response.charset):
        return "binary"
    if kind in _HTML_TYPES:
        return "html"
    if kind in _UNKNOWN_TYPES or kind.endswith("/octet-stream"):
        return "html" if _HTML_START.match(head) else "text"
    # also types that nobody registered: bytes that are text are text
    return "text"


def _is_binary(head: bytes, charset: str | None) -> bool:
    if head.startswith(_BINARY_STARTS):
        return True
    wide = marked_codec(head) or wide_codec(head) or charset or ""
    return not wide.startswith(("utf-16", "utf-32")) and bool(_BINARY.search(head))


def _notes(response: HttpResponse, page: WebPage) -> Iterator[str]:
    """Yield notes about a page that is incomplete, or shows more to people."""
    if response.incomplete:
        yield "The page is incomplete: the connection ended before all of it had arrived."
    elif response.truncated:
        yield "The page is longer than what was read of it."
    elif not response.body:
        yield "The page is empty: the server sent no content."
    if not page.has_text and page.scripts:
        yield "The page has no text without JavaScript, which is not run: people may see more."
    elif not page.has_text and response.body:
        yield "The page has no text."
    elif _is_built(page):
        yield "The page asks for JavaScript, which is not run: people may see more than this."


def _is_built(page: WebPage) -> bool:
    is_short = len(page.text) < _SHORT_CHARS
    return is_short and page.scripts > 0 and bool(_NEEDS_SCRIPTS.search(page.without_scripts))


def _asides(page: WebPage) -> Iterator[str]:
    """Yield the texts that a page without text shows to readers who cannot see it."""
    if page.without_scripts and (not page.has_text or _is_built(page)):
        yield f"[Without JavaScript the page says: {page.without_scripts}]"
    if page.frames and not page.has_text:
        yield f"[The page shows other pages in frames: {', '.join(page.frames)}]"
