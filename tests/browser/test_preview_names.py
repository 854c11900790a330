"""Previews of hostile files resolve no name and open no connection, as Chromium's own log shows."""

import json
import re
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.machine.abilities import CHROMIUM_FLAGS
from tests.support.file_panel import making, opened, panel, title
from tests.support.page_in_browser import Serve, choose_mode, send, status

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

KINDS = ("preconnect", "dns-prefetch", "prefetch", "preload", "modulepreload", "prerender")
HINTS = "".join(
    f'<link rel="{kind}" as="image" href="http://{kind}.canary.example/x"/>'
    for kind in (*KINDS, "stylesheet", "icon", "manifest")
)
LOADED = (
    '<meta http-equiv="x-dns-prefetch-control" content="on"/>'
    '<a href="https://link.canary.example/">shown</a><img src="http://img.canary.example/x"/>'
    "<style>@import url(http://import.canary.example/x); @font-face { font-family: f;"
    " src: url(http://font.canary.example/x) } body { font-family: f;"
    " background: url(http://css.canary.example/x) }</style>"
    '<p style="background: url(http://attribute.canary.example/x)">shown</p>'
    '<iframe src="http://iframe.canary.example/x"></iframe>'
    '<object data="http://object.canary.example/x"></object>'
    '<video src="http://video.canary.example/x" poster="http://poster.canary.example/x"></video>'
)
FILES = {
    "report.html": f"{HINTS}{LOADED}<svg><image href='http://inner.canary.example/x'/></svg>",
    "refresh.html": '<meta http-equiv="refresh" content="0; url=http://refresh.canary.example/">'
    "<p>shown</p>",
    "drawing.svg": '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90">'
    '<image href="http://picture.canary.example/x" width="9" height="9"/>'
    '<use href="http://use.canary.example/x#a"/><foreignObject width="90" height="90">'
    f'<div xmlns="http://www.w3.org/1999/xhtml">{HINTS}{LOADED}</div></foreignObject></svg>',
}


def resolved(log: Path) -> set[str]:
    """Return the names that Chromium tried to resolve or connect to, as its network log says."""
    content = json.loads(log.read_text())
    names = {number: name for name, number in content["constants"]["logEventTypes"].items()}
    found: set[str] = set()
    for event in content["events"]:
        if names[event["type"]].startswith(("HOST_RESOLVER", "DNS", "TCP", "SOCKET", "HTTP")):
            found |= {*re.findall(r"([a-z-]+)\.canary\.example", json.dumps(event))}
    return found


def watched(browser: Browser, folder: Path, use: Callable[[Page], None]) -> set[str]:
    """Use a Chromium like that of a person, and return the names that it resolved.

    Only one with a stored profile connects in advance. At last it does so for the name `known`.
    """
    log, networking = folder / "log.json", "--disable-background-networking"
    flags = [each for each in CHROMIUM_FLAGS if each != networking]
    context = browser.browser_type.launch_persistent_context(
        folder / "profile",
        executable_path=shutil.which("chromium"),
        ignore_default_args=[networking],
        args=[*flags, f"--log-net-log={log}"],
        locale="en-GB",
    )
    use(context.pages[0])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        here = f"http://127.0.0.1:{listener.getsockname()[1]}"
        hosts = ("http://known.canary.example", here)
        hints = "".join(f'<link rel="preconnect" href="{each}">' for each in hosts)
        context.pages[0].set_content(hints)
        listener.accept()[0].close()
    context.close()  # completes the log
    return resolved(log)


@pytest.mark.slow
def test_previews_resolve_no_name(
    browser: Browser, serve: Serve, script: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    answer = "The files are ready: [shown](https://answer.canary.example/)."
    gateway = serve(script([*making(f"cp {folder}/* output/", answer=answer), title()]))

    def show(page: Page) -> None:
        page.goto(gateway.link())
        choose_mode(page, "Everything")
        send(page, "make files")
        status(page, "completed")
        for name in FILES:
            dialog = opened(page, panel(page), name)
            if name.endswith(".svg"):
                picture = dialog.get_by_role("img", name=name)
                expect(picture).to_be_visible()
                assert picture.evaluate("one => one.naturalWidth") > 0
            else:
                inner = dialog.frame_locator("iframe").frame_locator("iframe")
                expect(inner.get_by_text("shown").first).to_be_visible()
            page.keyboard.press("Escape")
            expect(dialog).to_have_count(0)

    assert watched(browser, tmp_path, show) == {"known"}
