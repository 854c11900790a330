"""Invalid input gets a 4xx error with a message, and the server keeps running."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from internal.channels.web.endpoints import DEFAULT_MAX_BODY_BYTES, Endpoint
from internal.channels.web.routes.table import ROUTES
from internal.channels.web.services import WebTimeouts
from internal.storage.sqlite.database import SqliteDatabase
from tests.support.http_client import Reply, read_reply
from tests.support.web_app import WebApp, open_web_app

MOST = 20_971_520
CHANGING = [endpoint for endpoint in ROUTES if endpoint.method != "GET"]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """The module shares one server, so its event loop lives as long."""
    return "asyncio"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[WebApp]:
    async with open_web_app(tmp_path_factory.mktemp("web")) as opened:
        yield opened


@pytest.fixture
async def app(server: WebApp) -> AsyncGenerator[WebApp]:
    """The shared server, which must survive each test."""
    yield server
    assert (await server.client.get("/api/me")).status == 200, "the server did not survive"


async def stored_tasks(app: WebApp) -> list[Any]:
    tasks: list[Any] = (await app.client.get("/api/tasks")).json()["tasks"]
    return tasks


BODIES: list[tuple[str, bytes, str]] = [
    ("nothing", b"", "JSON"),
    ("half", b'{"task": "x"', "JSON"),
    ("no JSON", b"task=x", "JSON"),
    ("more behind", b'{"task":"x"} {}', "JSON"),
    ("a byte order mark", b'\xef\xbb\xbf{"task":"x"}', "JSON"),
    ("not UTF-8", b'{"task":"\xff\xfe"}', "UTF-8"),
    ("UTF-16", '{"task":"x"}'.encode("utf-16"), "JSON"),
    ("half a character", b'{"task":"\xe4\xb8"}', "UTF-8"),
    ("a lone surrogate", b'{"task":"\\ud83d"}', "JSON"),
    ("a lone low surrogate", b'{"task":"a\\udc00b"}', "JSON"),
    ("a NUL outside", b'\0{"task":"x"}', "JSON"),
    ("a raw control character", b'{"task":"a\x01b"}', "JSON"),
    ("a list", b"[]", "object"),
    ("null", b"null", "object"),
    ("a missing field", b"{}", "task"),
    ("an unknown field", b'{"task":"x","colour":"red"}', "colour"),
    ("an unknown inner field", b'{"task":"x","options":{"mood":1}}', "mood"),
    ("a wrong kind", b'{"task":7}', "$.task"),
    ("a wrong inner kind", b'{"task":"x","options":{"max_iterations":"9"}}', "max_iterations"),
    ("out of range", b'{"task":"x","options":{"max_iterations":0}}', "max_iterations"),
    ("infinite", b'{"task":"x","options":{"max_cost":1e999}}', ""),
    ("no price", b'{"task":"x","options":{"max_cost":1}}', "price"),
    ("an unknown mode", b'{"task":"x","options":{"permission_mode":"yolo"}}', "permission_mode"),
    ("a bad rule", b'{"task":"x","options":{"allow":["shell((("]}}', ""),
    ("a relative workspace", b'{"task":"x","options":{"workspace":"a/b"}}', "workspace"),
    ("an unknown profile", b'{"task":"x","profile":"nobody"}', "nobody"),
    ("twice", b'{"task":"x","task":"y"}', "task twice"),
    ("twice inside", b'{"task":"x","options":{"model":"a","model":"b"}}', "model twice"),
    ("twice, escaped", b'{"task":"x","t\\u0061sk":"y"}', "task twice"),
    ("blank", b'{"task":" \\n "}', "empty"),
    ("too long", json.dumps({"task": "x" * 200_001}).encode(), "200,000"),
    ("a deep list", b'{"task":' + b"[" * 100_000, ""),
    ("a deep object", b'{"task":' + b'{"a":' * 100_000, ""),
    ("a deep unknown", b'{"zzz":' + b"[" * 100_000 + b"]" * 100_000 + b"}", ""),
    ("a large number", b'{"task":"x","options":{"max_iterations":' + b"9" * 10_000 + b"}}", ""),
    ("a long key", b'{"task":"x","idempotency_key":"' + b"k" * 300 + b'"}', "idempotency_key"),
]


@pytest.mark.parametrize(("body", "word"), [row[1:] for row in BODIES], ids=[r[0] for r in BODIES])
async def test_an_invalid_body_is_rejected_with_the_reason(
    app: WebApp, body: bytes, word: str
) -> None:
    before = await stored_tasks(app)
    reply = await app.client.post("/api/tasks", body)
    assert reply.status == 400
    assert reply.error["code"] == "malformed"
    assert word in reply.error["message"]
    assert len(reply.body) < 1000
    assert await stored_tasks(app) == before


async def test_nul_and_control_characters_in_text_are_accepted(app: WebApp) -> None:
    run = await app.task("a\0b\x1b[31m\u202e界")
    shown = (await app.client.get(f"/api/tasks/{run.task_id}")).json()
    assert shown["task"] == "a\ufffdb\x1b[31m\u202e界"
    named = await app.client.post("/api/sessions", {"title": "a\0b\u202ec"})
    assert named.json()["title"] == "a b c"


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/json; charset=utf-16",
        "application/jsonx",
    ],
)
async def test_other_content_types_than_json_are_rejected(app: WebApp, kind: str | None) -> None:
    for path in ("/api/tasks", "/api/sessions", "/api/attachments", "/api/tasks/x/stop"):
        reply = await app.client.post(path, {"task": "x"}, {"content-type": kind})
        assert reply.status == 415
        assert "application/json" in reply.error["message"]


async def test_json_with_a_charset_is_accepted(app: WebApp) -> None:
    kind = {"content-type": 'Application/JSON; charset="UTF-8"'}
    assert (await app.client.post("/api/tasks", {"task": "x"}, kind)).status == 201


def chunked(body: bytes, size: int = 65_536) -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def task_of(size: int) -> bytes:
    frame = b'{"task":"x","idempotency_key":""}'
    return frame[:-2] + b"k" * (size - len(frame)) + frame[-2:]


async def post_chunked(app: WebApp, body: bytes) -> Reply:
    kind = {"content-type": "application/json", "transfer-encoding": "chunked"}
    head = app.client.head("POST", "/api/tasks", kind)
    return await app.client.exchange(head + chunked(body))


async def test_a_body_above_the_limit_is_rejected_in_both_encodings(app: WebApp) -> None:
    fits = await app.client.post("/api/tasks", task_of(MOST))
    assert fits.status == 400  # it was read: its key is too long
    assert "idempotency_key" in fits.error["message"]
    for reply in (
        await app.client.post("/api/tasks", task_of(MOST + 1)),
        await post_chunked(app, task_of(MOST + 1)),
    ):
        assert reply.status == 413
        assert reply.error["code"] == "too_large"
        assert "20,971,520" in reply.error["message"]
        assert reply.headers["connection"] == "close"


async def test_a_too_large_content_length_is_rejected_before_the_body(app: WebApp) -> None:
    head = app.client.head(
        "POST",
        "/api/tasks",
        {"content-type": "application/json", "content-length": "9" * 15},
    )
    reader, writer = await app.client.connect()
    writer.write(head)
    assert (await read_reply(reader)).status == 413
    writer.close()


@pytest.mark.parametrize(
    "endpoint",
    [one for one in CHANGING if not one.streams_body],
    ids=lambda one: f"{one.method} {one.path}",
)
async def test_every_route_rejects_a_body_above_its_own_limit(
    app: WebApp, endpoint: Endpoint
) -> None:
    most = min(endpoint.max_body_bytes, MOST)
    kind = {"content-type": "application/json"}
    if endpoint.public:
        kind["authorization"] = "none"
    fixed = app.client.head(
        endpoint.method, endpoint.path, {**kind, "content-length": str(most + 1)}
    )
    streamed = app.client.head(
        endpoint.method, endpoint.path, {**kind, "transfer-encoding": "chunked"}
    )
    for sent in (fixed, streamed + chunked(b" " * (most + 1))):
        reply = await app.client.exchange(sent)
        assert (reply.status, reply.error["code"]) == (413, "too_large")
        assert f"{most:,}" in reply.error["message"]
        assert reply.headers["connection"] == "close"


def test_only_routes_for_files_and_long_texts_accept_large_bodies() -> None:
    large = {one.path for one in CHANGING if one.max_body_bytes > DEFAULT_MAX_BODY_BYTES}
    assert large == {
        "/api/tasks",
        "/api/tasks/{task_id}/steer",
        "/api/sessions/{session_id}/waiting/{number}",
        "/api/tasks/{task_id}/feedback",
        "/api/questions/{question_id}/answer",
        "/api/attachments",
        "/v1/chat/completions",
        "/v1/responses",
    }
    assert {one.path: one.max_body_bytes for one in CHANGING if one.public} == {"/api/login": 4096}


async def test_the_longest_texts_fit_with_every_character_escaped(app: WebApp) -> None:
    run = await app.task()
    text = json.dumps({"text": "\U0001f600" * 200_000}).encode()
    reply = await app.client.post(f"/api/tasks/{run.task_id}/steer", text)
    assert reply.status == 200, reply
    answer = json.dumps({"decision": "text", "text": "\U0001f600" * 20_000}).encode()
    assert (await app.client.post("/api/questions/question-x/answer", answer)).status == 404


@pytest.mark.parametrize("length", ["-1", "x", "1, 2", "", "9" * 40])
async def test_an_invalid_content_length_is_rejected(app: WebApp, length: str) -> None:
    head = app.client.head(
        "POST", "/api/tasks", {"content-type": "application/json", "content-length": length}
    )
    reply = await app.client.exchange(head + b'{"task":"x"}')
    assert reply.status == 400
    assert reply.error["message"]


async def test_a_disconnect_within_the_body_stores_nothing(app: WebApp) -> None:
    head = app.client.head(
        "POST", "/api/tasks", {"content-type": "application/json", "content-length": "100"}
    )
    before = await stored_tasks(app)
    for sent in (head, head + b'{"task":"x"', head[:40]):
        _, writer = await app.client.connect()
        writer.write(sent)
        await writer.drain()
        writer.transport.abort()
    assert await stored_tasks(app) == before


async def test_a_body_that_does_not_arrive_times_out(tmp_path: Path) -> None:
    async with open_web_app(tmp_path, timeouts=WebTimeouts(request_seconds=0.2)) as app:
        head = app.client.head(
            "POST", "/api/tasks", {"content-type": "application/json", "content-length": "100"}
        )
        reply = await app.client.exchange(head + b'{"task"')
        assert reply.status == 408
        assert reply.error["code"] == "timeout"


@pytest.mark.parametrize(
    "sent",
    [
        b"\0\0\0\0\r\n\r\n",
        b"\x16\x03\x01\x02\0\x01\0",
        b"GET\r\n\r\n",
        b"GET /health HTTP/9.9\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /health?\xff\xfe HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n",
        b"GET /health HTTP/1.1\r\nhost : x\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0",
        b"POST /api/tasks HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
async def test_bytes_that_are_not_http_are_rejected(app: WebApp, sent: bytes) -> None:
    reply = await app.client.exchange(sent)
    assert 400 <= reply.status < 500
    assert reply.error["message"]


async def test_a_too_large_header_or_path_is_rejected(app: WebApp) -> None:
    for headers, path in (({"x-giant": "x" * 200_000}, "/api/me"), ({}, "/" + "x" * 200_000)):
        reply = await app.client.get(path, headers)
        assert reply.status == 431
        assert reply.error["code"] == "head_too_large"
    many = {f"x-{number}": "y" for number in range(20_000)}
    assert (await app.client.get("/api/me", many)).status == 431
    fits = await app.client.get("/api/me", {"x-large": "x" * 60_000})
    assert fits.status == 200


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=501",
        "limit=x",
        "limit=1e3",
        "limit=",
        "colour=red",
        "limit=1&limit=2",
        "status=dreaming",
        "cursor=%FF",
        "cursor=%ED%A0%80",
        "&".join(f"a{number}=1" for number in range(100)),
    ],
)
async def test_an_invalid_query_parameter_is_rejected(app: WebApp, query: str) -> None:
    reply = await app.client.get(f"/api/tasks?{query}")
    assert reply.status == 400
    assert reply.error["code"] == "malformed"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/tasks/{}"),
        ("POST", "/api/tasks/{}/stop"),
        ("POST", "/api/tasks/{}/steer"),
        ("POST", "/api/tasks/{}/resume"),
        ("GET", "/api/questions/{}"),
        ("POST", "/api/questions/{}/answer"),
        ("DELETE", "/api/rules/{}"),
        ("DELETE", "/api/people/{}"),
        ("GET", "/api/sessions/{}"),
        ("PATCH", "/api/sessions/{}"),
        ("DELETE", "/api/sessions/{}"),
        ("GET", "/api/sessions/{}/messages"),
        ("GET", "/api/sessions/{}/events"),
        ("GET", "/api/attachments/{}"),
    ],
)
async def test_an_unknown_id_is_not_found(app: WebApp, method: str, path: str) -> None:
    bodies: dict[str, dict[str, str]] = {
        "POST /api/tasks/{}/steer": {"text": "x"},
        "POST /api/questions/{}/answer": {"decision": "approve"},
        "PATCH /api/sessions/{}": {"title": "x"},
    }
    body = bodies.get(f"{method} {path}")
    for unknown in ("task-x", "%00", "%ff", "'--", "x" * 5000, "..%5c", "界".encode().hex()):
        reply = await app.client.request(method, path.format(unknown), body)
        assert reply.status == 404, unknown
        assert len(reply.error["message"]) < 200
    run = await app.client.post("/api/tasks", {"task": "x", "session_id": "session-x"})
    assert run.status == 404


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/api/tasks", "GET, HEAD, POST"),
        ("DELETE", "/api/tasks", "GET, HEAD, POST"),
        ("GET", "/api/tasks/x/stop", "POST"),
        ("GET", "/api/tasks/x/resume", "POST"),
        ("DELETE", "/api/questions/x", "GET, HEAD"),
        ("GET", "/api/pairings", "POST"),
        ("POST", "/api/audit", "GET, HEAD"),
        ("POST", "/health", "GET, HEAD"),
        ("OPTIONS", "/api/me", "GET, HEAD"),
        ("TRACE", "/api/me", "GET, HEAD"),
    ],
)
async def test_a_wrong_method_is_rejected_with_the_allowed_ones(
    app: WebApp, method: str, path: str, allowed: str
) -> None:
    reply = await app.client.request(method, path)
    assert reply.status == 405
    assert reply.headers["allow"] == allowed
    assert reply.error["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    "path",
    [
        "/api",
        "/sessions",
        "/assets",
        "/api/tasks/",
        "/api//tasks",
        "/api/tasks/a/b",
        "/docs",
        "/%2e%2e/x",
    ],
)
async def test_unknown_paths_are_not_found(app: WebApp, path: str) -> None:
    reply = await app.client.get(path)
    assert reply.status == 404
    assert reply.error["code"] == "not_found"


async def test_a_websocket_upgrade_is_ignored(app: WebApp) -> None:
    upgrade = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    assert (await app.client.get("/api/me", upgrade)).status == 200


async def test_an_internal_error_does_not_reveal_details(app: WebApp) -> None:
    kept, app.health[:] = list(app.health), []
    reply = await app.client.get("/health")
    assert reply.status == 500
    assert reply.error["code"] == "internal"
    assert "IndexError" not in reply.error["message"]
    app.health[:] = kept


async def test_a_database_failure_is_reported_as_unavailable(tmp_path: Path) -> None:
    async with open_web_app(tmp_path) as app:
        assert isinstance(app.database, SqliteDatabase)
        await app.database.close()
        reply = await app.client.get("/api/tasks")
        assert reply.status == 503
        assert reply.error["code"] == "store_unavailable"
