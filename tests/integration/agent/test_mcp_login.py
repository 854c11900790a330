"""Logins to MCP servers in runs: no token leaks, and a lost login names its remedy."""

import json
import logging
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent_app import Core, open_agent
from tests.support.anthropic_server import Call, Reply
from tests.support.authorization_server import (
    CANARY,
    CLIENT_ID,
    CLIENT_SECRET,
    Browser,
    ProtectedServer,
    protected_server,
)
from tests.support.mcp_agent import NO_GATES, define, go, payloads, review

SIGN_IN = "sign in to docs with: larkspur mcp login docs"
ECHO = Reply(calls=[Call("mcp__docs__echo", {"text": "hi"})])


@pytest.fixture(name="server")
async def _server() -> AsyncGenerator[ProtectedServer]:
    async with protected_server() as server:
        yield server


async def sign_in(here: Core) -> None:
    browser = Browser()
    definition = here.services.mcp_servers.files.read().servers["docs"]
    await here.services.mcp_servers.sign_in(definition, browser.show)
    await browser.pages()


def assert_nothing_leaks(home: Path, secrets: list[str], *texts: str) -> None:
    """Check that no secret is in a text, or in a file of the home folder and its neighbours."""
    found = [path for path in home.parent.rglob("*") if path.is_file() and path.name != "mcp.json"]
    assert any(path.name == "larkspur.db" for path in found)
    contents = [*(path.read_bytes() for path in found), *(text.encode() for text in texts)]
    for secret in secrets:
        assert not any(secret.encode() in content for content in contents)


@pytest.mark.parametrize("login", ["shared", "personal"])
@pytest.mark.first_rows(1)
async def test_the_token_of_a_login_is_in_no_event_log_file_request_or_child(
    home: Path,
    work: Path,
    server: ProtectedServer,
    caplog: pytest.LogCaptureFixture,
    login: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    define(home, "docs", {**server.entry, "login": login})
    script = [
        ECHO,
        Reply(calls=[Call("mcp__docs__leak", {})]),
        Reply(calls=[Call("shell", {"command": "env; cat /proc/self/environ"})]),
        Reply("done"),
    ]
    async with open_agent(home, script, NO_GATES) as here:
        await sign_in(here)
        await review(here, "docs")
        events = await go(here, work)
        server.authorization.revoke()
        tokens = [*server.authorization.refresh]
        requests = json.dumps([str(request) for request in here.model.requests])
    echo, leak, shell = payloads(events, "tool.completed")
    assert "hi" in echo["result"]
    assert "•••" in leak["result"]
    assert "PATH=" in shell["result"]
    assert len(tokens) == 1
    assert_nothing_leaks(home, [CANARY, *tokens], requests, json.dumps(events), caplog.text)


async def test_the_secret_of_a_machine_does_not_leak(
    home: Path, work: Path, server: ProtectedServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "scopes": ["read"]}
    issuer = server.authorization.origin
    define(
        home, "docs", {**server.entry, "login": "client_credentials", **client, "issuer": issuer}
    )
    script = [ECHO, Reply(calls=[Call("mcp__docs__leak", {})]), Reply("done")]
    async with open_agent(home, script, NO_GATES) as here:
        report = await review(here, "docs")
        events = await go(here, work)
    assert report.login == "client_credentials"
    echo, leak = payloads(events, "tool.completed")
    assert ("hi" in echo["result"], "•••" in leak["result"]) == (True, True)
    assert_nothing_leaks(home, [CANARY, CLIENT_SECRET], json.dumps(events), caplog.text)


async def test_a_call_without_a_login_says_how_to_sign_in(
    home: Path, work: Path, server: ProtectedServer
) -> None:
    define(home, "docs", {**server.entry, "login": "personal"})
    script = [ECHO, Reply("one"), ECHO, Reply("two"), ECHO, Reply("three")]
    async with open_agent(home, script, NO_GATES) as here:
        await sign_in(here)
        await review(here, "docs")
        here.services.mcp_servers.sign_out("docs", "local")
        await here.services.mcp_servers.close("docs")
        without = error_of(await go(here, work))
        await sign_in(here)
        (again,) = payloads(await go(here, work), "tool.completed")
        server.authorization.revoke(refresh=True)
        revoked = error_of(await go(here, work))
    assert SIGN_IN in without
    assert "hi" in again["result"]
    assert SIGN_IN in revoked


def error_of(events: list[dict[str, Any]]) -> str:
    (completed,) = payloads(events, "tool.completed")
    return str(completed["error"])
