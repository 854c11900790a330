"""The settings of the page: every section, by mouse and keyboard, on a desktop and a phone."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open, Serve
from tests.browser.test_page import PHONE, accessible
from tests.browser.test_runs import send, status
from tests.support.anthropic_server import Call, Reply

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

SCRIPT = [
    Reply(calls=[Call("shell", {"command": "touch made"})]),
    Reply(text="made", usage={"input_tokens": 1_200, "output_tokens": 30}),
]


def section(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Settings").get_by_role("link", name=name).click()
    expect(page.get_by_role("heading", name=name, level=2)).to_be_visible()
    accessible(page)


def test_every_section_shows_what_it_is_about(
    serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    page = enter(gateway := serve(script(SCRIPT)))
    send(page, "touch it")
    page.get_by_role("button", name="Always allow touch made…").click()
    page.keyboard.press("Enter")
    status(page, "completed")

    page.get_by_role("link", name="Settings").click()
    expect(page).to_have_title(re.compile("Settings"))
    page.get_by_role("combobox", name="Theme").select_option("dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("combobox", name="Theme").select_option("light")

    section(page, "Usage")
    chart = page.get_by_role("img", name=re.compile("by day"))
    expect(chart.locator("rect")).to_have_count(1)
    page.screenshot(path=shots / "settings-usage.png")
    page.get_by_role("region", name="By session").get_by_role("link", name="touch it").click()
    expect(page.get_by_test_id("thread")).to_contain_text("made")
    page.go_back()

    section(page, "Models")
    expect(page.get_by_role("region", name="Models")).to_contain_text("default")

    section(page, "Rules")
    rules = page.get_by_role("region", name="Rules")
    expect(rules.get_by_role("cell").first).to_contain_text("shell(touch made)")
    page.screenshot(path=shots / "settings-rules.png")
    rules.get_by_role("button", name="Remove the rule shell(touch made)").click()
    expect(page.get_by_text("No rules have been added.")).to_be_visible()
    assert gateway.ask("GET", "/api/rules")["rules"] == []

    section(page, "People")
    page.get_by_role("button", name="may give tasks").click()
    expect(page.get_by_role("status").filter(has_text="/pair")).to_contain_text("expires in")
    page.reload()
    expect(page.get_by_role("heading", name="People", level=2)).to_be_visible()


def test_the_settings_fit_on_a_phone_in_chinese(serve: Serve, enter: Open, shots: Path) -> None:
    page = enter(serve(), **PHONE, locale="zh-CN")
    page.goto(f"{page.url.rstrip('/')}/settings/usage")
    expect(page.get_by_role("heading", name="用量", level=2)).to_be_visible()
    expect(page.get_by_text("还没有任务使用过模型。")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    accessible(page)
    page.screenshot(path=shots / "settings-phone.png")
