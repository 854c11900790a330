"""SearXNG, a metasearch engine that people host themselves.

Its API: https://docs.searxng.org/dev/search_api.html
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import msgspec

from internal.agent.domain.errors import ToolError
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
    publishedDate: str | None = None  # noqa: N815 - the name in the API


class _Response(msgspec.Struct):
    results: list[Any]
    unresponsive_engines: list[Any] = []


@dataclass(frozen=True, kw_only=True)
class SearxNg(SearchProvider):
    """An instance of SearXNG. It has no parameter for the number of results."""

    name = "searxng"
    title = "SearXNG"
    key_variable = None

    @property
    def missing(self) -> str:
        """The reason why the provider cannot be asked, "" if it can."""
        return "" if self.address else "no URL is set (tools.web_search.searxng_url)"

    @property
    def refusal_advice(self) -> str:
        """Advice for an answer with status 401 or 403."""
        return "its settings.yml must list json under search.formats"

    def request(self, query: SearchQuery) -> SearchRequest:
        """Return the request for a query."""
        parameters = {"q": query.text_with_site, "format": "json"}
        if query.recency:
            parameters["time_range"] = query.recency
        url = f"{self.address}/search?{urlencode(parameters)}"
        return SearchRequest(url, {"Accept": "application/json"})

    def read(self, body: bytes) -> list[SearchResult]:
        """Return the results in a response."""
        response = decode_response(body, _Response)
        if not response.results and response.unresponsive_engines:
            raise ToolError("none of its engines answered")
        return [
            SearchResult(item.title, item.url, item.content or "", item.publishedDate or "")
            for item in convert_items(response.results, _Item)
        ]
