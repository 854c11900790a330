"""Exa.

Its API: https://docs.exa.ai/reference/search
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
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

_DAYS: dict[Recency, int] = {"day": 1, "week": 7, "month": 31, "year": 366}


class _Item(msgspec.Struct):
    url: str
    title: str | None = None
    publishedDate: str | None = None  # noqa: N815 - the name in the API
    highlights: list[str] = []


class _Response(msgspec.Struct):
    results: list[Any]


@dataclass(frozen=True, kw_only=True)
class Exa(SearchProvider):
    """The search of Exa. Snippets are its highlights."""

    name = "exa"
    title = "Exa"
    key_variable = "EXA_API_KEY"

    address: str = "https://api.exa.ai"

    def request(self, query: SearchQuery) -> SearchRequest:
        """Return the request for a query."""
        body = {
            "query": query.text,
            "numResults": query.limit,
            "includeDomains": [query.domain] if query.domain else None,
            "startPublishedDate": _start(query.recency) if query.recency else None,
            "contents": {"highlights": True},
        }
        return self._post("/search", {"x-api-key": self._secret()}, body)

    def read(self, body: bytes) -> list[SearchResult]:
        """Return the results in a response."""
        items = convert_items(decode_response(body, _Response).results, _Item)
        return [
            SearchResult(
                item.title or "", item.url, " … ".join(item.highlights), item.publishedDate or ""
            )
            for item in items
        ]


def _start(recency: Recency) -> str:
    start = datetime.now(UTC) - timedelta(days=_DAYS[recency])
    return start.strftime("%Y-%m-%dT%H:%M:%S.000Z")
