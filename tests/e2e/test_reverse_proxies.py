"""The examples for nginx and Caddy with the real programs, in front of real gateways."""

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from internal.agent.domain.events.types import LifecycleUpdated, OutputDelta
from internal.channels.web.services import WebTimeouts
from internal.channels.web.static_page import Page
from internal.settings.settings import Settings
from tests import ROOT
from tests.support.browser_login import NOBODY
from tests.support.gateway_process import running_gateway
from tests.support.reverse_proxy import (
    CADDY,
    HOST,
    NGINX,
    ProxyClient,
    ProxySite,
    below_path,
    make_site,
    replaced,
    run_proxy,
)
from tests.support.web_app import TOKEN, WebApp, open_web_app

pytestmark = pytest.mark.needs("openssl")
KINDS = pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.needs(kind)) for kind in (NGINX, CADDY)]
)
MAX_FILE_BYTES = Settings().attachments.max_file_bytes


@pytest.fixture
def site(tmp_path: Path) -> ProxySite:
    return make_site(tmp_path / "proxy")


@asynccontextmanager
async def proxied_app(
    kind: str, site: ProxySite, folder: Path
) -> AsyncGenerator[tuple[WebApp, ProxyClient]]:
    """A web server without a coordinator: tests decide when there is something to send."""
    async with (
        open_web_app(folder, public_url=site.url) as app,
        run_proxy(kind, site, [app.client.port]),
    ):
        yield app, ProxyClient(site, TOKEN)


async def log_in(client: ProxyClient, link: str, site: ProxySite) -> dict[str, str | None]:
    """Open a link as a browser does, and return the headers of its further requests."""
    assert link.startswith(f"{site.url}/#code=")
    page = {**NOBODY, "origin": site.url, "sec-fetch-site": "same-origin"}
    reply = await client.post("/api/login", {"code": link.partition("#code=")[2]}, page)
    assert reply.status == 200, reply
    cookie, _, attributes = reply.headers["set-cookie"].partition(";")
    assert "Secure" in attributes
    return {**page, "cookie": cookie, "x-larkspur-login-key": reply.json()["key"]}


def delta(k: int) -> OutputDelta:
    return OutputDelta(node_id="iter:1:say", k=k, n=1, text=f"word {k} ")


@KINDS
async def test_each_frame_arrives_before_there_is_another(
    kind: str, site: ProxySite, tmp_path: Path
) -> None:
    async with proxied_app(kind, site, tmp_path) as (app, client):
        run = await app.task()
        headers = {"accept-encoding": "gzip, br, zstd"}
        async with client.stream(f"session_id={run.session_id}", headers) as stream:
            assert "content-encoding" not in stream.headers
            assert stream.headers["content-type"].startswith("text/event-stream")
            await stream.until("replay.done")
            for k in range(1, 6):
                app.publish(run, delta(k))
                # only published deltas can arrive, and the next one only after this one
                [*_, frame] = await stream.until("workflow.node.output.delta")
                assert frame.json()["payload"]["k"] == k
            await app.store(run, LifecycleUpdated(status="queued", phase="work"))
            await stream.until("workflow.lifecycle.updated")


@KINDS
async def test_the_page_is_below_a_path_that_the_proxy_removes(
    kind: str, site: ProxySite, tmp_path: Path
) -> None:
    below = site._replace(path="/larkspur")
    page = Page(b'<html lang="en"><script src="./assets/a.js"></script>', {})
    async with (
        open_web_app(tmp_path, page, public_url=below.url) as app,
        run_proxy(kind, site, [app.client.port], below_path),
    ):
        client = ProxyClient(site, TOKEN)
        reply = await client.get("/larkspur/sessions/x", NOBODY)
        assert b'<html data-path="/larkspur" ' in reply.body
        assert b'src="/larkspur/assets/a.js"' in reply.body
        moved = await client.get("/larkspur", NOBODY)
        assert (moved.status in {301, 302}, moved.headers["location"][-10:]) == (True, "/larkspur/")
        link = app.server.link()
        assert link.startswith(f"{below.url}/#code=")
        code = {"code": link.partition("#code=")[2]}
        login = await client.post("/larkspur/api/login", code, {**NOBODY, "origin": site.url})
        assert login.status == 200, login
        assert "Path=/larkspur;" in login.headers["set-cookie"]


@pytest.mark.slow
@KINDS
async def test_heartbeats_keep_an_idle_stream_open(
    kind: str, site: ProxySite, tmp_path: Path
) -> None:
    """The example waits for 360 s and heartbeats come every 15 s; here it is 1 s and 0.2 s."""
    quick, slow = WebTimeouts(heartbeat_seconds=0.2), WebTimeouts(heartbeat_seconds=3600.0)

    def impatient(text: str) -> str:
        if kind == NGINX:
            return replaced(text, r"proxy_read_timeout 360s", "proxy_read_timeout 1s")
        return text

    async with (
        open_web_app(tmp_path, timeouts=quick, public_url=site.url) as app,
        run_proxy(kind, site, [app.client.port], impatient),
    ):
        run = await app.task()
        async with ProxyClient(site, TOKEN).stream(f"session_id={run.session_id}") as stream:
            for _ in range(15):  # 3 s
                await stream.until("hb")
            app.publish(run, delta(1))
            await stream.until("workflow.node.output.delta")
    if kind == CADDY:  # it has no such timeout
        return
    async with (
        open_web_app(tmp_path, timeouts=slow, public_url=site.url) as app,
        run_proxy(kind, site, [app.client.port], impatient),
    ):
        query = f"session_id={run.session_id}"
        async with ProxyClient(site, TOKEN).stream(query) as stream:
            frames = await stream.rest()
            assert "hb" not in {frame.event for frame in frames}
            assert "bye" not in {frame.event for frame in frames}  # cut by the proxy


@KINDS
async def test_logins_and_other_requests_pass(kind: str, site: ProxySite, tmp_path: Path) -> None:
    async with proxied_app(kind, site, tmp_path) as (_, client):
        link = (await client.post("/api/links")).json()["url"]
        browser = await log_in(client, link, site)
        assert (await client.get("/api/me", browser)).status == 200
        assert (await client.post("/api/tasks", {"task": "hello"}, browser)).status == 201
        foreign = {**browser, "origin": "https://elsewhere.example"}
        assert (await client.post("/api/tasks", {"task": "hello"}, foreign)).status == 403
        assert (await client.get("/api/me", NOBODY)).status == 401
        unknown = await client.get("/api/me", {"host": "elsewhere.example"})
        # nginx passes the host on, and the gateway refuses it; Caddy has no such site
        assert (unknown.status, unknown.body == b"") == (
            (421, False) if kind == NGINX else (200, True)
        )


@pytest.mark.slow
@KINDS
async def test_files_up_to_the_limit_pass_and_larger_ones_do_not(
    kind: str, site: ProxySite, tmp_path: Path
) -> None:
    content = os.urandom(10) + bytes(MAX_FILE_BYTES - 10)
    sha256 = hashlib.sha256(content).hexdigest()
    pdf = {"content-type": "application/pdf"}
    async with proxied_app(kind, site, tmp_path) as (_, client):
        reply = await client.request("PUT", "/api/attachments?name=a.pdf", content, pdf)
        assert (reply.status, reply.json()["sha256"]) == (201, sha256)
        reply = await client.request("PUT", "/api/attachments?name=a.pdf", content + b"x", pdf)
        assert reply.status == 413
        part = await client.get(f"/api/attachments/{sha256}", {"range": "bytes=5-9"})
        assert (part.status, part.body) == (206, content[5:10])


def test_the_limits_of_the_examples_are_those_of_the_settings() -> None:
    for name, pattern in (
        ("nginx.conf", r"client_max_body_size (\d+);"),
        ("Caddyfile", r"max_size (\d+)"),
    ):
        found = re.search(pattern, (ROOT / "configs/deploy" / name).read_text())
        assert found
        assert int(found[1]) == MAX_FILE_BYTES


@KINDS
async def test_http_2(kind: str, site: ProxySite, tmp_path: Path) -> None:
    async with proxied_app(kind, site, tmp_path) as (app, _):
        run = await app.task()
        query = f"{site.url}/api/sse?session_id={run.session_id}"
        process = await asyncio.create_subprocess_exec(
            *("curl", "--silent", "--no-buffer", "--http2", "--include", query),
            *("--resolve", f"{HOST}:{site.port}:127.0.0.1"),
            *("--cacert", site.authority.ca_file, "--header", f"Authorization: Bearer {TOKEN}"),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        async with asyncio.timeout(30):
            assert await process.stdout.readline() == b"HTTP/2 200 \r\n"
            while b"event: replay.done" not in await process.stdout.readline():
                assert not process.stdout.at_eof()
            app.publish(run, delta(1))
            while b"workflow.node.output.delta" not in await process.stdout.readline():
                assert not process.stdout.at_eof()
        process.kill()
        await process.communicate()


async def count_tasks(app: WebApp) -> int:
    return len((await app.client.get("/api/tasks")).json()["tasks"])


@KINDS
@pytest.mark.first_rows(1)
async def test_another_gateway_answers_when_one_has_gone(
    kind: str, site: ProxySite, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    async with (
        open_web_app(folders[0], public_url=site.url) as first,
        open_web_app(folders[1], public_url=site.url) as second,
        run_proxy(kind, site, [first.client.port, second.client.port]),
    ):
        client = ProxyClient(site, TOKEN)
        assert {(await client.post("/api/tasks", {"task": "hi"})).status for _ in range(6)} == {201}
        counts = [await count_tasks(app) for app in (first, second)]
        assert sorted(counts) == [0, 6]  # a person stays on one gateway
        used, other = (first, second) if counts[0] else (second, first)
        await used.server.stop()
        assert (await client.get("/api/me")).status == 200
        assert (await client.post("/api/tasks", {"task": "hi"})).status == 201
        assert await count_tasks(other) == 1


@KINDS
async def test_gateways_behind_a_proxy_share_links_and_logins(
    kind: str, site: ProxySite, tmp_path: Path
) -> None:
    """The databases differ here; the home folder is the same."""
    home = tmp_path / "home"
    for folder in (home, other_folder := tmp_path / "other"):
        folder.mkdir()
    async with (
        open_web_app(home, public_url=site.url) as first,
        open_web_app(other_folder, logins=home, public_url=site.url) as second,
        run_proxy(kind, site, [first.client.port, second.client.port]),
    ):
        apps, client = (first, second), ProxyClient(site, TOKEN)
        browsers = [await log_in(client, app.server.link(), site) for app in apps]
        by_host = {"host": f"{HOST}:{site.port}"}
        for browser in browsers:
            assert (await client.get("/api/me", browser)).status == 200
            for app in apps:
                assert (await app.client.get("/api/me", {**browser, **by_host})).status == 200
        assert (await client.post("/api/logout", {}, browsers[0])).status == 204
        for app in apps:
            assert (await app.client.get("/api/me", {**browsers[0], **by_host})).status == 401


@pytest.mark.slow
@KINDS
async def test_a_run_of_a_gateway_process_is_streamed(
    kind: str, site: ProxySite, environ: dict[str, str], home: Path
) -> None:
    behind = {**environ, "LARKSPUR_SERVER__PUBLIC_URL": site.url}
    async with (
        running_gateway(behind, home) as running,
        run_proxy(kind, site, [running.client.port]),
    ):
        client = ProxyClient(site, running.client.token)
        page = await client.get("/", NOBODY)
        assert (page.status, b"<div id=" in page.body) == (200, True)
        made = (await client.post("/api/tasks", {"task": "what is 6*7"})).json()
        async with client.stream(f"session_id={made['session_id']}") as stream:
            frames = await stream.until("workflow.result.final")
        assert "42" in frames[-1].data
