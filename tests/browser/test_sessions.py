"""The list of sessions: what it shows, search, filters and actions, while others work."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.page_in_browser import Open, Serve, accessible, send, status

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


@pytest.mark.slow
def test_sessions_of_other_clients_appear_and_are_marked(
    serve: Serve, enter: Open, shots: Path
) -> None:
    gateway = serve()
    page = enter(gateway)
    sidebar = page.get_by_role("complementary", name="Sessions")
    listed = sidebar.get_by_role("navigation", name="Sessions")
    expect(listed.get_by_text("No sessions yet.")).to_be_visible()

    # tasks of other clients appear on their own, one-shot tasks do not
    gateway.task("what is 6*7?")
    gateway.task("a secret one-shot", one_shot=True)
    product = listed.get_by_role("link", name="what is 6*7?")
    expect(product.get_by_text("completed")).to_be_attached()
    expect(product.get_by_text("unread")).to_be_attached()
    expect(listed.get_by_role("heading", name="Today")).to_be_visible()
    gateway.task("what is 100 %?")
    gateway.task("what is 100 x?")
    expect(listed.get_by_role("link")).to_have_count(3)
    product.click()
    status(page, "completed")
    expect(product.get_by_text("unread")).to_have_count(0)
    session = page.url.rsplit("/", 1)[1]
    expect(page.get_by_role("heading", name="what is 6*7?")).to_be_visible()

    # pin and rename with the actions, and F2 with the keyboard
    sidebar.get_by_role("button", name="Actions for what is 6*7?").click()
    accessible(page)
    page.screenshot(path=shots / "sessions-actions.png")
    sidebar.get_by_role("button", name="Pin", exact=True).click()
    expect(listed.get_by_role("heading", name="Pinned")).to_be_visible()
    expect(listed.get_by_role("link").first).to_have_attribute("href", f"/sessions/{session}")
    product.focus()
    page.keyboard.press("F2")
    expect(listed.get_by_role("textbox", name="Rename")).to_be_focused()
    page.keyboard.type("The product")
    page.keyboard.press("Enter")
    renamed = listed.get_by_role("link", name="The product")
    expect(renamed).to_be_visible()
    renamed.focus()
    page.keyboard.press("ArrowDown")
    expect(listed.get_by_role("link").nth(1)).to_be_focused()


def test_sessions_are_searched_filtered_and_removed_together(
    serve: Serve, enter: Open, shots: Path
) -> None:
    gateway = serve()
    for text in ("what is 6*7?", "what is 100 %?", "what is 100 x?"):
        gateway.task(text)
    gateway.task("a secret one-shot", one_shot=True)
    page = enter(gateway)
    sidebar = page.get_by_role("complementary", name="Sessions")
    listed = sidebar.get_by_role("navigation", name="Sessions")
    expect(listed.get_by_role("link")).to_have_count(3)
    expect(listed.get_by_text("completed")).to_have_count(3)

    # all text is searched as it is written
    search = sidebar.get_by_role("searchbox", name="Search sessions")
    search.fill("100 %")
    expect(listed.get_by_role("link")).to_have_count(1)
    search.fill("= 42")
    expect(listed.locator("mark")).to_have_text("= 42")
    page.screenshot(path=shots / "sessions-search.png")
    search.fill("nowhere")
    expect(listed.get_by_text("Nothing found.")).to_be_visible()
    search.fill("")

    # filters, and several at once
    sidebar.get_by_role("button", name="Filter sessions").click()
    sidebar.get_by_label("One-shot tasks").check()
    expect(listed.get_by_role("link", name="a secret one-shot")).to_be_visible()
    sidebar.get_by_label("Select several").check()
    listed.get_by_role("checkbox", name="what is 100 x?").check()
    listed.get_by_role("checkbox", name="a secret one-shot").check()
    expect(sidebar.get_by_text("2 selected")).to_be_visible()
    accessible(page)
    page.screenshot(path=shots / "sessions-select.png")
    sidebar.get_by_role("button", name="Delete", exact=True).click()
    sidebar.get_by_role("button", name="Delete 2 for good?").click()
    expect(listed.get_by_role("link")).to_have_count(2)
    sidebar.get_by_role("button", name="Actions for what is 100 %?").click()
    sidebar.get_by_role("button", name="Archive", exact=True).click()
    expect(listed.get_by_role("link")).to_have_count(1)
    sidebar.get_by_label("Archived sessions").check()
    expect(listed.get_by_role("link", name="what is 100 %?")).to_be_visible()
    sidebar.get_by_label("Channel").select_option("Lark")
    expect(listed.get_by_text("No session matches the filter.")).to_be_visible()
    assert {one["title"] for one in gateway.ask("GET", "/api/sessions")["sessions"]} == {
        "what is 6*7?",
        "what is 100 %?",
    }


@pytest.mark.slow
def test_older_sessions_are_loaded_while_new_ones_arrive(serve: Serve, enter: Open) -> None:
    gateway = serve()
    for number in range(120):
        gateway.ask("POST", "/api/sessions", {"title": f"session {number}"})
    page = enter(gateway)
    listed = page.get_by_role("complementary", name="Sessions").get_by_role("navigation")
    expect(listed.get_by_role("link", name="session 119", exact=True)).to_be_visible()
    gateway.ask("POST", "/api/sessions", {"title": "new"})
    expect(listed.get_by_role("link").first).to_have_text("new")
    for number in (70, 20, 0):
        listed.get_by_role("link").last.scroll_into_view_if_needed()
        listed.hover()
        page.mouse.wheel(0, 20_000)
        expect(listed.get_by_role("link", name=f"session {number}", exact=True)).to_be_attached()
    expect(listed.get_by_role("link")).to_have_count(121)
    send(page, "hello")
    expect(listed.get_by_role("link").first).to_contain_text("hello")
