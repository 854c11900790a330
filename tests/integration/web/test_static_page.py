"""Serving the page and logging in to it."""

import gzip
from pathlib import Path

import pytest

from internal.channels.web.static_page import read_page
from tests.support.http_client import HttpClient, Reply
from tests.support.web_app import WebApp, open_web_app

NOBODY = {"authorization": None}


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
    return folder / "dist"


def cookie_of(reply: Reply) -> str:
    return reply.headers["set-cookie"].partition(";")[0]


async def log_in(app: WebApp) -> str:
    """Use a fresh link; return the cookie as a browser sends it."""
    link = (await app.client.post("/api/links", {})).json()["url"]
    code = {"code": link.partition("#code=")[2]}
    reply = await app.client.post("/api/login", code, NOBODY)
    assert reply.status == 204
    return cookie_of(reply)


def with_cookie(cookie: str, client: HttpClient, **more: str) -> dict[str, str | None]:
    return {**NOBODY, "cookie": cookie, "origin": f"http://127.0.0.1:{client.port}", **more}


async def test_a_page_that_is_not_built_is_reported(tmp_path: Path) -> None:
    async with open_web_app(tmp_path) as app:
        for path in ("/", "/waiting", "/sessions/session-x"):
            reply = await app.client.get(path, NOBODY)
            assert reply.status == 503
            assert "make page" in reply.error["message"]
        assert (await app.client.get("/assets/index.js", NOBODY)).status == 404


async def test_the_page_is_public_with_a_strict_content_security_policy(tmp_path: Path) -> None:
    async with open_web_app(tmp_path, read_page(built(tmp_path))) as app:
        for path in ("/", "/waiting", "/sessions/session-x"):
            reply = await app.client.get(path, NOBODY)
            assert (reply.status, reply.body) == (200, b"<!doctype html>the page")
            assert reply.headers["cache-control"] == "no-cache"
            assert reply.headers["x-content-type-options"] == "nosniff"
            policy = reply.headers["content-security-policy"].split("; ")
            assert {"default-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} <= {*policy}
            assert "unsafe" not in reply.headers["content-security-policy"]


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
        assert reply.status == 204
        said = reply.headers["set-cookie"]
        assert said.startswith(f"larkspur-{port}=")
        assert {"httponly", "samesite=lax", "path=/"} <= {
            part.strip().lower() for part in said.split(";")
        }
        assert "secure" not in said.lower()
        me = await app.client.get("/api/me", {**NOBODY, "cookie": f"a=b; {cookie_of(reply)}"})
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
        cookie = await log_in(app)
        bare = {**NOBODY, "cookie": cookie}
        assert (await app.client.post("/api/sessions", {}, bare)).status == 401
        own = with_cookie(cookie, app.client)
        assert (await app.client.post("/api/sessions", {}, own)).status == 201
        foreign = with_cookie(cookie, app.client, origin="http://evil.example")
        assert (await app.client.post("/api/sessions", {}, foreign)).status == 403


@pytest.mark.parametrize("wrong", ["", "x", "{cookie}x", "{cookie}; {cookie}", "\xff"])
async def test_any_other_cookie_is_rejected(tmp_path: Path, wrong: str) -> None:
    async with open_web_app(tmp_path) as app:
        cookie = await log_in(app)
        sent = wrong.format(cookie=cookie)
        assert (await app.client.get("/api/me", {**NOBODY, "cookie": sent})).status == 401


async def test_a_login_survives_a_restart_and_ends_with_the_logout(tmp_path: Path) -> None:
    async with open_web_app(tmp_path) as app:
        port, cookie = app.client.port, await log_in(app)
    async with open_web_app(tmp_path, port=port) as app:
        own = with_cookie(cookie, app.client)
        run = await app.task()
        stream = {**NOBODY, "cookie": cookie}
        async with app.client.stream(f"session_id={run.session_id}", stream) as frames:
            assert (await app.client.post("/api/logout", {}, own)).status == 204
            await frames.until("bye")
        assert (await app.client.get("/api/me", {**NOBODY, "cookie": cookie})).status == 401


async def test_failed_codes_are_rate_limited(tmp_path: Path) -> None:
    async with open_web_app(tmp_path) as app:
        tried = [
            await app.client.post("/api/login", {"code": f"guess {n}"}, NOBODY) for n in range(12)
        ]
        assert [reply.status for reply in tried] == [403] * 10 + [429] * 2
        assert tried[-1].error["code"] == "too_many_codes"
        assert 1 <= int(tried[-1].headers["retry-after"]) <= 6
