"""Serving the page and logging in to it."""

import base64
import gzip
import hashlib
import re
from pathlib import Path

import pytest

from internal.channels.web.static_page import read_page
from tests.support.browser_login import NOBODY, log_in
from tests.support.web_app import open_web_app


def built(folder: Path) -> Path:
    """A page as the build leaves it."""
    assets = folder / "dist" / "assets"
    assets.mkdir(parents=True)
    (folder / "dist" / "index.html").write_text("<!doctype html>the page")
    (assets / "index-1a2b.js").write_text("script")
    (assets / "index-1a2b.js.gz").write_bytes(gzip.compress(b"script"))
    (assets / "index-1a2b.js.br").write_bytes(b"brotli")
    (assets / "index-3c4d.css").write_text("style")
    (assets / "index-1a2b.js.map").write_text("no part of the page")
    (folder / "dist" / "manifest.webmanifest").write_text("{}")
    (folder / "dist" / "icons").mkdir()
    (folder / "dist" / "icons" / "icon-192.png").write_bytes(b"picture")
    return folder / "dist"


async def test_a_page_that_is_not_built_is_reported(tmp_path: Path) -> None:
    async with open_web_app(tmp_path) as app:
        for path in ("/", "/tasks", "/waiting", "/sessions/session-x"):
            reply = await app.client.get(path, NOBODY)
            assert reply.status == 503
            assert "make page" in reply.error["message"]
        for path in ("/assets/index.js", "/manifest.webmanifest"):
            assert (await app.client.get(path, NOBODY)).status == 404


async def test_the_page_is_public_with_a_strict_content_security_policy(tmp_path: Path) -> None:
    async with open_web_app(tmp_path, read_page(built(tmp_path))) as app:
        for path in ("/", "/tasks", "/waiting", "/sessions/session-x"):
            reply = await app.client.get(path, NOBODY)
            assert (reply.status, reply.body) == (200, b"<!doctype html>the page")
            assert reply.headers["cache-control"] == "no-cache"
            assert reply.headers["x-content-type-options"] == "nosniff"
            policy = reply.headers["content-security-policy"].split("; ")
            assert {"default-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} <= {*policy}
            assert "unsafe" not in reply.headers["content-security-policy"]


async def test_the_frame_of_previews_loads_nothing_and_runs_its_own_script_only(
    tmp_path: Path,
) -> None:
    async with open_web_app(tmp_path) as app:
        reply = await app.client.get("/preview", NOBODY)
    assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert reply.headers["x-dns-prefetch-control"] == "off"
    (script,) = re.findall(rb"<script>(.*?)</script>", reply.body)
    digest = base64.b64encode(hashlib.sha256(script).digest()).decode()
    policy = reply.headers["content-security-policy"].split("; ")
    assert {f"script-src 'sha256-{digest}'", "default-src 'none'", "img-src data:"} <= {*policy}
    assert {"sandbox allow-scripts", "frame-ancestors 'self'", "form-action 'none'"} <= {*policy}


async def test_what_an_installed_page_needs_is_public_and_revalidated(tmp_path: Path) -> None:
    async with open_web_app(tmp_path, read_page(built(tmp_path))) as app:
        for path, media_type, body in (
            ("/manifest.webmanifest", "application/manifest+json", b"{}"),
            ("/icons/icon-192.png", "image/png", b"picture"),
        ):
            reply = await app.client.get(path, NOBODY)
            assert (reply.status, reply.body) == (200, body)
            assert reply.headers["content-type"] == media_type
            assert reply.headers["cache-control"] == "no-cache"
        assert (await app.client.get("/icons/none.png", NOBODY)).status == 404


async def test_assets_are_immutable_and_use_the_best_accepted_encoding(tmp_path: Path) -> None:
    async with open_web_app(tmp_path, read_page(built(tmp_path))) as app:
        for accepted, encoding, body in (
            ("gzip, deflate, br, zstd", "br", b"brotli"),
            ("gzip", "gzip", gzip.compress(b"script", mtime=0)),
            ("identity", None, b"script"),
            (None, None, b"script"),
        ):
            asked = {**NOBODY, "accept-encoding": accepted}
            reply = await app.client.get("/assets/index-1a2b.js", asked)
            assert reply.status == 200
            assert reply.headers.get("content-encoding") == encoding
            if encoding == "gzip":
                assert gzip.decompress(reply.body) == b"script"
            else:
                assert reply.body == body
            assert "immutable" in reply.headers["cache-control"]
            assert reply.headers["content-type"] == "text/javascript; charset=utf-8"
            assert reply.headers["vary"] == "Accept-Encoding"
        for missing in ("index-1a2b.js.gz", "index-1a2b.js.map", "x" * 300):
            assert (await app.client.get(f"/assets/{missing}", NOBODY)).status == 404


async def test_a_code_is_exchanged_for_an_http_only_cookie(tmp_path: Path) -> None:
    async with open_web_app(tmp_path) as app:
        link = app.server.link()
        port = app.client.port
        assert link.startswith(f"http://127.0.0.1:{port}/#code=")
        code = {"code": link.partition("#code=")[2]}
        reply = await app.client.post("/api/login", code, NOBODY)
        assert reply.status == 200
        assert set(reply.json()) == {"key"}
        assert reply.headers["cache-control"] == "no-store"
        said = reply.headers["set-cookie"]
        assert said.startswith(f"larkspur-{port}=")
        assert {"httponly", "samesite=lax", "path=/"} <= {
            part.strip().lower() for part in said.split(";")
        }
        assert "secure" not in said.lower()
        cookie = said.partition(";")[0]
        assert reply.json()["key"] not in said
        login = {"cookie": f"a=b; {cookie}", "x-larkspur-login-key": reply.json()["key"]}
        me = await app.client.get("/api/me", {**NOBODY, **login})
        assert me.json()["id"] == "local"
        again = await app.client.post("/api/login", code, NOBODY)
        assert (again.status, again.error["code"]) == (403, "bad_code")


async def test_a_cookie_set_over_https_is_secure(tmp_path: Path) -> None:
    async with open_web_app(tmp_path, public_url="https://agent.example") as app:
        link = app.server.link()
        assert link.startswith("https://agent.example/#code=")
        code = {"code": link.partition("#code=")[2]}
        host = {**NOBODY, "host": "agent.example"}
        reply = await app.client.post("/api/login", code, host)
        assert "; secure" in reply.headers["set-cookie"].lower()


async def test_a_cookie_without_an_origin_cannot_change_anything(tmp_path: Path) -> None:
    async with open_web_app(tmp_path) as app:
        login = await log_in(app)
        bare = login.headers(app.client, origin=None)
        assert (await app.client.post("/api/sessions", {}, bare)).status == 401
        own = login.headers(app.client)
        assert (await app.client.post("/api/sessions", {}, own)).status == 201
        foreign = login.headers(app.client, origin="http://evil.example")
        assert (await app.client.post("/api/sessions", {}, foreign)).status == 403


@pytest.mark.parametrize("wrong", ["", "x", "{cookie}x", "\xff"])
async def test_any_other_cookie_is_rejected(tmp_path: Path, wrong: str) -> None:
    async with open_web_app(tmp_path) as app:
        login = await log_in(app)
        sent = login.headers(app.client, cookie=wrong.format(cookie=login.cookie))
        assert (await app.client.get("/api/me", sent)).status == 401


async def test_a_login_survives_a_restart_and_ends_with_the_logout(tmp_path: Path) -> None:
    async with open_web_app(tmp_path) as app:
        port, login = app.client.port, await log_in(app)
    async with open_web_app(tmp_path, port=port) as app:
        own = login.headers(app.client)
        run = await app.task()
        async with app.client.stream(f"session_id={run.session_id}", own) as frames:
            assert (await app.client.post("/api/logout", {}, own)).status == 204
            await frames.until("bye")
        assert (await app.client.get("/api/me", own)).status == 401


async def test_a_second_login_has_secrets_of_its_own(tmp_path: Path) -> None:
    async with open_web_app(tmp_path) as app:
        first, second = await log_in(app), await log_in(app)
        assert len({*first, *second}) == 4
        for login in (first, second):
            assert (await app.client.get("/api/me", login.headers(app.client))).status == 200
        mixed = first._replace(key=second.key).headers(app.client)
        assert (await app.client.get("/api/me", mixed)).status == 401
        assert (await app.client.post("/api/logout", {}, first.headers(app.client))).status == 204
        assert (await app.client.get("/api/me", first.headers(app.client))).status == 401
        assert (await app.client.get("/api/me", second.headers(app.client))).status == 200


async def test_a_login_is_valid_at_one_address_only(tmp_path: Path) -> None:
    async with open_web_app(tmp_path, public_url="https://agent.example") as app:
        port = app.client.port
        hosts = {
            f"127.0.0.1:{port}": f"http://127.0.0.1:{port}",
            f"localhost:{port}": f"http://localhost:{port}",
            "agent.example": "https://agent.example",
        }
        for host, origin in hosts.items():
            login = await log_in(app, host=host, origin=origin)
            for other, other_origin in hosts.items():
                sent = login.headers(app.client, host=other, origin=other_origin)
                expected = (200, 201) if other == host else (401, 401)
                read = await app.client.get("/api/me", sent)
                made = await app.client.post("/api/sessions", {}, sent)
                assert (read.status, made.status) == expected


async def test_a_page_of_an_allowed_origin_cannot_use_a_login(tmp_path: Path) -> None:
    async with open_web_app(tmp_path, allowed_origins=("http://127.0.0.1:5173",)) as app:
        login = await log_in(app)
        other = login.headers(app.client, origin="http://127.0.0.1:5173")
        asks = {
            "x-larkspur-login-key": None,
            "access-control-request-method": "POST",
            "access-control-request-headers": "content-type,x-larkspur-login-key",
        }
        preflight = await app.client.request("OPTIONS", "/api/tasks", headers={**other, **asks})
        assert preflight.status == 403
        allowed = {**asks, "access-control-request-headers": "content-type,authorization"}
        preflight = await app.client.request("OPTIONS", "/api/tasks", headers={**other, **allowed})
        assert preflight.status == 200
        assert "x-larkspur-login-key" not in preflight.headers["access-control-allow-headers"]
        assert "access-control-allow-credentials" not in preflight.headers


async def test_wrong_codes_do_not_keep_a_right_one_out(tmp_path: Path) -> None:
    async with open_web_app(tmp_path) as app:
        for number in range(40):
            reply = await app.client.post("/api/login", {"code": f"guess {number}"}, NOBODY)
            assert reply.status == 403
        login = await log_in(app)
        assert (await app.client.get("/api/me", login.headers(app.client))).status == 200


async def test_requests_without_a_login_keep_nobody_out(tmp_path: Path) -> None:
    async with open_web_app(tmp_path, rate_limit_per_minute=1, rate_limit_burst=3) as app:
        for _ in range(20):
            assert (await app.client.get("/api/me", NOBODY)).status == 401
            assert (await app.client.get("/health", NOBODY)).status == 200
            assert (await app.client.get("/health")).status == 200
        login = await log_in(app)
        assert (await app.client.get("/api/me", login.headers(app.client))).status == 200


async def test_cookies_that_another_server_of_the_host_planted_end_no_login(tmp_path: Path) -> None:
    async with open_web_app(tmp_path) as app:
        login, other = await log_in(app), await log_in(app)
        name = login.cookie.partition("=")[0]
        planted = [f"{name}=x", f"{name}={'y' * 43}", other.cookie, f"{name}="]
        for cookies in ([*planted, login.cookie], [login.cookie, *planted]):
            sent = login.headers(app.client, cookie="; ".join(cookies))
            assert (await app.client.get("/api/me", sent)).status == 200
            assert (await app.client.post("/api/sessions", {}, sent)).status == 201
        without = login.headers(app.client, cookie="; ".join(planted))
        assert (await app.client.get("/api/me", without)).status == 401
