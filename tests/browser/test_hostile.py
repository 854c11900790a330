"""Nested, broken and large output of models and tools, and the content security policy.

`test_hostile_text.py` shows that no hostile text runs or loads anything.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from tests.browser.long_session import fill
from tests.support.anthropic_server import Call, Reply, When
from tests.support.page_in_browser import Open, Serve, accessible, choose_mode, send, status

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

NEXT = Reply(text="Next answer.", when=When(last_user="go on"))
NESTED = {
    "quotes": "> " * 2_000 + "the end",
    "lists": "- " * 2_000 + "the end",
    "indented lists": "\n".join("  " * depth + "- item" for depth in range(500)) + " the end",
    "brackets": "[" * 10_000 + "the end",
    "stars": "*" * 10_000 + "the end",
    "tags": "<b>" * 5_000 + "the end",
    "columns": f"|{'a|' * 1_000}\n|{'-|' * 1_000}\n|{'b|' * 999}the end|",
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "quotes" else pytest.mark.slow) for name in NESTED],
)
def test_a_nested_answer_is_shown_and_the_page_stays(
    serve: Serve, script: Any, enter: Open, name: str
) -> None:
    page = enter(serve(script([Reply(text=NESTED[name], when=When(last_user="nest")), NEXT])))
    thread = page.get_by_test_id("thread")
    send(page, "nest")
    status(page, "completed")
    expect(thread).to_contain_text("the end")
    page.reload()
    expect(thread).to_contain_text("the end")
    send(page, "go on")
    expect(thread.get_by_text("Next answer.")).to_be_visible()


def test_a_row_that_cannot_be_rendered_is_shown_as_text(
    serve: Serve, script: Any, enter: Open
) -> None:
    first = Reply(text="First answer.", when=When(last_user="hello"))
    page = enter(serve(script([first, NEXT])))
    thread = page.get_by_test_id("thread")
    send(page, "hello")
    expect(thread.get_by_text("First answer.")).to_be_visible()
    status(page, "completed")  # the end of the run writes the answer once more
    page.evaluate(
        """() => window.larkspur.sessionStore.setState(({ state }) => {
          const broken = { ...state.thread.lines.at(-1), answer: { broken: 'row' } };
          const lines = [...state.thread.lines.slice(0, -1), broken];
          return { state: { ...state, thread: { ...state.thread, lines } } };
        })"""
    )
    expect(thread.get_by_text('{"broken":"row"}')).to_be_visible()
    send(page, "go on")
    expect(thread.get_by_text("Next answer.")).to_be_visible()


STORED = {
    "larkspur.preferences": [
        '{"language":"fr","theme":7,"notify":"yes"}',
        "null",
        "[1]",
        "no JSON",
    ],
    "larkspur.options.new": ['{"mode":"everything","model":3}', "null", '"text"'],
    "larkspur.draft.new.files": ['[null,{"name":1}]', "{}", "7"],
}


@pytest.mark.slow
def test_what_another_version_has_stored_does_not_empty_the_page(
    serve: Serve, script: Any, enter: Open
) -> None:
    page = enter(serve(script([NEXT])))
    for key, values in STORED.items():
        for value in values:
            page.evaluate("([key, value]) => localStorage.setItem(key, value)", [key, value])
            page.reload()
            expect(page.locator("#message")).to_be_editable()
    send(page, "go on")
    expect(page.get_by_test_id("thread").get_by_text("Next answer.")).to_be_visible()


@pytest.mark.slow
def test_a_part_that_cannot_be_rendered_leaves_the_others(
    serve: Serve, script: Any, enter: Open
) -> None:
    page = enter(serve(script([NEXT])))
    send(page, "go on")
    status(page, "completed")
    panel = page.get_by_role("complementary", name="Plan, usage and files")
    page.evaluate(
        """() => window.larkspur.sessionStore.setState(({ state }) => ({
          state: { ...state, runs: state.runs.map((run) => ({ ...run, usage: null })) },
        }))"""
    )
    expect(panel.get_by_role("alert")).to_contain_text("This part of the page cannot be shown.")
    expect(page.get_by_test_id("thread").get_by_text("Next answer.")).to_be_visible()
    accessible(page)
    page.reload()  # the events are whole
    expect(page.get_by_test_id("thread").get_by_text("Next answer.")).to_be_visible()
    expect(panel.get_by_role("tablist")).to_be_visible()
    page.evaluate(
        """() => window.larkspur.sessionStore.setState(({ state }) => ({
          state: { ...state, runs: 7 },
        }))"""
    )
    expect(page.get_by_role("alert").first).to_be_visible()
    page.get_by_role("link", name="New session").first.click()
    expect(page.locator("#message")).to_be_editable()


@pytest.mark.slow
def test_an_event_of_an_unknown_form_is_left_out(serve: Serve, script: Any, enter: Open) -> None:
    page = enter(serve(script([NEXT])))
    send(page, "go on")
    status(page, "completed")

    def spoil(route: Route) -> None:
        reply = route.fetch()
        found = reply.json()
        found["events"][1]["event"]["payload"] = None
        route.fulfill(response=reply, json=found)

    page.route("**/api/sessions/*/events?*", spoil)
    page.reload()
    expect(page.get_by_test_id("thread").get_by_text("Next answer.")).to_be_visible()


def test_the_content_security_policy_forbids_inline_and_foreign_code(
    serve: Serve, enter: Open
) -> None:
    page = enter(serve())
    reply = page.request.get(page.url)
    policy = reply.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    page.evaluate(
        """() => {
          const made = document.createElement('script');
          made.textContent = 'window.ran = 1';
          document.body.append(made);
          document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.ran = 1">');
          return new Promise((done) => document.body.lastChild.addEventListener('error', done));
        }"""
    )
    assert page.evaluate("window.ran") is None


def test_five_megabytes_of_tool_output_are_collapsed(
    serve: Serve, script: Any, enter: Open
) -> None:
    command = "head -c 5000000 /dev/zero | tr '\\0' 'x' | fold -w 100; echo; echo THE END"
    model = script(
        [
            Reply(calls=[Call("plan", {"goal": "g", "steps": ["s"]})], when=When(results=0)),
            Reply(calls=[Call("shell", {"command": command})], when=When(results=1)),
            Reply(text="That was a lot.", when=When(results=2)),
        ]
    )
    page = enter(serve(model))
    choose_mode(page, "Everything")
    send(page, "print")
    status(page, "completed")
    row = page.get_by_test_id("thread").get_by_role("button", name="shell")
    row.click()
    result = page.get_by_label("Result", exact=True)
    expect(result).to_be_visible()
    assert len(result.inner_text()) <= 20_100
    page.get_by_role("button", name="Show all").click()
    expect(result).to_contain_text("THE END")
    height = result.bounding_box()
    assert height is not None
    assert height["height"] < 400


@pytest.mark.slow
def test_only_visible_rows_of_ten_thousand_events_are_rendered(
    serve: Serve, enter: Open, home: Path
) -> None:
    with ThreadPoolExecutor() as threads:  # the driver of the browser has a loop in this one
        session = threads.submit(asyncio.run, fill(home)).result()
    page = enter(gateway := serve())
    page.goto(f"{gateway.url}/sessions/{session}")
    thread = page.get_by_test_id("thread")
    expect(thread.get_by_text("remark 1999", exact=True)).to_be_visible()
    assert thread.locator("[aria-expanded]").count() < 100
    accessible(page)
    box = thread.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.wheel(0, -4_000)
    expect(thread.get_by_text("remark 1999", exact=True)).not_to_be_in_viewport()
    page.get_by_role("button", name="Jump to the end").click()
    expect(thread.get_by_text("remark 1999", exact=True)).to_be_in_viewport()
    send(page, "hello")
    expect(thread.get_by_text("a few rules")).to_be_in_viewport()
