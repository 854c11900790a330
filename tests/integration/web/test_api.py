"""The HTTP API through a real server on a real database."""

import base64
import hashlib
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from internal.agent.domain.events.types import LifecycleUpdated
from internal.agent.domain.messages import Message, Text, Thinking, ToolCall
from internal.agent.store.stores import Stores
from internal.channels.web.routes.table import ENDPOINTS
from tests.support.http_client import read_reply
from tests.support.web_app import TOKEN, WebApp, healthy, open_web_app


@pytest.fixture
async def app(tmp_path: Path) -> AsyncGenerator[WebApp]:
    async with open_web_app(tmp_path) as opened:
        yield opened


async def test_a_task_is_stored_shown_and_stopped(app: WebApp) -> None:
    client = app.client
    reply = await client.post(
        "/api/tasks",
        {
            "task": "写周报",
            "profile": "brief",
            "options": {"permission_mode": "plan", "max_iterations": 7, "workspace": "/srv/w"},
        },
    )
    assert reply.status == 201
    made = reply.json()
    assert set(made) == {"task_id", "run_id", "session_id", "status"}
    assert made["status"] == "queued"
    shown = (await client.get(f"/api/tasks/{made['task_id']}")).json()
    assert shown["task"] == "写周报"
    assert shown["profile"] == "brief"
    assert shown["channel"] == "web"
    assert shown["run"] == {
        "run_id": made["run_id"],
        "status": "queued",
        "stop_reason": None,
        "attempt": 0,
        "answer": "",
        "usage": {
            "input_tokens": 0,
            "output_tokens": 0,
            "cache_read_tokens": 0,
            "cache_write_tokens": 0,
        },
        "cost": None,
        "error": "",
    }
    stopped = await client.post(f"/api/tasks/{made['task_id']}/stop")
    assert stopped.json() == {"task_id": made["task_id"], "status": "cancelled"}
    again = await client.post(f"/api/tasks/{made['task_id']}/stop", {})
    assert again.status == 409
    assert again.error["code"] == "conflict"
    assert (await client.get(f"/api/tasks/{made['task_id']}")).json()["stop_reason"] == "user_stop"


async def test_the_same_idempotency_key_returns_the_same_task(app: WebApp) -> None:
    first = await app.task(idempotency_key="k1")
    assert await app.task(idempotency_key="k1") == first
    assert await app.task(idempotency_key="k2") != first


async def test_steering_reaches_the_active_run_or_creates_a_task(app: WebApp) -> None:
    run = await app.task()
    steered = await app.client.post(f"/api/tasks/{run.task_id}/steer", {"text": "shorter"})
    assert steered.json() == {
        "taken_as": "steering",
        "task_id": run.task_id,
        "run_id": run.run_id,
        "session_id": run.session_id,
    }
    await app.client.post(f"/api/tasks/{run.task_id}/stop")
    late = await app.client.post(f"/api/tasks/{run.task_id}/steer", {"text": "longer"})
    assert late.json()["taken_as"] == "task"
    tasks = (await app.client.get(f"/api/tasks?session_id={run.session_id}")).json()["tasks"]
    # a stop is final: what waited for the run is dropped, what comes later is the next task
    assert [task["task"] for task in tasks] == ["longer", "write a report"]
    empty = await app.client.post(f"/api/tasks/{run.task_id}/steer", {"text": " "})
    assert empty.status == 400


async def test_task_pages_have_no_gaps_and_no_duplicates(app: WebApp) -> None:
    runs = [await app.task(f"task {number}") for number in range(5)]
    await app.client.post(f"/api/tasks/{runs[0].task_id}/stop")
    seen, cursor = [], ""
    while True:
        page = (await app.client.get(f"/api/tasks?limit=2{cursor}")).json()
        seen += [task["task_id"] for task in page["tasks"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert sorted(seen) == sorted(run.task_id for run in runs)
    cancelled = (await app.client.get("/api/tasks?status=cancelled")).json()["tasks"]
    assert [task["task_id"] for task in cancelled] == [runs[0].task_id]
    assert (await app.client.get("/api/tasks?cursor=nowhere")).status == 404


async def test_sessions_are_created_renamed_listed_and_deleted(app: WebApp) -> None:
    client = app.client
    made = await client.post("/api/sessions", {"title": " Weekly\treport\n"})
    assert made.status == 201
    session = made.json()
    assert session["title"] == "Weekly report"
    assert (await client.post("/api/sessions", {})).json()["title"] == ""
    path = f"/api/sessions/{session['session_id']}"
    renamed = await client.request("PATCH", path, {"title": "Monthly"})
    assert renamed.json()["title"] == "Monthly"
    assert (await client.get(path)).json()["title"] == "Monthly"
    assert (await client.request("PATCH", path, {"title": " \n "})).status == 400
    run = await app.task(session_id=session["session_id"])
    assert run.session_id == session["session_id"]
    page = (await client.get("/api/sessions?limit=1")).json()
    rest = (await client.get(f"/api/sessions?limit=1&cursor={page['next']}")).json()
    rows = {row["session_id"]: row for row in [*page["sessions"], *rest["sessions"]]}
    assert len(rows) == 2
    assert rest["next"] is None
    assert rows[session["session_id"]]["status"] == "queued"
    assert rows[session["session_id"]]["tasks"] == 1
    busy = await client.request("DELETE", path)
    assert busy.status == 409
    assert "Stop it first" in busy.error["message"]
    await client.post(f"/api/tasks/{run.task_id}/stop")
    deleted = await client.request("DELETE", path)
    assert (deleted.status, deleted.body) == (204, b"")
    assert (await client.get(path)).status == 404
    assert (await client.get(f"/api/tasks/{run.task_id}")).status == 404
    assert (await client.get("/api/sessions?cursor=nowhere")).status == 404


async def test_message_pages_go_back_to_the_first_without_thinking(app: WebApp) -> None:
    run = await app.task()
    path = f"/api/sessions/{run.session_id}/messages"
    said = [Message("user", (Text(f"question {number}"),)) for number in range(3)]
    call = ToolCall("call-1", "shell", {"command": "ls"})
    said.append(Message("assistant", (Thinking("hm", "sig"), Text("answer"), call)))
    sessions, now = Stores().sessions, "2026-01-01T00:00:00.000Z"
    await app.database.write(
        lambda: sessions.add_messages(run.session_id, run.run_id, said, now=now)
    )
    told = {"arguments": {"command": "ls"}, "malformed": None}  # nothing that only a server reads
    newest = (await app.client.get(f"{path}?limit=3")).json()
    assert [message["number"] for message in newest["messages"]] == [2, 3, 4]
    assert newest["messages"][-1]["parts"] == [
        {"type": "text", "text": "answer"},
        {"type": "tool_call", "call_id": "call-1", "name": "shell", **told},
    ]
    older = (await app.client.get(f"{path}?limit=3&cursor={newest['next']}")).json()
    assert [message["parts"][0]["text"] for message in older["messages"]] == ["question 0"]
    assert older["next"] is None
    for cursor in ("x", "-1", "9" * 30):
        assert (await app.client.get(f"{path}?cursor={cursor}")).status == 400


async def test_pages_of_events_follow_the_log(app: WebApp) -> None:
    run, other = await app.task(), await app.task()
    for number in range(5):
        await app.store(run, LifecycleUpdated(status="queued", phase=str(number)))
    path, epoch = f"/api/sessions/{run.session_id}/events", app.broadcaster.epoch
    ids: list[str] = []
    after = ""
    while True:
        page = (await app.client.get(f"{path}?limit=3{after}")).json()
        ids += [row["id"] for row in page["events"]]
        assert page["head"] == f"{epoch}-9"
        assert page["earliest"] == f"{epoch}-1"
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert ids == [f"{epoch}-{position}" for position in (1, 2, 5, 6, 7, 8, 9)]
    only = (await app.client.get(f"{path}?types=workflow.input.received,nothing")).json()
    assert [row["event"]["event"] for row in only["events"]] == ["workflow.input.received"]
    gone = await app.client.get(f"{path}?after=zzzzzz-1")
    assert gone.status == 410
    assert gone.error["code"] == "cursor_gone"
    assert (await app.client.get(f"{path}?after={epoch}-999")).status == 410
    assert (await app.client.get(f"{path}?after=17")).status == 400
    assert other.session_id not in str(ids)


async def test_files_are_stored_once_and_served_as_downloads(app: WebApp) -> None:
    content = b"<script>alert(1)</script>\0\xff"
    data, sha256 = base64.b64encode(content).decode(), hashlib.sha256(content).hexdigest()
    given = {"name": "../../x\n.html", "media_type": "text/html", "data": data}
    kept = await app.client.post("/api/attachments", given)
    assert kept.status == 201
    assert kept.json() == {
        "name": "x_.html",
        "media_type": "text/html",
        "uri": f"attachment:{sha256}",
        "sha256": sha256,
        "size": len(content),
    }
    reply = await app.client.get(f"/api/attachments/{sha256}", {"accept-encoding": "gzip"})
    assert reply.body == content
    assert reply.headers["content-type"] == "application/octet-stream"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["content-disposition"].startswith(f'attachment; filename="{sha256}"')
    for unknown in ("0" * 64, "x", "%2e%2e%2fetc"):
        assert (await app.client.get(f"/api/attachments/{unknown}")).status == 404
    run = await app.task(
        attachments=[
            {"name": "a.html", "media_type": "text/html", "data": data},
            {"name": "b.html", "media_type": "text/html", "uri": f"attachment:{sha256}"},
        ]
    )
    files = (await app.client.get(f"/api/tasks/{run.task_id}")).json()["attachments"]
    assert [(file["name"], file["sha256"], file["size"]) for file in files] == [
        ("a.html", sha256, len(content)),
        ("b.html", sha256, len(content)),
    ]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, "attachments[0] needs either"),
        ({"data": "aGk=", "uri": "attachment:" + "0" * 64}, "attachments[0] needs either"),
        ({"data": "!!"}, "$.attachments[0].data"),
        ({"uri": "file:///etc/passwd"}, "attachments[0].uri"),
        ({"uri": "attachment:../../etc/passwd"}, "attachments[0].uri"),
        ({"uri": "attachment:" + "0" * 64}, "attachments[0].uri"),
        ({"data": "aGk=", "media_type": "text/html\r\nx: y"}, "$.attachments[0].media_type"),
        ({"data": "aGk=", "name": ""}, "$.attachments[0].name"),
    ],
)
async def test_an_invalid_attachment_is_rejected_with_its_index(
    app: WebApp, fields: dict[str, Any], named: str
) -> None:
    attachment = {"name": "a", "media_type": "text/plain", **fields}
    reply = await app.client.post("/api/tasks", {"task": "x", "attachments": [attachment]})
    assert reply.status == 400
    assert named in reply.error["message"]


async def test_me_and_profiles_are_listed(app: WebApp) -> None:
    me = (await app.client.get("/api/me")).json()
    assert me == {
        "id": "local",
        "name": "local owner",
        "roles": ["operate", "owner", "talk"],
        "provider": "offline",
        "model": "offline-demo",
        "is_priced": True,
        "permission_mode": "ask",
        "isolated": False,
        "network": "off",
    }
    profiles = (await app.client.get("/api/profiles")).json()
    assert profiles["default"] == "default"
    assert [profile["name"] for profile in profiles["profiles"]] == ["brief", "default"]
    assert profiles["profiles"][0]["tone"] == "short"


async def test_health_details_require_authentication(app: WebApp) -> None:
    nobody = {"authorization": None}
    well = await app.client.get("/health", nobody)
    assert (well.status, well.json()) == (200, {"status": "ok"})
    whole = (await app.client.get("/health")).json()
    parts = {"status", "database", "dispatcher", "tasks", "channels", "dead_letters", "processes"}
    parts |= {"call_repairs"}
    assert set(whole) == parts
    assert whole["database"]["ok"]
    broken = msgspec.structs.replace(healthy().database, ok=False, detail="the disk is full")
    app.health.append(msgspec.structs.replace(healthy(), status="failing", database=broken))
    ill = await app.client.get("/health", nobody)
    assert (ill.status, ill.json()) == (503, {"status": "failing"})
    assert (await app.client.get("/health")).json()["database"]["detail"] == "the disk is full"


async def test_every_route_is_in_the_openapi_document(app: WebApp) -> None:
    described = (await app.client.get("/api/openapi.json")).json()
    assert described["openapi"].startswith("3.1")
    listed = {
        (method.upper(), path)
        for path, operations in described["paths"].items()
        for method in operations
    }
    assert listed == {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}
    text = json.dumps(described)
    schemas = described["components"]["schemas"]
    for reference in set(text.split('"#/components/schemas/')[1:]):
        assert reference.partition('"')[0] in schemas
    operation = described["paths"]["/api/tasks"]["post"]
    assert operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    assert schemas["CreateTaskRequest"]["additionalProperties"] is False
    stream = described["paths"]["/api/sse"]["get"]
    assert [parameter["name"] for parameter in stream["parameters"]] == [
        "session_id",
        "sessions",
        "replay",
        "after",
        "debug",
        "unnamed",
        "Last-Event-ID",
    ]
    assert "text/event-stream" in stream["responses"]["200"]["content"]
    for path in described["paths"].values():
        for operation in path.values():
            assert operation["summary"]


async def test_large_responses_are_compressed_when_accepted(app: WebApp) -> None:
    plain = await app.client.get("/api/openapi.json")
    small = await app.client.get("/api/openapi.json", {"accept-encoding": "gzip"})
    assert small.headers["content-encoding"] == "gzip"
    assert len(small.body) * 2 < len(plain.body)
    assert "content-encoding" not in plain.headers
    assert "Accept-Encoding" in small.headers["vary"]


async def test_every_response_has_a_request_id_and_security_headers(app: WebApp) -> None:
    replies = [await app.client.get(path) for path in ("/api/me", "/nowhere", "/health")]
    ids = {reply.headers["x-request-id"] for reply in replies}
    assert len(ids) == 3
    assert replies[1].error["request_id"] == replies[1].headers["x-request-id"]
    for reply in replies:
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["cache-control"] == "no-store"
        assert "server" not in reply.headers


async def test_one_connection_serves_pipelined_requests(app: WebApp) -> None:
    reader, writer = await app.client.connect()
    writer.write(app.client.head("GET", "/api/me") * 3)
    replies = [await read_reply(reader) for _ in range(3)]
    assert [reply.status for reply in replies] == [200, 200, 200]
    writer.write(app.client.head("HEAD", "/api/me"))
    assert (await read_reply(reader, "HEAD")).status == 200
    writer.close()


async def test_no_response_contains_the_token(app: WebApp) -> None:
    for endpoint in ENDPOINTS:
        if endpoint.path != "/api/sse":
            reply = await app.client.request(endpoint.method, endpoint.path)
            assert TOKEN.encode() not in reply.body
