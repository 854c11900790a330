"""Messages to a person who is offline, looks elsewhere, or installed the page."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.support.page_in_browser import Open, Serve, send, session_of, status

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

RECORD_NOTIFICATIONS = """
const shown = [];
window.Notification = class extends Notification {
  constructor(title, options) {
    super(title, options);
    shown.push(title);
    document.body.dataset.shown = shown.join(', ');
  }
};
let hidden = false;
Object.defineProperty(document, 'hidden', { get: () => hidden });
window.hide = (yes) => {
  hidden = yes;
  document.dispatchEvent(new Event('visibilitychange'));
};
"""
UNSENT = "The message is sent when it answers again."


def announced(page: Page, titles: str) -> None:
    expect(page.locator("body")).to_have_attribute("data-shown", titles)


def test_an_unsent_message_is_sent_once_when_the_server_answers_again(
    serve: Serve, enter: Open
) -> None:
    page = enter(gateway := serve())
    send(page, "hello")
    status(page, "completed")
    gateway.kill()
    message = page.get_by_label("Message", exact=True)
    send(page, "what is 6*8?")
    expect(page.get_by_text(UNSENT)).to_be_visible()
    page.get_by_role("button", name="t send").click()
    expect(page.get_by_text(UNSENT)).to_have_count(0)
    send(page, "what is 6*7?")
    expect(page.get_by_text(UNSENT)).to_be_visible()
    expect(message).to_have_value("what is 6*7?")

    gateway.start()
    expect(page.get_by_text("6*7 = 42")).to_be_visible()
    expect(message).to_have_value("")
    expect(page.get_by_text(UNSENT)).to_have_count(0)
    tasks = gateway.ask("GET", f"/api/tasks?session_id={session_of(page)}")["tasks"]
    assert [one["task"] for one in tasks] == ["what is 6*7?", "hello"]


@pytest.mark.slow
def test_a_hidden_page_announces_what_waits_and_ends(
    serve: Serve, context: Callable[..., BrowserContext]
) -> None:
    gateway = serve()
    browser = context(permissions=["notifications"])
    browser.add_init_script(RECORD_NOTIFICATIONS)
    page, tab = browser.new_page(), browser.new_page()
    page.goto(gateway.link())
    page.locator("#message").wait_for()
    tab.goto(gateway.url)
    bell = page.get_by_role("button", name="Notify me when something waits or ends")
    bell.click()
    expect(bell).to_have_attribute("aria-pressed", "true")

    # seen by another tab: nothing is announced
    page.evaluate("() => window.hide(true)")
    send(page, "what is 6*7?")
    status(page, "completed")
    expect(page).to_have_title("✓ what is 6*7? · Larkspur")

    tab.evaluate("() => window.hide(true)")
    send(page, "run touch hello.txt")
    status(page, "waiting")
    expect(page).to_have_title(re.compile(r"^✓ \(1\) "))
    announced(page, "Waiting for you")
    question = gateway.ask("GET", "/api/questions")["questions"][0]["question_id"]
    gateway.ask("POST", f"/api/questions/{question}/answer", {"decision": "reject"})
    status(page, "completed")
    announced(page, "Waiting for you, Completed")
    page.evaluate("() => window.hide(false)")
    expect(page).to_have_title(re.compile("^[^✓(]"))


@pytest.mark.slow
def test_the_page_can_be_installed(serve: Serve, enter: Open) -> None:
    page = enter(serve())
    devtools = page.context.new_cdp_session(page)
    told: dict[str, Any] = devtools.send("Page.getAppManifest")
    assert told["errors"] == []
    manifest = json.loads(told["data"])
    assert manifest["display"] == "standalone"
    for icon in manifest["icons"]:
        side = page.evaluate(
            """async (address) => {
              const reply = await fetch(address);
              return (await createImageBitmap(await reply.blob())).width;
            }""",
            icon["src"],
        )
        assert icon["sizes"] == f"{side}x{side}"
