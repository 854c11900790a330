"""Refusals of the server are shown in the language of the page."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.support.page_in_browser import Open, Serve, accessible
from tests.support.question_bar import planned, shell

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

PHONE: ViewportSize = {"width": 390, "height": 844}
DESKTOP: ViewportSize = {"width": 1300, "height": 860}


def pictures(page: Page, shots: Path, name: str) -> None:
    """Take pictures of the page on a desktop and on a phone."""
    page.screenshot(path=shots / f"{name}.png")
    page.set_viewport_size(PHONE)
    page.screenshot(path=shots / f"{name}-phone.png")
    page.set_viewport_size(DESKTOP)


class Words(NamedTuple):
    """Texts of the page in a language."""

    waiting: str
    actions: str
    delete: str
    confirm: str
    stop: str
    no_rule: str
    not_ended: str
    stopped: str


ENGLISH = Words(
    *("Waiting", "Actions for touch four", "Delete", "Delete for good?", "Stop"),
    "'shell(touch' is not a rule; write the name of a tool, or tool(pattern) for some of its calls",
    "A task of this session has not ended. Stop it first.",
    "stopped",
)
CHINESE = Words(
    *("待处理", "“touch four”的操作", "删除", "永久删除\uff1f", "停止"),
    "shell(touch 不是规则\uff1a请写工具名\uff0c或用“tool(pattern)”表示它的部分调用。",
    "此会话的任务尚未结束\uff0c请先停止。",
    "已停止",
)


@pytest.mark.parametrize(
    ("locale", "words"),
    [pytest.param("en-GB", ENGLISH, marks=pytest.mark.slow), ("zh-CN", CHINESE)],
)
def test_a_refusal_has_the_language_of_the_page(
    serve: Serve, script: Any, enter: Open, shots: Path, *, locale: str, words: Words
) -> None:
    gateway = serve(script([planned(), shell("touch four", 1)]))
    page = enter(gateway, locale=locale, viewport=DESKTOP)
    session = gateway.task("touch four")["session_id"]
    page.goto(f"{gateway.url}/sessions/{session}")
    question = page.get_by_role("region", name=words.waiting)
    expect(question.get_by_role("button").first).to_be_enabled()
    page.keyboard.press("p")
    field = question.locator("textarea")
    expect(field).to_have_value("shell(touch four)")
    field.fill("shell(touch")
    page.keyboard.press("Enter")
    expect(question.get_by_role("alert")).to_have_text(words.no_rule)
    accessible(page)
    pictures(page, shots, f"refused-rule-{locale}")

    sidebar = page.get_by_role("complementary").first
    sidebar.get_by_role("button", name=words.actions).click()
    sidebar.get_by_role("button", name=words.delete, exact=True).click()
    sidebar.get_by_role("button", name=words.confirm).click()
    expect(sidebar.get_by_role("alert")).to_have_text(words.not_ended)
    page.screenshot(path=shots / f"refused-delete-{locale}.png")

    page.get_by_role("main").get_by_role("button", name=words.stop, exact=True).click()
    expect(page.get_by_test_id("thread")).to_contain_text(words.stopped)
    pictures(page, shots, f"stopped-{locale}")
