"""Asking the search providers in order, over real connections."""

import json
from datetime import timedelta
from email.utils import format_datetime

import pytest

from internal.agent.domain.errors import ToolError
from internal.search_providers.provider import SearchProvider, SearchQuery
from internal.search_providers.registry import PROVIDERS
from internal.search_providers.tavily import Tavily
from internal.settings.settings import WebSearchSettings
from internal.tools.web_search.search import MAX_RESPONSE_BYTES, WebSearch
from larkspur.task_defaults import make_web_search
from tests.support.http_site import HttpSite, local_fetcher
from tests.support.movable_clock import MovableClock
from tests.support.search_services import HIT, KEY, SERVICES, provider_at, serve_results

QUERY = SearchQuery("task groups", 8)
NAMES = [kind.name for kind in PROVIDERS]


def search_with(
    *providers: SearchProvider, clock: MovableClock | None = None, timeout_seconds: float = 30.0
) -> WebSearch:
    fetcher = local_fetcher(timeout_seconds=timeout_seconds, max_bytes=MAX_RESPONSE_BYTES)
    return WebSearch(providers, fetcher, clock or MovableClock())


JSON = "application/json"
FAILURES: dict[str, tuple[int, bytes, str, str]] = {
    "rate limit": (429, b"{}", JSON, "it answered 429 Too Many Requests"),
    "outage": (503, b"", JSON, "it answered 503 Service Unavailable"),
    "bad gateway": (502, b"<html>", "text/html", "it answered 502 Bad Gateway"),
    "odd status": (599, b"{}", JSON, "it answered 599"),
    "html": (200, b"<!doctype html><p>Sign in", "text/html", "it answered with HTML"),
    "mislabelled html": (200, b" \n<html>", JSON, "it answered with HTML"),
    "cut json": (200, b'{"results": [{"ur', JSON, "not the JSON of its API"),
    "wrong types": (200, b'{"results": 3, "data": 4}', JSON, "not the JSON of its API"),
    "not text": (200, b"\xff\xfe\x00", JSON, "not the JSON of its API"),
    "huge": (200, b'{"a":"' + b"x" * MAX_RESPONSE_BYTES + b'"}', JSON, "is too long"),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("failure", FAILURES)
async def test_the_next_provider_is_asked_after_a_failure(
    site: HttpSite, name: str, failure: str
) -> None:
    status, body, kind, reason = FAILURES[failure]
    site.page("/broken" + SERVICES[name].path, body, kind, status=status)
    serve_results("tavily", site, HIT)
    broken = provider_at(name, site, "/broken")
    answer, cached = await search_with(broken, provider_at("tavily", site)).search(QUERY)
    assert (answer.provider, len(answer.results), cached) == ("Tavily", 1, False)
    (said,) = answer.failures
    assert said.startswith(f"{broken.title}: ")
    assert reason in said


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.first_rows(2)
async def test_a_slow_provider_is_left_after_its_timeout(site: HttpSite, name: str) -> None:
    serve_results("tavily", site, HIT)
    path = f"/hang{SERVICES[name].path}"
    site.answers[path] = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"
    slow = provider_at(name, site, "/hang")
    search = search_with(slow, provider_at("tavily", site), timeout_seconds=0.5)
    answer, _ = await search.search(QUERY)
    assert answer.failures == (f"{slow.title}: 127.0.0.1:{site.port} did not respond in 0.5 s.",)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_named(site: HttpSite, status: int) -> None:
    for name in ("tavily", "searxng"):
        site.page(f"/{name}{SERVICES[name].path}", b"{}", JSON, status=status)
    search = search_with(
        provider_at("tavily", site, "/tavily"), provider_at("searxng", site, "/searxng")
    )
    with pytest.raises(ToolError) as caught:
        await search.search(QUERY)
    said = str(caught.value)
    assert said.startswith("no search provider answered. Tavily: it answered 40")
    assert "check its API key (TAVILY_API_KEY)." in said
    assert "its settings.yml must list json under search.formats." in said
    assert KEY not in said


async def test_a_redirect_is_not_followed_with_the_key(site: HttpSite) -> None:
    site.redirect("/search", "/elsewhere")
    with pytest.raises(ToolError, match="it answered 302 Found"):
        await search_with(provider_at("tavily", site)).search(QUERY)
    assert [path for path, _ in site.asked] == ["/search"]


async def test_a_provider_without_a_key_is_not_asked(site: HttpSite) -> None:
    serve_results("exa", site, HIT)
    keyless = Tavily(address=f"http://127.0.0.1:{site.port}/tavily")
    answer, _ = await search_with(keyless, provider_at("exa", site)).search(QUERY)
    assert answer.failures == ("Tavily: no API key is set (TAVILY_API_KEY).",)
    assert [path for path, _ in site.asked] == ["/search"]


@pytest.mark.parametrize("in_date_form", [False, True])
async def test_a_provider_is_left_out_until_its_retry_after(
    site: HttpSite, *, in_date_form: bool
) -> None:
    clock = MovableClock()
    wait = format_datetime(clock.now() + timedelta(seconds=90)) if in_date_form else "90"
    site.page("/first/search", b"{}", JSON, f"Retry-After: {wait}", status=429)
    serve_results("exa", site, HIT)
    search = search_with(
        provider_at("tavily", site, "/first"), provider_at("exa", site), clock=clock
    )
    await search.search(SearchQuery("one", 8))
    answer, _ = await search.search(SearchQuery("two", 8))
    assert "Tavily: it asked for a pause, which lasts " in answer.failures[0]
    assert [path for path, _ in site.asked].count("/first/search") == 1
    serve_results("tavily", site, HIT, folder="/first")
    clock.advance(timedelta(seconds=91))
    answer, _ = await search.search(SearchQuery("three", 8))
    assert (answer.provider, answer.failures) == ("Tavily", ())


@pytest.mark.parametrize("wait", ["", "soon", "-5", "Tue, 99 Nov 2026 08:00:00 GMT", "9" * 400])
async def test_an_odd_retry_after_excludes_a_provider_for_a_day_at_most(
    site: HttpSite, wait: str
) -> None:
    clock = MovableClock()
    site.page("/search", b"{}", JSON, f"Retry-After: {wait}", status=503)
    search = search_with(provider_at("tavily", site), clock=clock)
    with pytest.raises(ToolError, match="503"):
        await search.search(QUERY)
    clock.advance(timedelta(days=1, seconds=1))
    with pytest.raises(ToolError, match="503"):
        await search.search(QUERY)


async def test_an_equal_query_is_answered_from_memory(site: HttpSite) -> None:
    serve_results("tavily", site, HIT)
    search = search_with(provider_at("tavily", site))
    same = [QUERY, SearchQuery("Task  GROUPS", 8)]
    others = [
        SearchQuery("task groups", 7),
        SearchQuery("task groups", 8, "day"),
        SearchQuery("task groups", 8, None, "docs.example.org"),
        SearchQuery("task OR groups", 8),
        SearchQuery("task or groups", 8),
    ]
    assert [(await search.search(query))[1] for query in (*same, *others)] == [
        *(False, True),
        *(False,) * 5,
    ]
    assert search.statistics == (1, 6)
    assert json.loads(site.bodies[0])["query"] == "task groups"


def test_no_search_is_made_without_a_usable_provider() -> None:
    clock = MovableClock()
    assert make_web_search(WebSearchSettings(), clock) is None
    assert make_web_search(WebSearchSettings(providers=("brave", "searxng")), clock) is None
    keyed = WebSearchSettings.model_validate({"keys": {"exa": KEY}})
    assert make_web_search(keyed, clock) is not None


async def test_a_private_address_needs_its_setting(site: HttpSite) -> None:
    serve_results("searxng", site, HIT)
    url = f"http://127.0.0.1:{site.port}"
    refused = make_web_search(WebSearchSettings(searxng_url=url), MovableClock())
    allowed = make_web_search(
        WebSearchSettings(searxng_url=url, allow_private_networks=True), MovableClock()
    )
    assert refused is not None
    assert allowed is not None
    with pytest.raises(ToolError, match=r"SearXNG: 127\.0\.0\.1 may not be fetched"):
        await refused.search(QUERY)
    assert site.asked == []
    assert (await allowed.search(QUERY))[0].provider == "SearXNG"
