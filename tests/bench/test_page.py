"""The page in Chromium: how soon a long session is on the screen."""

import asyncio
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.bench.processes import gateway
from tests.bench.table import Row, Table, most
from tests.browser.gateway import call
from tests.browser.long_session import EVENTS_PER_ITERATION, fill

pytestmark = pytest.mark.bench

ROUNDS = 5
SHOWN = "performance.getEntriesByName('larkspur.shown').at(-1)?.startTime"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.mark.parametrize("events", [10_000, 40_000])
def test_the_first_paint_of_a_long_session(tmp_path: Path, table: Table, events: int) -> None:
    iterations = events // EVENTS_PER_ITERATION
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    session = asyncio.run(fill(home, iterations))
    shown, bare = [], []
    with gateway(home) as server, sync_playwright() as playwright:
        url = f"http://127.0.0.1:{server.port}"
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page()
        page.goto(str(call(url, "POST", "/api/links", {}, server.token)["url"]))
        page.locator("#message").wait_for()
        for _ in range(ROUNDS):
            page.goto("about:blank")
            page.goto(f"{url}/sessions/{session}")
            page.get_by_text(f"remark {iterations - 1}", exact=True).wait_for()
            shown.append(float(page.evaluate(SHOWN)))
            painted = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            bare.append(float(page.evaluate(painted)))
        browser.close()
    goal = most(1_000, of="ours")
    table.add(Row(f"page, {events:,} events shown", "ms", shown, bare, "its first paint", goal))
