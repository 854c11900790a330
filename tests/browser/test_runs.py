"""A run as a person sees it: live, after a reload, over a restart, stopped, and in two tabs."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.words import GOAL, report, title
from tests.support.anthropic_server import Call, Fault, Reply, When
from tests.support.page_in_browser import (
    Open,
    Serve,
    choose_mode,
    compare,
    follow,
    send,
    session_of,
    status,
)

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


def test_a_run_shows_every_step_as_it_happens(serve: Serve, script: Any, enter: Open) -> None:
    model = script([*report(), title()])
    page = enter(gateway := serve(model))
    follow(page)
    choose_mode(page, "Everything")
    send(page, "write the report")
    thread = page.get_by_test_id("thread")
    expect(thread.get_by_text("Two of three rivals")).to_be_visible()
    status(page, "running")
    expect(thread.get_by_role("button", name="plan")).to_contain_text(GOAL)
    shell = thread.get_by_role("button", name="shell")
    expect(shell).to_contain_text("printf")
    expect(thread.get_by_text("for good")).to_have_count(0)
    model.release("answer")
    status(page, "completed")
    expect(thread.get_by_role("cell", name="Gamma")).to_be_visible()
    expect(thread.get_by_text("k in 1.8k out")).to_be_visible()
    assert compare(page, gateway) > 3
    # a row opens beneath itself
    before = shell.bounding_box()
    shell.click()
    expect(shell).to_have_attribute("aria-expanded", "true")
    expect(thread.get_by_label("Arguments")).to_contain_text("command: printf")
    assert shell.bounding_box() == before


def test_a_reload_within_a_reply_continues_the_stream(
    serve: Serve, script: Any, enter: Open
) -> None:
    model = script([*report(), title()])
    page = enter(gateway := serve(model))
    choose_mode(page, "Everything")
    send(page, "write the report")
    expect(page.get_by_text("Two of three rivals")).to_be_visible()
    page.reload()
    follow(page)
    expect(page.get_by_text("Two of three rivals")).to_be_visible()
    status(page, "running")
    model.release("answer")
    status(page, "completed")
    expect(page.get_by_text("for good")).to_be_visible()
    compare(page, gateway)


@pytest.mark.slow
def test_the_page_reconnects_to_a_killed_server_within_a_reply(
    serve: Serve, script: Any, enter: Open
) -> None:
    model = script([*report(), title()])
    page = enter(gateway := serve(model))
    choose_mode(page, "Everything")
    send(page, "write the report")
    expect(page.get_by_text("Two of three rivals")).to_be_visible()
    session_of(page)
    follow(page)
    gateway.kill()
    expect(page.get_by_role("status").get_by_text("Reconnecting")).to_be_visible()
    page.get_by_label("Message", exact=True).fill("still usable")
    gateway.start()
    model.release("answer")
    status(page, "completed")
    expect(page.get_by_text("for good")).to_be_visible()
    expect(page.get_by_text("Reconnecting")).to_have_count(0)
    expect(page.get_by_label("Message", exact=True)).to_have_value("still usable")
    compare(page, gateway)
    # the login outlives the restart, for a new page as well
    page.reload()
    expect(page.get_by_text("for good")).to_be_visible()


def test_pressing_esc_twice_stops_the_run(serve: Serve, script: Any, enter: Open) -> None:
    page = enter(serve(script([*report(), title()])))
    choose_mode(page, "Everything")
    send(page, "write the report")
    expect(page.get_by_text("Two of three rivals")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("Press Esc again")).to_be_visible()
    status(page, "running")
    page.keyboard.press("Escape")
    status(page, "cancelled")
    expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)


def test_the_stop_button_stops_the_run_at_once(serve: Serve, script: Any, enter: Open) -> None:
    page = enter(serve(script([*report(), title()])))
    choose_mode(page, "Everything")
    send(page, "write the report")
    expect(page.get_by_text("Two of three rivals")).to_be_visible()
    page.get_by_role("button", name="Stop", exact=True).click()
    status(page, "cancelled")


def test_a_message_steers_the_active_run(serve: Serve, script: Any, enter: Open) -> None:
    model = script(
        [
            Reply(text="As you wish.", when=When(last_text="shorter")),
            Reply(
                calls=[Call("plan", {"goal": "g", "steps": ["a"]})],
                hold="plan",
                when=When(results=0),
            ),
            Reply(text="Done.", when=When(results=1)),
        ]
    )
    page = enter(serve(model))
    send(page, "write something")
    status(page, "running")
    send(page, "make it shorter")
    expect(page.get_by_label("Message", exact=True)).to_have_value("")
    model.release("plan")
    # until the page has read what waits, the delivered message is also shown as one that waits
    delivered = page.get_by_test_id("thread").get_by_role("paragraph")
    expect(delivered.filter(has_text="make it shorter")).to_be_visible()
    expect(page.get_by_test_id("waiting-message")).to_have_count(0)
    expect(page.get_by_test_id("thread").get_by_text("As you wish.")).to_be_visible()
    status(page, "completed")


@pytest.mark.slow
def test_two_tabs_share_one_stream(serve: Serve, script: Any, enter: Open) -> None:
    model = script([*report(), title()])
    first = enter(gateway := serve(model))
    choose_mode(first, "Everything")
    send(first, "write the report")
    expect(first.get_by_text("Two of three rivals")).to_be_visible()
    second = first.context.new_page()
    streams: list[str] = []
    second.on("request", lambda asked: streams.append(asked.url) if "/sse" in asked.url else None)
    second.goto(first.url)
    follow(second)
    expect(second.get_by_text("Two of three rivals")).to_be_visible()
    assert streams == []
    # when the leader tab closes, the other one takes over
    first.close()
    model.release("answer")
    status(second, "completed")
    expect(second.get_by_text("for good")).to_be_visible()
    compare(second, gateway)
    assert len(streams) == 1


@pytest.mark.slow
def test_a_deleted_session_is_reported(serve: Serve, enter: Open, home: Path) -> None:
    page = enter(gateway := serve())
    send(page, "what is 6*7?")
    status(page, "completed")
    gateway.stop()
    for file in home.glob("larkspur.db*"):
        file.unlink()
    gateway.start()
    expect(page.get_by_text("This session does not exist any more")).to_be_visible()
    page.get_by_role("main").get_by_role("link", name="New session").click()
    send(page, "hello")
    expect(page.get_by_test_id("thread").get_by_text("a few rules")).to_be_visible()


@pytest.mark.slow
def test_a_stream_of_another_log_is_reloaded(serve: Serve, enter: Open, home: Path) -> None:
    page = enter(gateway := serve())
    send(page, "what is 6*7?")
    status(page, "completed")
    follow(page)
    gateway.stop()
    with closing(sqlite3.connect(home / "larkspur.db")) as log, log:
        log.execute("UPDATE event_log SET epoch = 'zzzzzz'")
    gateway.start()
    # the page discards its state and shows the stored events once
    expect(page.get_by_text("Reconnecting")).to_have_count(0)
    send(page, "what is 7*7?")
    expect(page.get_by_test_id("thread").get_by_text("7*7 = 49")).to_be_visible()
    expect(page.get_by_test_id("thread").get_by_text("6*7 = 42")).to_have_count(1)
    status(page, "completed")
    newest = "window.larkspur.sessionStore.getState().state.cursor"
    assert str(page.evaluate(newest)).startswith("zzzzzz-")


@pytest.mark.slow
def test_a_wait_for_the_model_and_a_cut_answer_are_shown(
    serve: Serve, script: Any, enter: Open
) -> None:
    busy = Fault("status", status=529, retry_after=3, times=1)
    page = enter(serve(script([Reply(text="So far.", stop_reason="max_tokens", fault=busy)])))
    send(page, "tell me all")
    thread = page.get_by_test_id("thread")
    # the seconds count down while the page is read
    waiting = re.compile(r"The model is overloaded, retrying in \d s \(attempt 2 of \d+\)")
    expect(thread).to_contain_text(waiting)
    expect(thread).to_contain_text("reached its output limit, so the answer is incomplete")
    expect(thread).not_to_contain_text("overloaded")


def test_calls_that_were_not_run_and_steps_without_a_report_are_shown(
    serve: Serve, script: Any, enter: Open
) -> None:
    plan = {"goal": "Count", "steps": ["Look", "Tell"], "complexity": "complex"}
    criteria = "Every heron seen"
    clarify = {"step_id": "1", "goal": "g", "success_criteria": criteria}
    replies = [
        Reply(calls=[Call("plan", plan)], when=When(results=0)),
        Reply(calls=[Call("clarify", clarify)], when=When(results=1)),
        Reply(
            calls=[Call("update_plan", {"step_id": "1", "status": "completed"})],
            when=When(results=2),
        ),
        Reply(calls=[Call("write_file", {"path": "a.txt", "content": "x"})], when=When(results=3)),
        Reply(text="Done.", when=When(results=4)),
    ]
    page = enter(serve(script(replies)))
    send(page, "count the herons")
    thread = page.get_by_test_id("thread")
    expect(thread.get_by_text("completed, 1 call was not run")).to_be_visible()
    expect(thread).to_contain_text("not run write_file")
    expect(thread).to_contain_text("The agent had not opened the step of its plan.")
    thread.get_by_role("button", name="plan").click()
    expect(thread).to_contain_text(f"done when: {criteria}")
    expect(thread).to_contain_text("not reported")
