"""The page at other addresses than that of the gateway: below a path, and over plain http."""

import re
import shutil
import subprocess
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.gateway import Gateway
from tests.machine.abilities import CHROMIUM_FLAGS
from tests.support.page_in_browser import Serve, send
from tests.support.ports import free_port
from tests.support.reverse_proxy import (
    HOST,
    NGINX,
    ProxySite,
    below_path,
    make_site,
    proxy_command,
)

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

LAN = "larkspur.lan"
START_OF = "async (manifest) => (await (await fetch(manifest)).json()).start_url"
Visit = Callable[[str], Page]


@pytest.fixture
def visit(browser: Browser) -> Generator[Visit]:
    """Open addresses in a browser for which the names of other hosts lead to this machine."""
    rules = f"--host-resolver-rules=MAP {HOST} 127.0.0.1, MAP {LAN} 127.0.0.1"
    launched = browser.browser_type.launch(
        executable_path=shutil.which("chromium"), args=[*CHROMIUM_FLAGS, "--no-proxy-server", rules]
    )
    errors: list[str] = []

    def visited(url: str) -> Page:
        made = launched.new_context(ignore_https_errors=True, locale="en-GB")
        made.on("weberror", lambda thrown: errors.append(str(thrown.error)))
        page = made.new_page()
        page.goto(url)
        page.locator("#message").wait_for()
        return page

    yield visited
    launched.close()
    assert errors == []


@contextmanager
def nginx_below_path(site: ProxySite, gateway: Gateway) -> Generator[None]:
    """Run the example of nginx, which removes the path /larkspur."""
    command, environ, ready = proxy_command(NGINX, site, [gateway.port], below_path)
    with subprocess.Popen(command, env=environ, cwd=site.folder, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        try:
            log = b""
            while ready.encode() not in log:
                line = process.stderr.readline()
                assert line, f"nginx ended: {log.decode()}"
                log += line
            yield
        finally:
            process.terminate()


@pytest.mark.slow
@pytest.mark.needs("openssl", "nginx")
def test_the_page_works_below_a_path_that_the_proxy_removes(
    serve: Serve, visit: Visit, tmp_path: Path
) -> None:
    site = make_site(tmp_path / "proxy")
    gateway = serve(SERVER__PUBLIC_URL=f"{site.url}/larkspur")
    with nginx_below_path(site, gateway):
        page = visit(gateway.link())
        paths: set[str] = set()
        page.on("request", lambda request: paths.add(urlsplit(request.url).path))
        expect(page).to_have_url(f"{site.url}/larkspur/")
        (cookie,) = page.context.cookies()
        assert (cookie.get("path"), cookie.get("secure")) == ("/larkspur", True)
        send(page, "what is 6*7")
        answer = page.locator("main").get_by_text("42").first
        expect(answer).to_be_visible()
        expect(page).to_have_url(re.compile("/larkspur/sessions/session-"))
        page.reload()
        expect(answer).to_be_visible()
        page.get_by_role("link", name="Settings", exact=True).click()
        expect(page).to_have_url(f"{site.url}/larkspur/settings")
        expect(page.get_by_role("heading", name="Settings")).to_be_visible()
        page.goto(f"{site.url}/larkspur/library")
        expect(page.get_by_role("heading", name="Library")).to_be_visible()
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("Code", exact=True)).to_be_visible()
        expect(page).to_have_url(f"{site.url}/larkspur/")
        assert [path for path in paths if not path.startswith("/larkspur/")] == []
        assert page.evaluate(START_OF, "/larkspur/manifest.webmanifest") == "./"
        page.goto(f"{gateway.url}/waiting")
        expect(page).to_have_url(f"{gateway.url}/larkspur/waiting")


def test_the_page_works_over_plain_http(
    home: Path, environ: dict[str, str], stack: ExitStack, visit: Visit
) -> None:
    port = free_port()
    extra = {
        "LARKSPUR_SERVER__PUBLIC_URL": f"http://{LAN}:{port}",
        "LARKSPUR_TOOLS__PERMISSION_MODE": "ask",
    }
    gateway = Gateway(home, environ, port, extra=extra)
    stack.callback(gateway.kill)
    gateway.start()
    page = visit(gateway.link())
    assert not page.evaluate("isSecureContext")
    notice = page.get_by_role("note").filter(has_text="opened over plain http")
    expect(notice).to_be_visible()
    notice.get_by_role("button", name="Do not show again").click()
    expect(notice).to_have_count(0)
    expect(page.get_by_role("button", name="Notifications")).to_have_count(0)
    session = gateway.task("run touch hello.txt in the background")["session_id"]
    page.goto(f"http://{LAN}:{port}/sessions/{session}")
    lane = page.get_by_role("button", expanded=False).filter(has_text="task 1").first
    lane.click()
    expect(page.get_by_role("button", expanded=True).filter(has_text="task 1")).to_be_visible()
    expect(notice).to_have_count(0)
    copy = page.get_by_role("button", name="Copy the answer").first
    copy.click()
    expect(page.get_by_role("button", name="Copied").first).to_be_visible()
    page.locator("#message").press("Control+V")
    expect(page.locator("#message")).to_have_value(re.compile("offline demo model"))
