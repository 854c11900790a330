"""The page in a browser: opening it, sending, and reading its state."""

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, Request, expect

from tests import ROOT
from tests.browser.gateway import Gateway

Open = Callable[..., Page]


Serve = Callable[..., Gateway]


def is_blocked(asked: Request) -> bool:
    """Return whether a content security policy kept the request in the browser."""
    return asked.failure == "csp"


WATCH = """() => {
  const { sessionStore } = window.larkspur;
  window.states = [];
  sessionStore.subscribe(({ phase, state }) => {
    if (phase === 'ready') window.states.push(state);
  });
}"""


COMPARE = """(rows) => {
  const { reduceEvents, withoutLive, EMPTY } = window.larkspur;
  const sorted = (value) =>
    value !== null && typeof value === 'object' && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort().map(([k, v]) => [k, sorted(v)]))
      : Array.isArray(value) ? value.map(sorted) : value;
  const shape = ({ thread, runs, files, artifacts, questions }) =>
    JSON.stringify(sorted({ thread, runs, files, artifacts, questions }));
  const place = (id) => Number(id.split('-').at(-1));
  const wrong = window.states.filter((state) => {
    const known = rows.filter((row) => place(row.id) <= place(state.cursor));
    return shape(withoutLive(state)) !== shape(reduceEvents(EMPTY, known));
  });
  return { seen: window.states.length, wrong: wrong.length };
}"""


def choose_mode(page: Page, name: str) -> None:
    """Choose the permission mode of the next tasks of the session that is shown."""
    button = page.get_by_role("button", name="Permissions: ")
    button.click()
    page.get_by_role("dialog", name="Permissions").get_by_role("button", name=name).click()
    expect(button).to_have_accessible_name(f"Permissions: {name}")


def send(page: Page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.keyboard.press("Enter")


def status(page: Page, word: str) -> None:
    expect(page.get_by_test_id("status")).to_have_text(re.compile(word))


def session_of(page: Page) -> str:
    page.wait_for_url("**/sessions/*")
    return page.url.rpartition("/")[2]


def compare(page: Page, gateway: Gateway) -> int:
    """Check that each state since `WATCH` is the fold of the events stored up to its cursor."""
    told: dict[str, Any] = page.evaluate(COMPARE, gateway.events(session_of(page)))
    assert told["wrong"] == 0
    return int(told["seen"])


def follow(page: Page) -> None:
    """Note every state from now on."""
    page.evaluate(WATCH)


AXE = (ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js").read_text


PHONE = {"viewport": {"width": 390, "height": 800}, "has_touch": True, "is_mobile": True}


def accessible(page: Page) -> None:
    """Assert that axe finds no violation in the current page."""
    page.evaluate(AXE(encoding="utf-8"))
    found: list[dict[str, Any]] = page.evaluate("async () => (await axe.run()).violations")
    told = [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found]
    assert told == []
