"""Cleaning of results: text from a website reaches the model as plain text."""

import html
import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from internal.agent.domain.errors import ToolError
from internal.agent.domain.text import is_invisible, truncate_line
from internal.normal_forms.instants import parse_instant
from internal.search_providers.provider import SearchQuery, SearchResult
from internal.tools.http_urls import PublicUrl

MAX_TITLE_CHARS = 200
MAX_SNIPPET_CHARS = 1_000
MAX_SOURCE_CHARS = 80
MAX_URL_CHARS = 2_000

_MAX_FIELD_CHARS = 5_000
_INLINE = "a|abbr|b|code|em|font|i|kbd|mark|q|s|small|span|strong|sub|sup|time|u|wbr"
_BLOCK = (
    "blockquote|body|br|button|center|dd|div|dl|dt|form|h[1-6]|head|hr|html|iframe|img|input|li"
    "|link|meta|object|ol|p|pre|script|style|svg|table|tbody|td|th|thead|title|tr|ul|video"
)
# other names are not HTML but code, such as vector<int>
_TAG = rf"(?i)</?(?:(?P<inline>{_INLINE})|{_BLOCK})(?:\s[^<>]*)?/?>|<!--[^<>]*>"
_ANSI = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?")


def clean(query: SearchQuery, results: list[SearchResult]) -> tuple[SearchResult, ...]:
    """Return the results that can be shown, each URL once and at most as many as requested.

    Results with addresses other than http and https are left out, as are results from other
    websites if the query names a domain.
    """
    cleaned: dict[str, SearchResult] = {}
    for result in results:
        url = _clean_url(result.url)
        host = urlsplit(url).hostname or ""
        if not host or not _is_within(host, query.domain):
            continue
        if len(cleaned) == query.limit:
            break
        cleaned.setdefault(
            url,
            SearchResult(
                title=clean_text(result.title, MAX_TITLE_CHARS) or host,
                url=url,
                snippet=clean_text(result.snippet, MAX_SNIPPET_CHARS),
                date=_clean_date(result.date),
                source=clean_text(result.source, MAX_SOURCE_CHARS) or host,
            ),
        )
    return tuple(cleaned.values())


def clean_text(text: str, max_chars: int) -> str:
    """Return a text on one line without HTML, terminal sequences and invisible characters."""
    text = re.sub(_TAG, lambda tag: "" if tag["inline"] else " ", text[:_MAX_FIELD_CHARS])
    text = _ANSI.sub("", html.unescape(text))
    text = "".join(" " if char.isspace() else char for char in text)
    visible = "".join(char for char in text if char == " " or not is_invisible(char))
    return truncate_line(visible, max_chars)


def _clean_url(text: str) -> str:
    """Return a URL in ASCII, "" if it is too long or cannot be fetched."""
    try:
        url = str(PublicUrl.parse(text))
    except ToolError:
        return ""
    return url if len(url) <= MAX_URL_CHARS else ""


def _is_within(host: str, domain: str) -> bool:
    return not domain or host == domain or host.endswith(f".{domain}")


def _clean_date(text: str) -> str:
    """Return a date of ISO 8601 or RFC 5322 as 2026-11-24, "" if it is neither."""
    for parse in (parse_instant, parsedate_to_datetime):
        try:
            moment = parse(text.strip())
        except (ValueError, TypeError, OverflowError):
            continue
        try:
            return (moment.astimezone(UTC) if moment.tzinfo else moment).date().isoformat()
        except OverflowError:  # in the years 1 and 9999
            continue
    return ""
