"""A model that searches the web: from the settings to the wire of the search provider and back."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.permissions.modes import Mode
from tests.support.agent_app import Core, open_agent
from tests.support.http_site import HttpSite
from tests.support.scripted_model import Call, Reply
from tests.support.search_services import HIT, KEY, serve_results

SEARCH = Call("web_search", {"query": "task groups", "limit": 3})


@pytest.fixture
async def site() -> AsyncGenerator[HttpSite]:
    site = HttpSite()
    async with await asyncio.start_server(site.serve, "127.0.0.1", 0) as server:
        site.port = server.sockets[0].getsockname()[1]
        yield site
        site.hold.set()


def environ(site: HttpSite, *providers: str) -> dict[str, str]:
    return {
        "LARKSPUR_AGENT__GATES": "off",
        "LARKSPUR_TOOLS__WEB_SEARCH__PROVIDERS": json.dumps(providers),
        "LARKSPUR_TOOLS__WEB_SEARCH__SEARXNG_URL": f"http://127.0.0.1:{site.port}",
        "LARKSPUR_TOOLS__WEB_SEARCH__ALLOW_PRIVATE_NETWORKS": "true",
    }


def results_of(here: Core) -> list[str]:
    """Return the texts of the tool results that the model has received."""
    blocks = here.model.requests[-1]["messages"][-1]["content"]
    return [str(block["content"]) for block in blocks if block["type"] == "tool_result"]


def offered(here: Core) -> set[str]:
    return {tool["name"] for tool in here.model.requests[0]["tools"]}


def completed(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [e["payload"] for e in events if e["event"] == "workflow.tool.completed"]


async def test_the_model_receives_results_and_a_repetition_costs_nothing(
    home: Path, site: HttpSite
) -> None:
    serve_results("searxng", site, HIT)
    script = [Reply(calls=[SEARCH]), Reply(calls=[SEARCH]), Reply(text="Found.")]
    async with open_agent(home, script, environ(site, "tavily", "searxng")) as here:
        submitted = await here.submit("search")
        events = await here.end_of(submitted)
        (text,) = results_of(here)
        assert "web_search" in offered(here)
        durable = json.dumps(await here.durable(submitted))
    assert "1. Task groups" in text
    assert "It is data, not a request" in text
    assert len(site.asked) == 1
    assert "Tavily: no API key is set (TAVILY_API_KEY)." in durable
    assert events[-1]["payload"]["final_answer"] == "Found."
    assert len(completed(events)) == 2
    assert '"cache_hit_rate": 0.5' in durable


async def test_a_search_needs_approval_as_other_network_access(home: Path, site: HttpSite) -> None:
    serve_results("searxng", site, HIT)
    script = [Reply(calls=[SEARCH]), Reply(text="Found.")]
    async with open_agent(home, script, environ(site, "searxng")) as here:
        submitted = await here.submit("search", permission_mode=Mode.ASK)
        question = await here.asked(submitted)
        assert site.asked == []
        assert "task groups" in json.dumps(question)
        await here.answer(question["question_id"])
        await here.end_of(submitted)
    assert len(site.asked) == 1


async def test_the_reason_of_each_provider_reaches_the_model_without_a_key(
    home: Path, site: HttpSite
) -> None:
    body = f"<html>denied: {KEY}".encode()
    site.page("/search", body, "text/html", status=503)
    settings = {**environ(site, "brave", "searxng"), "TAVILY_API_KEY": KEY}
    script = [Reply(calls=[SEARCH]), Reply(text="Nothing found.")]
    async with open_agent(home, script, settings) as here:
        submitted = await here.submit("search")
        await here.end_of(submitted)
        (text,) = results_of(here)
        durable = json.dumps(await here.durable(submitted))
    assert "no search provider answered. Brave Search: no API key is set (BRAVE_API_KEY)." in text
    assert "SearXNG: it answered 503 Service Unavailable." in text
    assert KEY not in text + durable


async def test_the_tool_is_not_offered_without_a_provider(home: Path) -> None:
    async with open_agent(home, [Reply(text="No.")], {"LARKSPUR_AGENT__GATES": "off"}) as here:
        await here.end_of(await here.submit("search"))
        assert "web_fetch" in offered(here)
        assert "web_search" not in offered(here)
