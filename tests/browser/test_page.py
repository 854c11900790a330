"""The page itself: access, language, screen sizes, and stored state."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser.words import report, title
from tests.support.anthropic_server import Reply, When
from tests.support.page_in_browser import (
    PHONE,
    Open,
    Serve,
    accessible,
    choose_mode,
    send,
    session_of,
    status,
)

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


def test_a_link_logs_in_one_browser_once(
    serve: Serve, context: Callable[..., BrowserContext]
) -> None:
    gateway = serve()
    visitor = context().new_page()
    visitor.goto(gateway.url)
    expect(visitor.get_by_role("heading", name="Larkspur")).to_be_visible()
    accessible(visitor)
    first = context().new_page()
    address = gateway.opened()
    first.goto(address)
    expect(first.get_by_text("Describe a task. Every step appears")).to_be_visible()
    assert first.url == f"{gateway.url}/"
    cookie = next(one for one in first.context.cookies() if one["name"].startswith("larkspur"))
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")
    second = context().new_page()
    second.goto(address)
    expect(second.get_by_label("Code")).to_be_visible()
    second.get_by_label("Code").fill("nonsense")
    second.keyboard.press("Enter")
    expect(second.get_by_role("alert")).to_contain_text("Create a new link")
    second.get_by_label("Code").fill(gateway.link())
    second.get_by_role("button", name="Log in").click()
    expect(second.get_by_text("Describe a task. Every step appears")).to_be_visible()


@pytest.mark.slow
def test_logout_affects_only_this_browser(serve: Serve, enter: Open) -> None:
    gateway = serve()
    one, other = enter(gateway), enter(gateway)
    one.get_by_role("button", name="Log out").click()
    expect(one.get_by_label("Code")).to_be_visible()
    other.reload()
    expect(other.get_by_label("Message", exact=True)).to_be_visible()


@pytest.mark.slow
def test_an_expired_login_keeps_the_draft(serve: Serve, enter: Open) -> None:
    page = enter(gateway := serve())
    send(page, "what is 6*7?")
    status(page, "completed")
    page.get_by_label("Message", exact=True).fill("half a thought")
    page.context.clear_cookies()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Your draft is saved")).to_be_visible()
    expect(page.get_by_label("Message", exact=True)).to_have_value("half a thought")
    expect(page.get_by_text("6*7 = 42")).to_be_visible()
    # a link opened in another tab of this browser is enough
    other = page.context.new_page()
    other.goto(gateway.link())
    expect(page.get_by_text("Your draft is saved")).to_have_count(0)
    expect(page.get_by_label("Message", exact=True)).to_have_value("half a thought")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_test_id("thread").get_by_text("half a thought", exact=True)).to_be_visible()


def test_the_examples_work_and_the_model_is_named_once(serve: Serve, enter: Open) -> None:
    page = enter(serve())
    expect(page.get_by_text("You are using the offline demo model")).to_be_visible()
    accessible(page)
    page.get_by_role("button", name="Continue with the demo").click()
    for text, said in (
        ("what is 6*7?", "6*7 = 42"),
        ("list the files here", "The files in"),
        ("write a haiku", "has 14 words"),
    ):
        page.get_by_role("link", name="New session").click()
        page.get_by_role("button", name=text).click()
        expect(page.get_by_test_id("thread").get_by_text(said).first).to_be_visible()
        status(page, "completed")
    page.get_by_role("link", name="New session").click()
    expect(page.get_by_text("Try an example")).to_be_visible()
    expect(page.get_by_text("You are using the offline demo model")).to_have_count(0)


def test_the_page_in_chinese(serve: Serve, enter: Open, shots: Path) -> None:
    page = enter(serve(), locale="zh-CN")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    page.get_by_role("button", name="写一首关于云雀的俳句").click()
    status(page, "已完成")
    expect(page.get_by_test_id("thread").get_by_text("一声清啼过麦田").first).to_be_visible()
    accessible(page)
    page.screenshot(path=shots / "page-zh.png")
    page.get_by_role("button", name="English").click()
    expect(page.locator("html")).to_have_attribute("lang", "en")
    expect(page.get_by_role("link", name="New session")).to_be_visible()


def test_the_page_on_a_phone(serve: Serve, script: Any, enter: Open, shots: Path) -> None:
    page = enter(serve(script([*report(), title()])), **PHONE)
    choose_mode(page, "Everything")
    send(page, "write the report")
    expect(page.get_by_text("Two of three rivals")).to_be_visible()
    page.screenshot(path=shots / "phone.png")
    accessible(page)
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, "the page scrolls sideways"
    page.get_by_role("button", name="Plan, usage and files").click()
    expect(page.get_by_role("dialog").get_by_text("Collect the numbers")).to_be_visible()
    page.screenshot(path=shots / "phone-panel.png")
    accessible(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Sessions").click()
    page.get_by_role("dialog").get_by_role("link", name="New session").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_text("Try an example")).to_be_visible()


def test_the_page_can_be_used_by_keyboard_alone(serve: Serve, script: Any, enter: Open) -> None:
    model = script([*report(), title()])
    page = enter(serve(model))
    keys = page.keyboard
    mode = page.get_by_role("button", name="Permissions: ")
    expect(mode).to_be_visible()
    keys.press("Escape")
    page.evaluate("document.activeElement.blur()")
    keys.press("/")
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    keys.press("Tab")
    keys.press("Tab")
    expect(mode).to_be_focused()
    keys.press("Enter")
    dialog = page.get_by_role("dialog", name="Permissions")
    expect(dialog.get_by_role("button", name="Plan only")).to_be_focused()
    for name in ("Ask first", "Edit files", "Everything"):
        keys.press("Tab")
        expect(dialog.get_by_role("button", name=name)).to_be_focused()
    keys.press("Enter")
    expect(mode).to_be_focused()
    expect(mode).to_have_accessible_name("Permissions: Everything")
    keys.press("Shift+Tab")
    keys.press("Shift+Tab")
    keys.type("write the report")
    keys.press("Shift+Enter")
    keys.type("in two lines")
    keys.press("Enter")
    model.release("answer")
    status(page, "completed")
    expect(
        page.get_by_test_id("thread").get_by_text("write the report in two lines")
    ).to_be_visible()


@pytest.mark.slow
def test_rows_and_dialogs_by_keyboard(serve: Serve, script: Any, enter: Open) -> None:
    model = script([*report(), title()])
    page = enter(serve(model))
    keys = page.keyboard
    choose_mode(page, "Everything")
    send(page, "write the report")
    model.release("answer")
    status(page, "completed")
    page.evaluate("document.activeElement.blur()")
    keys.press("j")
    keys.press("j")
    plan = page.get_by_test_id("thread").get_by_role("button", name="plan")
    expect(plan).to_be_focused()
    keys.press("o")
    expect(plan).to_have_attribute("aria-expanded", "true")
    keys.press("j")
    keys.press("k")
    expect(plan).to_be_focused()
    keys.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    accessible(page)
    keys.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    keys.press("Control+k")
    expect(page.get_by_role("combobox", name="Go to a session")).to_be_focused()
    accessible(page)
    keys.type("new")
    keys.press("Enter")
    expect(page.get_by_text("Try an example")).to_be_visible()


def test_enter_within_an_ime_composition_sends_nothing(serve: Serve, enter: Open) -> None:
    page = enter(serve())
    page.get_by_label("Message", exact=True).focus()
    client = page.context.new_cdp_session(page)
    client.send(
        "Input.imeSetComposition", {"text": "nihao", "selectionStart": 5, "selectionEnd": 5}
    )
    page.evaluate(
        """() => document.getElementById('message').dispatchEvent(
             new KeyboardEvent('keydown', { key: 'Enter', isComposing: true, bubbles: true }))"""
    )
    client.send("Input.insertText", {"text": "你好"})
    expect(page.get_by_label("Message", exact=True)).to_have_value("你好")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("thread").get_by_text("你好", exact=True)).to_be_visible()
    status(page, "completed")


def test_files_are_attached_to_a_message(serve: Serve, enter: Open, tmp_path: Path) -> None:
    page = enter(gateway := serve())
    (tmp_path / "numbers.csv").write_text("a,b\n1,2\n")
    page.locator("input[type=file]").set_input_files(tmp_path / "numbers.csv")
    expect(page.get_by_role("button", name="Remove numbers.csv")).to_be_visible()
    page.evaluate(
        """() => {
          const given = new DataTransfer();
          given.items.add(new File(['pasted'], 'pasted.txt', { type: 'text/plain' }));
          document.getElementById('message').dispatchEvent(
            new ClipboardEvent('paste', { clipboardData: given, bubbles: true }));
        }"""
    )
    expect(page.get_by_role("button", name="Remove pasted.txt")).to_be_visible()
    send(page, "hello")
    status(page, "completed")
    thread = page.get_by_test_id("thread")
    with page.expect_download() as download:
        thread.get_by_role("button", name="Download numbers.csv").click()
    assert Path(download.value.path()).read_text() == "a,b\n1,2\n"
    page.get_by_role("tab", name="Files").click()
    expect(page.get_by_role("tabpanel").get_by_role("listitem")).to_have_count(2)
    accessible(page)
    rows = gateway.events(session_of(page))
    given = rows[0]["event"]["payload"]["attachments"]
    assert [one["name"] for one in given] == ["numbers.csv", "pasted.txt"]


def test_a_session_is_renamed_and_deleted(serve: Serve, enter: Open) -> None:
    page = enter(serve())
    send(page, "hello")
    status(page, "completed")
    page.get_by_role("button", name="Rename").click()
    page.get_by_role("dialog").get_by_label("Rename session").fill("Greetings")
    accessible(page)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Greetings")).to_be_visible()
    expect(page.get_by_role("link", name="Greetings")).to_be_visible()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No sessions yet.")).to_be_visible()


@pytest.mark.slow
def test_screenshots_for_the_readme(serve: Serve, script: Any, enter: Open, shots: Path) -> None:
    quiet = [Reply(text="Noted.", when=When(last_user=word)) for word in ("release", "logs")]
    model = script([*report(), *quiet, title()])
    gateway = serve(model)
    for text in ("Summarise the logs of tonight", "Check the release notes"):
        gateway.task(text)
    page = enter(gateway, color_scheme="light")
    choose_mode(page, "Everything")
    send(page, "write the weekly report, with the prices of our rivals")
    expect(page.get_by_text("Two of three rivals")).to_be_visible()
    thread = page.get_by_test_id("thread")
    expect(thread.get_by_role("button", name=re.compile("read_file"))).to_have_count(2)
    thread.get_by_role("button", name="read_file numbers.txt").click()
    expect(thread.get_by_label("Result", exact=True)).to_contain_text("gamma")
    accessible(page)
    page.mouse.move(700, 5)
    page.screenshot(path=shots / "page.png")
    page.emulate_media(color_scheme="dark")
    accessible(page)
    page.screenshot(path=shots / "page-dark.png")
    model.release("answer")
    status(page, "completed")
    page.screenshot(path=shots / "page-done.png")
