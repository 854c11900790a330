"""The checks of the middleware, applied to every route of the route table."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from internal.channels.web.endpoints import Endpoint
from internal.channels.web.middleware import LINGER_TIMEOUT_SECONDS
from internal.channels.web.routes.table import PAGES, ROUTES
from internal.channels.web.static_page import Asset, Page
from tests.support.browser_login import log_in
from tests.support.http_client import Reply, StreamRefused, read_reply
from tests.support.web_app import TOKEN, WebApp, open_web_app

CLOSED = [endpoint for endpoint in ROUTES if not endpoint.public]
CHANGING = [endpoint for endpoint in ROUTES if endpoint.method != "GET"]


def name(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """The module shares one server, so its event loop lives as long."""
    return "asyncio"


@pytest.fixture(scope="module")
async def app(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[WebApp]:
    async with open_web_app(tmp_path_factory.mktemp("web")) as opened:
        yield opened


async def ask(app: WebApp, endpoint: Endpoint, **headers: str | None) -> Reply:
    given = {key.replace("_", "-"): value for key, value in headers.items()}
    return await app.client.request(endpoint.method, endpoint.path, headers=given)


def test_only_logins_health_and_the_page_are_public() -> None:
    assert [endpoint.path for endpoint in ROUTES if endpoint.public and endpoint not in PAGES] == [
        "/oauth/mcp/callback",  # the state is the secret
        "/api/login",
        "/health",
    ]
    assert {endpoint.method for endpoint in PAGES} == {"GET"}


@pytest.mark.parametrize("endpoint", CLOSED, ids=name)
async def test_a_missing_blank_or_wrong_token_is_rejected(app: WebApp, endpoint: Endpoint) -> None:
    wrong = [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Basic {TOKEN}",
        TOKEN,
        "Bearer \xff",
    ]
    for authorization in wrong:
        reply = await ask(app, endpoint, authorization=authorization)
        assert reply.status == 401, authorization
        assert reply.error["code"] == "unauthorized"
        assert reply.headers["www-authenticate"] == "Bearer"
        assert TOKEN not in reply.body.decode()


@pytest.mark.parametrize("endpoint", CLOSED, ids=name)
async def test_a_cookie_without_its_login_key_is_rejected(app: WebApp, endpoint: Endpoint) -> None:
    login, other = await log_in(app), await log_in(app)
    for key in (None, "", other.key, login.key[:-1], f"{login.key}x", login.cookie, "\xff"):
        sent = login.headers(app.client, **{"x-larkspur-login-key": key})
        for cookies in (login.cookie, f"{login.cookie}; a=b"):
            reply = await app.client.request(
                endpoint.method, endpoint.path, headers={**sent, "cookie": cookies}
            )
            assert (reply.status, reply.error["code"]) == (401, "unauthorized"), key
            assert "not logged in" in reply.error["message"]
    without_cookie = login.headers(app.client, cookie=None)
    reply = await app.client.request(endpoint.method, endpoint.path, headers=without_cookie)
    assert reply.status == 401


async def test_the_login_key_is_accepted_only_once_and_only_as_a_header(app: WebApp) -> None:
    login = await log_in(app)
    assert (await app.client.get("/api/me", login.headers(app.client))).status == 200
    bare = login.headers(app.client, **{"x-larkspur-login-key": None})
    parameter = await app.client.get(f"/api/me?x-larkspur-login-key={login.key}", bare)
    assert parameter.status == 401
    cookies = {**bare, "cookie": f"{login.cookie}; x-larkspur-login-key={login.key}"}
    assert (await app.client.get("/api/me", cookies)).status == 401
    head = app.client.head("GET", "/api/me", login.headers(app.client)).removesuffix(b"\r\n")
    doubled = head + f"x-larkspur-login-key: {login.key}\r\n\r\n".encode()
    assert (await app.client.exchange(doubled)).status == 401


@pytest.mark.parametrize("endpoint", [one for one in CLOSED if one in CHANGING], ids=name)
async def test_credentials_are_checked_before_the_body_is_read(
    app: WebApp, endpoint: Endpoint
) -> None:
    announced = {"authorization": None, "content-length": "20000000"}
    reply = await app.client.exchange(app.client.head(endpoint.method, endpoint.path, announced))
    assert reply.status == 401


async def test_a_refusal_waits_for_a_small_body(app: WebApp) -> None:
    """Caddy loses a response that comes before the body of its request."""
    sent = {"authorization": None, "content-length": "12"}
    reader, writer = await app.client.connect()
    writer.write(app.client.head("POST", "/api/tasks", sent))
    reading = asyncio.create_task(read_reply(reader))
    # the server has read the head when it answers what was sent later
    assert (await app.client.get("/health")).status == 200
    assert not reading.done()
    writer.write(b'{"task":"x"}')
    assert (await reading).status == 401
    writer.write(app.client.head("GET", "/health"))
    assert (await read_reply(reader)).status == 200
    writer.close()


async def test_a_body_is_not_asked_for_before_a_refusal(app: WebApp) -> None:
    sent = {"authorization": None, "content-length": "12", "expect": "100-continue"}
    reply = await app.client.exchange(app.client.head("POST", "/api/tasks", sent))
    assert reply.status == 401


@pytest.mark.slow
async def test_a_refusal_does_not_wait_for_long(app: WebApp) -> None:
    for header, value in (("content-length", "12"), ("transfer-encoding", "chunked")):
        head = app.client.head("POST", "/api/tasks", {"authorization": None, header: value})
        async with asyncio.timeout(LINGER_TIMEOUT_SECONDS + 20):
            assert (await app.client.exchange(head)).status == 401


@pytest.mark.parametrize("endpoint", ROUTES, ids=name)
async def test_a_foreign_host_is_rejected(app: WebApp, endpoint: Endpoint) -> None:
    port = app.client.port
    for host in (None, "", "evil.example", f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1"):
        reply = await ask(app, endpoint, host=host)
        assert reply.status in {400, 421}, host
        assert reply.error["code"] in {"foreign_host", "bad_request"}


@pytest.mark.parametrize("endpoint", CHANGING, ids=name)
async def test_a_foreign_origin_cannot_change_anything(app: WebApp, endpoint: Endpoint) -> None:
    own = f"http://127.0.0.1:{app.client.port}"
    for origin in ("http://evil.example", "null", "", f"{own}.evil.example", "http://127.0.0.1:1"):
        reply = await ask(app, endpoint, origin=origin)
        assert reply.status == 403, origin
        assert reply.error["code"] == "foreign_origin"
        assert "access-control-allow-origin" not in reply.headers
    for site in ("cross-site", "same-site", "what"):
        assert (await ask(app, endpoint, origin=own, sec_fetch_site=site)).status == 403
    assert (await ask(app, endpoint, origin=own, sec_fetch_site="same-origin")).status != 403


def assert_isolated(reply: Reply) -> None:
    assert reply.headers["cross-origin-resource-policy"] == "same-origin"
    assert reply.headers["cross-origin-opener-policy"] == "same-origin"
    assert reply.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("endpoint", ROUTES, ids=name)
async def test_every_response_is_isolated_from_other_origins(
    app: WebApp, endpoint: Endpoint
) -> None:
    assert_isolated(await ask(app, endpoint))
    assert_isolated(await ask(app, endpoint, authorization=None))
    assert_isolated(await ask(app, endpoint, host="evil.example"))
    assert_isolated(await ask(app, endpoint, origin="http://evil.example"))
    assert_isolated(await app.client.request("TRACE", endpoint.path))


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /none HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
        b"\0\0\r\n\r\n",
        b"GET /health HTTP/1.1\r\nx: " + b"x" * 70_000,
    ],
    ids=["unknown", "not http", "large head"],
)
async def test_an_early_error_is_isolated_from_other_origins(app: WebApp, sent: bytes) -> None:
    reply = await app.client.exchange(sent)
    assert reply.status >= 400
    assert_isolated(reply)


async def test_a_stream_and_the_files_of_the_page_are_isolated_from_other_origins(
    tmp_path: Path,
) -> None:
    files = {f"index-1a2b{kind}": Asset(kind, {"": b"x"}) for kind in (".js", ".css", ".svg")}
    async with open_web_app(tmp_path, Page(b"<!doctype html>", files)) as app:
        for path in ("/", *(f"/assets/{file}" for file in files)):
            reply = await app.client.get(path)
            assert reply.status == 200
            assert_isolated(reply)
        run = await app.task()
        async with app.client.stream(f"session_id={run.session_id}") as frames:
            assert frames.headers["cross-origin-resource-policy"] == "same-origin"


async def test_own_hosts_and_origins_are_accepted(tmp_path: Path) -> None:
    async with open_web_app(tmp_path, public_url="https://agent.example/base") as app:
        port = app.client.port
        for host in (f"127.0.0.1:{port}", f"LocalHost:{port}", f"[::1]:{port}", "agent.example"):
            assert (await app.client.get("/api/me", {"host": host})).status == 200
        session = {"origin": "https://agent.example", "host": "agent.example"}
        assert (await app.client.post("/api/sessions", {}, session)).status == 201
        plain = {"origin": "http://agent.example"}
        assert (await app.client.post("/api/sessions", {}, plain)).status == 403


async def test_only_allowed_origins_get_cors_headers(tmp_path: Path) -> None:
    async with open_web_app(tmp_path, allowed_origins=("https://page.example",)) as app:
        page = {"origin": "https://page.example", "sec-fetch-site": "cross-site"}
        made = await app.client.post("/api/sessions", {}, page)
        assert made.status == 201
        assert made.headers["access-control-allow-origin"] == "https://page.example"
        assert "x-larkspur-session" in made.headers["access-control-expose-headers"]
        wanted = "authorization, x-stainless-lang, x-larkspur-session, idempotency-key"
        asks = {
            "authorization": None,
            "access-control-request-method": "POST",
            "access-control-request-headers": wanted,
        }
        preflight = await app.client.request("OPTIONS", "/api/tasks", headers={**page, **asks})
        assert preflight.status == 200
        assert preflight.headers["access-control-allow-headers"] == wanted
        evil = {"origin": "https://evil.example", **asks}
        refused = await app.client.request("OPTIONS", "/api/tasks", headers=evil)
        assert refused.status == 403
        assert "server.allowed_origins" in refused.error["message"]
        assert "access-control-allow-origin" not in refused.headers


async def test_duplicate_authorization_and_host_headers_are_rejected(app: WebApp) -> None:
    head = app.client.head("GET", "/api/me").removesuffix(b"\r\n")
    doubled = head + f"authorization: Bearer {TOKEN}\r\n\r\n".encode()
    assert (await app.client.exchange(doubled)).status == 401
    hosts = head + f"host: 127.0.0.1:{app.client.port}\r\n\r\n".encode()
    assert (await app.client.exchange(hosts)).status in {400, 421}


async def test_event_streams_pass_the_same_checks(app: WebApp) -> None:
    run = await app.task()
    login = await log_in(app)
    bare = login.headers(app.client, **{"x-larkspur-login-key": None})
    for headers, status in (
        ({"authorization": None}, 401),
        (bare, 401),
        ({"host": "evil.example"}, 421),
    ):
        with pytest.raises(StreamRefused) as refused:
            async with app.client.stream(f"session_id={run.session_id}", headers):
                pass
        assert refused.value.reply.status == status


async def test_requests_of_the_owner_are_limited(tmp_path: Path) -> None:
    async with open_web_app(tmp_path, rate_limit_per_minute=1, rate_limit_burst=3) as app:
        owner = [await app.client.get("/api/me") for _ in range(4)]
        assert [reply.status for reply in owner] == [200, 200, 200, 429]
        assert owner[-1].error["code"] == "too_many_requests"
        assert 1 <= int(owner[-1].headers["retry-after"]) <= 60


async def test_a_token_in_the_query_string_is_ignored(app: WebApp) -> None:
    reader, writer = await app.client.connect()
    for parameter in ("token", "access_token", "authorization"):
        writer.write(
            app.client.head("GET", f"/api/me?{parameter}={TOKEN}", {"authorization": None})
        )
        assert (await read_reply(reader)).status == 401
    writer.close()
