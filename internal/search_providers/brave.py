"""Brave Search.

Its API: https://api-dashboard.search.brave.com/app/documentation/web-search/query
"""

from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlencode

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

_FRESHNESS: dict[Recency, str] = {"day": "pd", "week": "pw", "month": "pm", "year": "py"}


class _Profile(msgspec.Struct):
    name: str | None = None


class _Item(msgspec.Struct):
    url: str
    title: str
    description: str | None = None
    page_age: str | None = None
    profile: _Profile | None = None


class _Web(msgspec.Struct):
    results: list[Any]


class _Response(msgspec.Struct):
    type: Literal["search"]
    web: _Web | None = None  # missing if there are no results


@dataclass(frozen=True, kw_only=True)
class Brave(SearchProvider):
    """The web search of Brave."""

    name = "brave"
    title = "Brave Search"
    key_variable = "BRAVE_API_KEY"

    address: str = "https://api.search.brave.com"

    def request(self, query: SearchQuery) -> SearchRequest:
        """Return the request for a query."""
        parameters = {
            "q": query.text_with_site,
            "count": str(query.limit),
            "result_filter": "web",
            "text_decorations": "false",
        }
        if query.recency:
            parameters["freshness"] = _FRESHNESS[query.recency]
        headers = {"Accept": "application/json", "X-Subscription-Token": self._secret()}
        return SearchRequest(f"{self.address}/res/v1/web/search?{urlencode(parameters)}", headers)

    def read(self, body: bytes) -> list[SearchResult]:
        """Return the results in a response."""
        web = decode_response(body, _Response).web
        return [
            SearchResult(
                item.title,
                item.url,
                item.description or "",
                item.page_age or "",
                (item.profile and item.profile.name) or "",
            )
            for item in convert_items(web.results if web else [], _Item)
        ]
