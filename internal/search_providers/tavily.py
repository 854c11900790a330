"""Tavily.

Its API: https://docs.tavily.com/documentation/api-reference/endpoint/search
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from internal.search_providers.provider import (
    SearchProvider,
    SearchQuery,
    SearchRequest,
    SearchResult,
    convert_items,
    decode_response,
)


class _Item(msgspec.Struct):
    url: str
    title: str
    content: str | None = None
    published_date: str | None = None


class _Response(msgspec.Struct):
    results: list[Any]


@dataclass(frozen=True, kw_only=True)
class Tavily(SearchProvider):
    """The search of Tavily, with the basic depth, which costs one credit."""

    name = "tavily"
    title = "Tavily"
    key_variable = "TAVILY_API_KEY"

    address: str = "https://api.tavily.com"

    def request(self, query: SearchQuery) -> SearchRequest:
        """Return the request for a query."""
        body = {
            "query": query.text,
            "max_results": query.limit,
            "time_range": query.recency,
            "include_domains": [query.domain] if query.domain else None,
        }
        return self._post("/search", {"Authorization": f"Bearer {self._secret()}"}, body)

    def read(self, body: bytes) -> list[SearchResult]:
        """Return the results in a response."""
        items = convert_items(decode_response(body, _Response).results, _Item)
        return [
            SearchResult(item.title, item.url, item.content or "", item.published_date or "")
            for item in items
        ]
