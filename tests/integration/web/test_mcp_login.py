"""A login to an MCP server whose browser comes back to the gateway."""

import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from internal.agent.domain.errors import Forbidden
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from tests.support.anthropic_server import Call, Reply, seen_in
from tests.support.authorization_server import ProtectedServer, browse, protected_server
from tests.support.mcp_agent import define, review
from tests.support.working_web_app import WorkingWebApp, open_working_web_app

OPERATOR = Principal("lark:cli_a1:ou_operator", "Odo", frozenset({"talk", "operate"}))


class Setting(NamedTuple):
    """A gateway, and a server that demands a login."""

    app: WorkingWebApp
    server: ProtectedServer

    async def start(self, name: str = "docs") -> Any:
        """Start a login as the owner."""
        return await self.app.client.post(f"/api/mcp/servers/{name}/login", {})


@pytest.fixture(name="setting")
async def _setting(home: Path) -> AsyncGenerator[Setting]:
    async with protected_server() as server:
        define(home, "docs", {**server.entry, "login": "shared"})
        define(home, "own", {**server.entry, "login": "personal"})
        define(home, "open", {"url": server.url, "allow_private_networks": True})
        async with open_working_web_app(home, [], {}) as app:
            yield Setting(app, server)


async def test_the_browser_of_the_owner_signs_in(setting: Setting) -> None:
    started = (await setting.start()).json()
    assert started["seconds"] == 600
    (redirect,) = parse_qs(urlsplit(started["url"]).query)["redirect_uri"]
    assert redirect == f"http://127.0.0.1:{setting.app.client.port}/oauth/mcp/callback"
    assert await browse(started["url"]) == "Signed in to docs. You can close this window."
    report = (await setting.app.client.post("/api/mcp/servers/docs/test", {})).json()
    assert [tool["name"] for tool in report["tools"]] == ["mcp__docs__echo", "mcp__docs__leak"]


async def test_an_answer_counts_once_and_with_its_state_only(setting: Setting) -> None:
    started = (await setting.start()).json()
    callback = f"http://127.0.0.1:{setting.app.client.port}/oauth/mcp/callback"
    async with httpx.AsyncClient(trust_env=False) as client:
        for query in ("code=evil&state=guessed", "state=", "code=evil", ""):
            refused = await client.get(f"{callback}?{query}")
            assert refused.status_code in {400, 404}
        location = (await client.get(started["url"])).headers["location"]
        first = await client.get(f"{location}&session_state=more")
        second = await client.get(location)
    assert (first.status_code, second.status_code) == (200, 404)
    assert "it has been used" in second.json()["error"]["message"]


async def test_a_refusal_of_the_person_is_told(setting: Setting) -> None:
    setting.server.authorization.denies = True
    started = (await setting.start()).json()
    assert "the sign-in was refused: access_denied" in await browse(started["url"])


async def test_what_accepts_no_login_is_explained(setting: Setting) -> None:
    assert (await setting.start("none")).status == 404
    refused = await setting.start("open")
    assert refused.status == 409
    assert "neither login: shared nor login: personal" in refused.error["message"]


@pytest.mark.slow
async def test_a_run_asks_its_person_to_sign_in_and_goes_on(home: Path, work: Path) -> None:
    call = Reply(calls=[Call("mcp__own__echo", {"text": "hi"})])
    script = [call, Reply("one"), call, Reply("two"), call, Reply("three")]
    async with (
        protected_server() as server,
        open_working_web_app(home, script, {"LARKSPUR_AGENT__GATES": "off"}) as app,
    ):
        define(home, "own", {**server.entry, "login": "personal"})
        servers, core = app.core.services.mcp_servers, app.core
        started = (await app.client.post("/api/mcp/servers/own/login", {})).json()
        await browse(started["url"])
        await review(core, "own")
        servers.sign_out("own", LOCAL_OWNER.id)
        await servers.close("own")

        async def start() -> Any:
            return await core.submit("go", workspace=str(work))

        in_terminal = await start()  # no browser can come back
        await core.end_of(in_terminal)
        servers.login_redirect = f"http://127.0.0.1:{app.client.port}/oauth/mcp/callback"
        signed_in = await start()
        first = await core.asked(signed_in)
        await core.answer(first["question_id"])  # without signing in
        second = await core.asked(signed_in, 2)
        await browse(address_in(second))
        await core.answer(second["question_id"])
        await core.end_of(signed_in)
        servers.sign_out("own", LOCAL_OWNER.id)
        await servers.close("own")
        declined = await start()
        third = await core.asked(declined)
        await core.answer(third["question_id"], "reject")
        await core.end_of(declined)
        results = [seen_in(core.model.requests[n]).last_result or "" for n in (1, 3, 5)]
        log = str([await core.durable(each) for each in (in_terminal, signed_in, declined)])
    assert first["title"] == "The MCP server “own” asks: sign in to own with your own account"
    assert address_in(first) != address_in(second)
    assert "sign in to own with: larkspur mcp login own" in results[0]
    assert "hi" in results[1]
    assert "sign in to own with: larkspur mcp login own" in results[2]
    assert "canary-token" not in log


def address_in(asked: dict[str, Any]) -> str:
    (found,) = re.findall(r"http://\S+", asked["body"])
    return str(found)


async def test_others_sign_in_for_themselves_only(setting: Setting) -> None:
    gateway = setting.app.services.gateway
    with pytest.raises(Forbidden):
        await gateway.mcp.start_login("docs", OPERATOR, "http://127.0.0.1:1/callback")
    found = await gateway.mcp.start_login("own", OPERATOR, "http://127.0.0.1:1/callback")
    assert found.url.startswith(setting.server.authorization.origin)
