"""MCP servers over HTTP: the list, the test, the decision, and the tools of a later run."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.errors import Forbidden
from internal.agent.domain.principals import Principal
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.requests import RequestContext
from internal.channels.web.routes import reviews
from internal.channels.web.routes.reviews import ReviewRequest
from internal.channels.web.schemas import EmptyRequest
from tests.support.anthropic_server import Reply
from tests.support.mcp_agent import define
from tests.support.mcp_servers import hostile_entry
from tests.support.working_web_app import WorkingWebApp, open_working_web_app

SERVER = "/api/mcp/servers/tested"
OPERATOR = Principal("lark:cli_a1:ou_operator", "Odo", frozenset({"talk", "operate"}))


@pytest.fixture
async def app(home: Path) -> AsyncGenerator[WorkingWebApp]:
    secret = {"MY_TOKEN": "canary-99cc77dd"}
    define(home, "tested", {**hostile_entry("plain"), "env": secret, "icon": "x"})
    script = [Reply("before"), Reply("after")]
    environ = {"LARKSPUR_AGENT__GATES": "off"}
    async with open_working_web_app(home, script, environ) as opened:
        yield opened


async def listed(app: WorkingWebApp) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await app.client.get("/api/mcp/servers")).json()["servers"]
    return found


def files_with(folder: Path, text: str) -> list[Path]:
    found = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in found if text.encode() in path.read_bytes()]


async def test_an_accepted_server_is_offered_to_the_next_run(
    app: WorkingWebApp, home: Path
) -> None:
    (before,) = await listed(app)
    assert before["state"] == "not reviewed"
    assert before["target"].endswith("mcp_server.py plain")
    assert "unknown keys are ignored: icon" in before["warnings"][0]
    known = (await app.client.get(f"{SERVER}/review")).json()
    assert (known["is_listed"], known["tools"]) == (False, [])
    refused = await app.client.post(
        f"{SERVER}/review", {"sha256": before["sha256"], "accept": True}
    )
    assert refused.status == 409
    assert "test it first" in refused.error["message"]
    report = (await app.client.post(f"{SERVER}/test", {})).json()
    assert report["variables"] == ["MY_TOKEN"]
    assert report["tools"][0] == {
        "name": "mcp__tested__echo",
        "description": "Says it again.",
        "risk": "exec",
        "state": "not reviewed",
    }
    await app.end_of(await app.task())
    sha256 = report["server"]["sha256"]
    reply = await app.client.post(f"{SERVER}/review", {"sha256": sha256, "accept": True})
    assert (reply.status, reply.json()["state"], reply.json()["tools"]) == (200, "offered", 5)
    await app.end_of(await app.task())
    offered = ["mcp__tested__echo" in str(request["tools"]) for request in app.core.model.requests]
    assert offered == [False, True]
    reply = await app.client.post(f"{SERVER}/review", {"sha256": sha256, "accept": False})
    assert reply.json()["state"] == "not reviewed"
    entries = (await app.client.get("/api/audit")).json()["entries"][:2]
    assert [(each["action"], each["target"], each["detail"]) for each in entries] == [
        ("mcp.rejected", "tested", sha256),
        ("mcp.accepted", "tested", sha256),
    ]
    assert "canary-99cc77dd" not in str([known, report, await listed(app)])
    assert files_with(home, "canary-99cc77dd") == [home / "mcp.json"]


async def test_a_server_that_does_not_start_says_why(app: WorkingWebApp, home: Path) -> None:
    define(home, "broken", hostile_entry("exits"))
    define(home, "gone", {"command": "no-such-program"})
    for name, reason in (("broken", "it exited with 7"), ("gone", "there is no program")):
        reply = await app.client.post(f"/api/mcp/servers/{name}/test", {})
        assert reply.status == 409
        assert reason in reply.error["message"]
    assert (await app.client.post("/api/mcp/servers/other/test", {})).status == 404
    assert (await app.client.post(f"{SERVER}/review", {"sha256": "x"})).status == 400


async def test_only_the_owner_reads_commands_and_reviews(app: WorkingWebApp) -> None:
    def call(body: Any = None) -> ApiRequest[Any, Any]:
        """A request of a person whose credential this server does not accept yet."""
        context = RequestContext(
            {"method": "GET", "headers": []}, "r", is_public=False, principal=OPERATOR
        )
        path = {"name": "tested"}
        return ApiRequest(app.services, context, path, EmptyRequest(), body or EmptyRequest())

    for handler in (reviews.show_mcp_review, reviews.test_mcp_server):
        with pytest.raises(Forbidden):
            await handler(call())
    with pytest.raises(Forbidden):
        await reviews.review_mcp_server(call(ReviewRequest("0" * 64, accept=True)))
    (shown,) = (await reviews.list_mcp_servers(call())).servers
    assert (shown.name, shown.target, shown.warnings) == ("tested", "", [])
