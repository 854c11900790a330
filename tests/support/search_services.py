"""The search providers as tests serve them: requests that they accept and responses they send."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from internal.search_providers.provider import SearchProvider
from internal.search_providers.registry import PROVIDERS
from tests.support.http_site import HttpSite

KEY = "search-canary-0123456789"
HIT: dict[str, str] = {
    "title": "Task groups",
    "url": "https://docs.example.org/asyncio",
    "snippet": "Wait for all of them.",
    "date": "2026-11-03",
    "source": "Example docs",
}
Hit = Mapping[str, str]


@dataclass(frozen=True)
class SearchService:
    """HTTP protocol of a search provider.

    `item` and `response` build its JSON for a result and for a list of results. `parameters` is the
    request for a search for "task groups" with limit 3 within a week on docs.example.org.
    """

    path: str
    headers: dict[str, str]
    parameters: dict[str, Any]
    item: Callable[[Hit], dict[str, Any]]
    response: Callable[[list[Any]], dict[str, Any]]
    method: str = "POST"
    has_date: bool = True
    has_source: bool = False


SERVICES: dict[str, SearchService] = {
    "searxng": SearchService(
        "/search",
        {},
        {"q": "task groups site:docs.example.org", "format": "json", "time_range": "week"},
        lambda hit: {
            "url": hit["url"],
            "title": hit["title"],
            "content": hit["snippet"],
            "publishedDate": f"{hit['date']}T00:00:00",
            "engine": "duckduckgo",
            "engines": ["duckduckgo", "brave"],
            "score": 4.0,
            "category": "general",
        },
        lambda items: {
            "query": "task groups",
            "number_of_results": 0,
            "results": items,
            "answers": [],
            "suggestions": [],
            "unresponsive_engines": [],
        },
        method="GET",
    ),
    "brave": SearchService(
        "/res/v1/web/search",
        {"X-Subscription-Token": KEY},
        {
            "q": "task groups site:docs.example.org",
            "count": "3",
            "result_filter": "web",
            "text_decorations": "false",
            "freshness": "pw",
        },
        lambda hit: {
            "type": "search_result",
            "url": hit["url"],
            "title": hit["title"],
            "description": hit["snippet"],
            "age": "3 weeks ago",
            "page_age": f"{hit['date']}T09:30:00",
            "profile": {"name": hit["source"], "url": hit["url"], "img": "https://imgs.example"},
        },
        lambda items: {
            "type": "search",
            "query": {"original": "task groups"},
            **({"web": {"type": "search", "results": items}} if items else {}),
        },
        method="GET",
        has_source=True,
    ),
    "tavily": SearchService(
        "/search",
        {"Authorization": f"Bearer {KEY}"},
        {
            "query": "task groups",
            "max_results": 3,
            "time_range": "week",
            "include_domains": ["docs.example.org"],
        },
        lambda hit: {
            "url": hit["url"],
            "title": hit["title"],
            "content": hit["snippet"],
            "score": 0.8,
            "raw_content": None,
            "published_date": "Tue, 03 Nov 2026 08:00:00 GMT",
        },
        lambda items: {"query": "task groups", "images": [], "results": items},
    ),
    "exa": SearchService(
        "/search",
        {"x-api-key": KEY},
        {
            "query": "task groups",
            "numResults": 3,
            "includeDomains": ["docs.example.org"],
            "contents": {"highlights": True},
        },
        lambda hit: {
            "id": hit["url"],
            "url": hit["url"],
            "title": hit["title"],
            "publishedDate": f"{hit['date']}T00:00:00.000Z",
            "author": None,
            "highlights": [hit["snippet"]],
        },
        lambda items: {"requestId": "b5947044", "results": items},
    ),
    "bocha": SearchService(
        "/v1/web-search",
        {"Authorization": f"Bearer {KEY}"},
        {
            "query": "task groups",
            "count": 3,
            "freshness": "oneWeek",
            "include": "docs.example.org",
            "summary": True,
        },
        lambda hit: {
            "id": "https://api.bochaai.com/v1/#WebPages.0",
            "name": hit["title"],
            "url": hit["url"],
            "snippet": "shorter",
            "summary": hit["snippet"],
            "siteName": hit["source"],
            "datePublished": f"{hit['date']}T11:58:00+08:00",
            "language": None,
        },
        lambda items: {
            "code": 200,
            "log_id": "e02ce8d18c71d14f",
            "msg": None,
            "data": {"_type": "SearchResponse", "webPages": {"value": items}, "images": None},
        },
        has_source=True,
    ),
}


def provider_at(name: str, site: HttpSite, folder: str = "") -> SearchProvider:
    """Return a provider with a key whose address is a folder of a local server."""
    (kind,) = (each for each in PROVIDERS if each.name == name)
    address = f"http://127.0.0.1:{site.port}{folder}"
    return kind(address=address, key=SecretStr(KEY) if kind.key_variable else None)


def serve_results(name: str, site: HttpSite, *hits: Hit, folder: str = "") -> None:
    """Let a local server answer as a provider with these results."""
    service = SERVICES[name]
    body = json.dumps(service.response([service.item(hit) for hit in hits])).encode()
    site.page(folder + service.path, body, "application/json; charset=utf-8")
