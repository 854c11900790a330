"""A session with thousands of events: its end at once, earlier events on demand."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.long_session import fill
from tests.support.page_in_browser import Open, Serve

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

EVENTS = "**/api/sessions/*/events?*"
SETTLE = """(above) => new Promise((done) => {
  const view = document.querySelector('[data-testid=thread]');
  let last = -1, frames = 0;
  const step = () => {
    frames = view.scrollTop === last ? frames + 1 : 0;
    last = view.scrollTop;
    if (frames > 30 && last > above) done(); else requestAnimationFrame(step);
  };
  step();
})"""
"""Resolves when so many pixels are above the view, and the list has measured its rows: it moves the
view until then."""


def test_earlier_events_are_loaded_on_scrolling_up(serve: Serve, enter: Open, home: Path) -> None:
    with ThreadPoolExecutor() as threads:  # the driver of the browser has a loop in this one
        session = threads.submit(asyncio.run, fill(home, 300)).result()
    gateway = serve()
    page = enter(gateway, viewport={"width": 800, "height": 700})  # without the side panel
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url) if "/events?" in one.url else None)
    page.goto(f"{gateway.url}/sessions/{session}")
    thread = page.get_by_test_id("thread")
    start = thread.get_by_text("a very long task")
    earlier = page.get_by_role("button", name="Show earlier messages")
    expect(thread.get_by_text("remark 299", exact=True)).to_be_in_viewport()
    assert len(asked) == 1, "the newest page"

    # at once, while the list still measures its rows
    thread.hover()
    with page.expect_response(EVENTS):
        page.mouse.wheel(0, -100_000)
    # the view stays where it was: below 100 earlier iterations
    page.evaluate(SETTLE, 2_000)
    near = re.compile("^remark (19|20|21)[0-9]$")
    expect(thread.get_by_text(near).first).to_be_visible()
    expect(start).to_have_count(0)

    with page.expect_response(EVENTS):
        page.mouse.wheel(0, -100_000)
    page.evaluate(SETTLE, 2_000)
    page.mouse.wheel(0, -100_000)
    expect(start).to_be_visible()
    expect(earlier).to_have_count(0)
    assert len(asked) == 4, "each time as many events as there are"


@pytest.mark.slow
def test_the_side_panel_has_the_sums_of_the_whole_session(
    serve: Serve, enter: Open, home: Path
) -> None:
    with ThreadPoolExecutor() as threads:
        session = threads.submit(asyncio.run, fill(home, 300)).result()
    gateway = serve()
    page = enter(gateway, viewport={"width": 1400, "height": 800})
    page.goto(f"{gateway.url}/sessions/{session}")
    panel = page.get_by_role("tabpanel")
    expect(panel.get_by_text("30k", exact=True)).to_be_visible()  # tokens of 300 requests
    expect(page.get_by_test_id("thread").get_by_text("remark 299", exact=True)).to_be_in_viewport()
