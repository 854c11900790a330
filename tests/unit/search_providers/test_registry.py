"""The contract of all search providers, each over a real connection."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from internal.agent.domain.errors import ToolError
from internal.search_providers.provider import (
    MAX_ITEMS,
    Recency,
    SearchProvider,
    SearchQuery,
    SearchResult,
)
from internal.search_providers.registry import PROVIDERS
from internal.tools.http_urls import PublicUrl
from internal.tools.web_search.results import clean
from tests.support.http_site import HttpSite, local_fetcher
from tests.support.search_services import HIT, KEY, SERVICES, provider_at, serve_results

QUERY = SearchQuery("task groups", 3, "week", "docs.example.org")
NAMES = [kind.name for kind in PROVIDERS]


async def ask(provider: SearchProvider, query: SearchQuery) -> list[SearchResult]:
    request = provider.request(query)
    url = PublicUrl.parse(request.url)
    return provider.read((await local_fetcher().send(url, request.headers, request.body)).body)


def parameters(site: HttpSite) -> dict[str, Any]:
    """Return the parameters of the last request, from its query or its body."""
    body = site.bodies[-1]
    return dict(json.loads(body) if body else parse_qsl(urlsplit(site.asked[-1][0]).query))


def test_every_provider_has_a_service_to_test_it_with() -> None:
    assert list(SERVICES) == NAMES


@pytest.mark.parametrize("name", NAMES)
async def test_a_search_is_asked_for_as_the_api_documents(site: HttpSite, name: str) -> None:
    service = SERVICES[name]
    serve_results(name, site, HIT)
    await ask(provider_at(name, site), QUERY)
    path, headers = site.asked[-1]
    assert urlsplit(path).path == service.path
    assert headers["Accept"] == "application/json"
    assert {name: headers[name] for name in service.headers} == service.headers
    assert bool(site.bodies[-1]) == (service.method == "POST")
    found = parameters(site)
    found.pop("startPublishedDate", None)  # depends on the time
    assert found == service.parameters
    assert KEY not in repr(provider_at(name, site)) + repr(provider_at(name, site).request(QUERY))


@pytest.mark.parametrize("name", NAMES)
async def test_a_search_without_options_names_none(site: HttpSite, name: str) -> None:
    serve_results(name, site, HIT)
    await ask(provider_at(name, site), SearchQuery("北京 天气 & more", 8))
    found = parameters(site)
    optional = {"freshness", "time_range", "include", "include_domains", "includeDomains"}
    assert {key: found[key] for key in found.keys() & optional} in ({}, {"freshness": "noLimit"})
    assert found.get("q", found.get("query")) == "北京 天气 & more"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("recency", ["day", "week", "month", "year"])
async def test_each_recency_has_a_value_of_its_own(
    site: HttpSite, name: str, recency: Recency
) -> None:
    serve_results(name, site)
    await ask(provider_at(name, site), SearchQuery("a", 1, recency))
    found = parameters(site)
    value = found.get("time_range") or found.get("freshness") or found["startPublishedDate"]
    days = {"day": 1, "week": 7, "month": 31, "year": 366}[recency]
    start = datetime.now(UTC) - timedelta(days=days)
    assert value in {
        recency,
        f"p{recency[0]}",
        f"one{recency.capitalize()}",
        start.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        (start - timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
    }


@pytest.mark.parametrize("name", NAMES)
async def test_results_are_read_in_their_order(site: HttpSite, name: str) -> None:
    service = SERVICES[name]
    second = {**HIT, "url": "https://docs.example.org/b", "title": "第二"}
    serve_results(name, site, HIT, second)
    results = await ask(provider_at(name, site), QUERY)
    assert [result.title for result in results] == ["Task groups", "第二"]
    first = clean(QUERY, results)[0]
    assert (first.url, first.snippet) == (HIT["url"], HIT["snippet"])
    assert first.date == (HIT["date"] if service.has_date else "")
    assert first.source == (HIT["source"] if service.has_source else "docs.example.org")


@pytest.mark.parametrize("name", NAMES)
def test_no_results_are_no_error(name: str) -> None:
    provider = provider_at(name, HttpSite())
    assert provider.read(json.dumps(SERVICES[name].response([])).encode()) == []


@pytest.mark.parametrize("name", NAMES)
def test_results_of_wrong_types_are_left_out(name: str) -> None:
    provider, service = provider_at(name, HttpSite()), SERVICES[name]
    good = service.item(HIT)
    wrong: list[Any] = [None, 7, [], "x", {**good, "url": 3}, {**good, "url": None}, {}]
    body = service.response([*wrong, good])
    assert [each.url for each in provider.read(json.dumps(body).encode())] == [HIT["url"]]
    with pytest.raises(ToolError, match="not the JSON of its API"):
        provider.read(json.dumps(service.response(wrong)).encode())
    many = service.response([good] * (MAX_ITEMS + 1))
    assert len(provider.read(json.dumps(many).encode())) == MAX_ITEMS


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"null", b"[]", b"{}", b'"text"', b'{"results": 1}', b'{"error": "no"}'),
        *(b'{"type": "search", "web": []}', b'{"data": []}', b"\xff\xfe", b"{" * 5_000),
        b'{"results": [',
    ],
)
def test_other_responses_are_errors(name: str, body: bytes) -> None:
    with pytest.raises(ToolError, match="not the JSON of its API"):
        provider_at(name, HttpSite()).read(body)


@pytest.mark.parametrize("kind", PROVIDERS)
def test_a_provider_without_its_key_or_url_says_what_is_missing(
    kind: type[SearchProvider],
) -> None:
    missing = kind(address="").missing
    assert (kind.key_variable or "tools.web_search.searxng_url") in missing
    assert provider_at(kind.name, HttpSite()).missing == ""


def test_searxng_without_a_working_engine_is_an_error() -> None:
    response = {**SERVICES["searxng"].response([]), "unresponsive_engines": [["brave", "timeout"]]}
    with pytest.raises(ToolError, match="none of its engines answered"):
        provider_at("searxng", HttpSite()).read(json.dumps(response).encode())
