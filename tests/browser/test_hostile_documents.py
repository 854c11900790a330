"""A hostile HTML document is shown with its styles, and asks a server that it names for nothing."""

import re
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import FrameLocator, expect

from tests.support.file_panel import making, opened, panel, title
from tests.support.page_in_browser import Open, Serve, choose_mode, send, status

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

DOT = "data:image/gif;base64,R0lGODlhAQABAIAAAAUEBAAAACwAAAAAAQABAAACAkQBADs="


class Recorder(ThreadingHTTPServer):
    """Answers every request, and keeps the paths."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Recorder

    def _answer(self) -> None:
        self.server.asked.append(self.path)
        self.send_response(204)
        self.send_header("access-control-allow-origin", "*")
        self.end_headers()

    do_GET = do_POST = do_HEAD = do_OPTIONS = _answer  # noqa: N815  # names of http.server

    def log_message(self, *_about: object) -> None:
        """Write nothing."""


@pytest.fixture
def recorder() -> Generator[Recorder]:
    with Recorder() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def document(url: str) -> str:
    """Return a document that tries to reach a server in every way, and has styles of its own."""
    hints = "preconnect dns-prefetch prefetch preload modulepreload stylesheet icon manifest"
    links = "".join(f'<link rel="{each}" as="image" href="{url}/{each}">' for each in hints.split())
    script = f"fetch('{url}/script'); new Image().src='{url}/script-image'; top.ran = 1"
    return f"""<!doctype html><html><head><base href="{url}/base/">{links}
<meta http-equiv="refresh" content="0; url={url}/refresh">
<meta http-equiv="Content-Security-Policy" content="default-src *; script-src * 'unsafe-inline'">
<style>@import url({url}/import); @font-face {{ font-family: f; src: url({url}/font) }}
h1 {{ color: rgb(0, 128, 0); font-family: f, serif; background: url({url}/css);
 cursor: url({url}/cursor), auto }}
h1::before {{ content: image-set("{url}/set" 1x) }} a {{ display: block }}
h1::after {{ content: url({url}/content) }}
@media (min-width: 1px) {{ body {{ list-style: url({url}/list); margin: 9px }} }}</style>
<script>{script}</script><script src="{url}/script-file"></script></head>
<body onload="{script}" background="{url}/background"><h1>Weekly report</h1>
<p style="color: rgb(200, 0, 0); background-image: url({url}/attribute)">in red</p>
<img alt="dot" src="{DOT}" width="9" height="9"><img src="{url}/img" onerror="{script}">
<img srcset="{url}/srcset 1x, relative 2x"><picture><source srcset="{url}/source"></picture>
<svg><image href="{url}/svg-image"/><use href="{url}/use#a"/><script>{script}</script></svg>
<video src="{url}/video" poster="{url}/poster" autoplay></video><audio src="{url}/audio"></audio>
<iframe src="{url}/iframe"></iframe><iframe srcdoc="<script>{script}</script>"></iframe>
<object data="{url}/object"></object><embed src="{url}/embed">
<form action="{url}/form" method="post"><input name="a" autofocus onfocus="{script}">
<button formaction="{url}/formaction">send it</button></form>
<a href="{url}/link" ping="{url}/ping" target="_top">a link</a>
<a href="javascript:{script}">a script</a></body></html>"""


@pytest.mark.slow
def test_a_hostile_document_keeps_its_styles_and_asks_for_nothing(
    serve: Serve, script: Any, enter: Open, tmp_path: Path, recorder: Recorder, shots: Path
) -> None:
    source = tmp_path / "report.html"
    source.write_text(document(recorder.url), encoding="utf-8")
    gateway = serve(script([*making(f"cp {source} output/"), title()]))
    page = enter(gateway)
    choose_mode(page, "Everything")
    send(page, "make the weekly report")
    status(page, "completed")
    dialog = opened(page, panel(page), "report.html")
    frame = dialog.frame_locator("iframe").frame_locator("iframe")
    has_its_styles(frame)
    for name in ("send it", "a link", "a script"):
        frame.get_by_text(name).click()
    has_its_styles(frame)
    page.screenshot(path=shots / "hostile-document.png")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)
    page.goto(f"{gateway.url}/library")
    picture = page.get_by_test_id("document-picture")
    has_its_styles(picture.frame_locator("iframe").frame_locator("iframe"))
    page.screenshot(path=shots / "hostile-thumbnail.png")
    assert page.url == f"{gateway.url}/library"
    assert page.evaluate("window.ran") is None
    # the server does answer
    page.request.get(f"{recorder.url}/known")
    assert recorder.asked == ["/known"]


def has_its_styles(frame: FrameLocator) -> None:
    """Check that a document is shown as it was made."""
    heading = frame.get_by_role("heading", name="Weekly report")
    expect(heading).to_have_css("color", "rgb(0, 128, 0)")
    expect(frame.get_by_text("in red")).to_have_css("color", "rgb(200, 0, 0)")
    expect(frame.locator("body")).to_have_css("margin-top", "9px")
    expect(frame.locator("img[alt=dot]")).to_have_js_property("naturalWidth", 1)
    expect(frame.locator("a[href]")).to_have_count(0)
    expect(frame.locator("script, iframe, object, embed, base, meta[http-equiv]")).to_have_count(0)
    assert not re.search("on(load|error|focus)=", frame.locator("html").inner_html())
