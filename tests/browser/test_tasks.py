"""Lanes of subtasks in the conversation, and the Tasks page."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.support.anthropic_server import Call, Reply, When
from tests.support.page_in_browser import Open, Serve, accessible, follow, send

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

PHONE: ViewportSize = {"width": 390, "height": 844}
SITES = {
    "analyst": "Read the pricing page of example-a.com and note each plan",
    "reader": "Read the pricing page of example-b.com and note each plan",
    "": "Ask which of the plans of example-c.com is meant",
}


def replies() -> list[Reply]:
    wanted = [
        {"instruction": text, **({"agent_profile": {"role": role}} if role else {})}
        for role, text in SITES.items()
    ]
    return [
        Reply(
            calls=[Call("subagent", {"tasks": wanted})],
            when=When(last_user="compare", results=0),
        ),
        Reply("Example A is the cheapest.", when=When(last_user="compare", results=1)),
        Reply("A costs 9 a month.", when=When(last_user="example-a.com")),
        Reply("B costs 12 a month.", hold="b", when=When(last_user="example-b.com")),
        Reply(
            calls=[Call("request_user", {"question": "Which plan?", "options": ["Team", "Solo"]})],
            when=When(last_user="example-c.com", results=0),
        ),
        Reply("C costs 20 a month.", when=When(last_user="example-c.com", results=1)),
    ]


def test_subtasks_are_lanes_side_by_side_that_survive_a_reload(
    serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    model = script(replies())
    page = enter(serve(model, AGENT__GATES="off"))
    follow(page)
    send(page, "compare these three sites")
    lanes = page.get_by_test_id("lanes").get_by_role("listitem")
    expect(lanes).to_have_count(3)
    expect(lanes.nth(0)).to_contain_text("task 1")
    expect(lanes.nth(0)).to_contain_text("done in")
    expect(lanes.nth(2)).to_contain_text("waits for you")
    expect(page.get_by_test_id("status")).to_have_text(re.compile("waits for its tasks"))
    expect(page.get_by_role("heading", name="task 3: Which plan?")).to_be_visible()
    page.screenshot(path=shots / "lanes.png")
    first, second = lanes.nth(0).bounding_box(), lanes.nth(1).bounding_box()
    assert first is not None
    assert second is not None
    assert first["y"] == second["y"]

    page.reload()
    expect(lanes.nth(0)).to_contain_text("done in")
    expect(lanes.nth(2)).to_contain_text("waits for you")
    lanes.nth(0).get_by_role("button", name="task 1").click()
    expect(lanes.nth(0)).to_contain_text("A costs 9 a month.")
    page.screenshot(path=shots / "lanes-open.png")
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(PHONE)
    page.screenshot(path=shots / "lanes-phone-dark.png")
    assert is_narrow(page)
    page.set_viewport_size({"width": 1360, "height": 860})
    page.emulate_media(color_scheme="light")

    page.get_by_role("link", name="Tasks", exact=True).click()
    needs_me = page.get_by_role("region", name="Needs me")
    expect(needs_me.get_by_role("link")).to_have_count(1)
    expect(needs_me).to_contain_text("task 3 of “compare these three sites”")
    expect(page.get_by_role("region", name="Running").get_by_role("link")).to_have_count(2)
    expect(page.get_by_role("region", name="Done").get_by_role("link")).to_have_count(1)
    page.screenshot(path=shots / "tasks-page.png")
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    page.screenshot(path=shots / "tasks-page-phone-dark.png")
    assert is_narrow(page)
    page.set_viewport_size({"width": 1360, "height": 860})
    needs_me.get_by_role("link").click()
    expect(lanes).to_have_count(3)

    lanes.nth(1).get_by_role("button", name="Stop task 2").click()
    expect(lanes.nth(1)).to_contain_text("cancelled")
    page.get_by_role("button", name="Team").click()
    expect(page.get_by_test_id("thread")).to_contain_text("Example A is the cheapest.")
    expect(lanes.nth(0)).to_contain_text("task 1 · analyst")


@pytest.mark.slow
def test_a_lane_says_which_task_it_waits_for_and_messages_steer_it_and_the_waiting_run(
    serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    tasks = [
        {"instruction": "dig for gold", "agent_profile": {"role": "digger"}},
        {"instruction": "weigh the gold", "depends_on": ["1"]},
    ]
    model = script(
        [
            Reply(
                calls=[Call("subagent", {"tasks": tasks})],
                when=When(last_user="start", results=0),
            ),
            Reply("In a hurry, then.", when=When(last_text="hurry")),
            Reply("Dug deeper.", when=When(last_text="deeper")),
            Reply(
                calls=[Call("list_dir", {})],
                hold="dig",
                when=When(last_user="dig for gold", results=0),
            ),
            Reply("Weighed.", when=When(last_user="weigh")),
            Reply("Both are done."),
        ]
    )
    page = enter(gateway := serve(model, AGENT__GATES="off"))
    send(page, "start digging")
    lanes = page.get_by_test_id("lanes").get_by_role("listitem")
    expect(lanes.nth(1)).to_contain_text("waits for task 1")
    (row,) = gateway.ask("GET", "/api/sessions")["sessions"]
    assert row["status"] == "running"
    page.screenshot(path=shots / "lanes-depends.png")

    lanes.nth(0).get_by_role("button", expanded=False).click()
    field = lanes.nth(0).get_by_label("Message to task 1 · digger")
    field.fill("deeper please")
    page.keyboard.press("Enter")
    expect(field).to_have_value("")
    send(page, "hurry up")
    expect(page.get_by_test_id("thread")).to_contain_text("In a hurry, then.")
    model.release("dig")
    expect(lanes.nth(0)).to_contain_text("deeper please")
    expect(lanes.nth(0)).to_contain_text("Dug deeper.")
    expect(lanes.nth(1)).to_contain_text("done in")


def test_a_task_moves_to_the_background_by_keyboard_and_its_successor_runs_beside_it(
    serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    model = script(
        [
            Reply("The long one is done.", hold="long", when=When(last_user="long")),
            Reply("The quick one is done.", when=When(last_user="quick")),
        ]
    )
    page = enter(serve(model, AGENT__GATES="off"))
    send(page, "the long one")
    button = page.get_by_role("button", name="Move to the background")
    button.focus()
    page.screenshot(path=shots / "background-button.png")
    page.keyboard.press("Enter")
    expect(button).to_have_count(0)
    send(page, "the quick one")
    thread = page.get_by_test_id("thread")
    expect(thread).to_contain_text("The quick one is done.")
    expect(thread).not_to_contain_text("The long one is done.")
    model.release("long")
    expect(thread).to_contain_text("The long one is done.")


@pytest.mark.slow
def test_the_report_of_a_background_task_is_a_notice_and_the_tasks_page_is_accessible(
    serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    model = script(
        [
            Reply(
                calls=[Call("create_task", {"instruction": "dig for gold"})],
                when=When(last_user="start", results=0),
            ),
            Reply("It is on its way.", when=When(last_user="start", results=1)),
            Reply("Gold.", hold="dig", when=When(last_user="dig for gold")),
            Reply("The digger found gold."),
        ]
    )
    page = enter(serve(model, AGENT__GATES="off"))
    send(page, "start digging")
    thread = page.get_by_test_id("thread")
    expect(thread).to_contain_text("It is on its way.")
    model.release("dig")
    expect(thread).to_contain_text("The digger found gold.")
    expect(thread).to_contain_text("Report of ended background tasks")
    expect(thread).not_to_contain_text("Report the background tasks that have ended.")
    page.screenshot(path=shots / "report.png")
    page.get_by_role("link", name="Tasks", exact=True).click()
    done = page.get_by_role("region", name="Done")
    page.wait_for_url("**/tasks")
    page.reload()
    expect(done.get_by_role("link")).to_have_count(3)
    expect(done).to_contain_text("Report of ended background tasks")
    accessible(page)
    page.screenshot(path=shots / "tasks-page-light.png")
    page.emulate_media(color_scheme="dark")
    accessible(page)
    page.screenshot(path=shots / "tasks-page-dark.png")


def is_narrow(page: Page) -> bool:
    """Return whether nothing is wider than the window."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
