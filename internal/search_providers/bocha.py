"""Bocha (博查), which covers the Chinese web.

Its API: https://open.bochaai.com, in the form of Bing's.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from internal.search_providers.provider import (
    Recency,
    SearchProvider,
    SearchQuery,
    SearchRequest,
    SearchResult,
    convert_items,
    decode_response,
)

_FRESHNESS: dict[Recency, str] = {
    "day": "oneDay",
    "week": "oneWeek",
    "month": "oneMonth",
    "year": "oneYear",
}


class _Item(msgspec.Struct):
    url: str
    name: str
    snippet: str | None = None
    summary: str | None = None
    siteName: str | None = None  # noqa: N815 - the name in the API
    datePublished: str | None = None  # noqa: N815 - the name in the API


class _Pages(msgspec.Struct):
    value: list[Any]


class _Data(msgspec.Struct):
    webPages: _Pages | None = None  # noqa: N815 - the name in the API


class _Response(msgspec.Struct):
    data: _Data


@dataclass(frozen=True, kw_only=True)
class Bocha(SearchProvider):
    """The web search of Bocha."""

    name = "bocha"
    title = "Bocha"
    key_variable = "BOCHA_API_KEY"

    address: str = "https://api.bochaai.com"

    def request(self, query: SearchQuery) -> SearchRequest:
        """Return the request for a query."""
        body = {
            "query": query.text,
            "count": query.limit,
            "freshness": _FRESHNESS[query.recency] if query.recency else "noLimit",
            "include": query.domain,
            "summary": True,
        }
        return self._post("/v1/web-search", {"Authorization": f"Bearer {self._secret()}"}, body)

    def read(self, body: bytes) -> list[SearchResult]:
        """Return the results in a response."""
        pages = decode_response(body, _Response).data.webPages
        return [
            SearchResult(
                item.name,
                item.url,
                item.summary or item.snippet or "",
                item.datePublished or "",
                item.siteName or "",
            )
            for item in convert_items(pages.value if pages else [], _Item)
        ]
