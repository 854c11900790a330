"""The rows of a run: failures look like failures, and each thing is shown once."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.support.anthropic_server import Call, Reply, When
from tests.support.page_in_browser import PHONE, Open, Serve, choose_mode, send, status
from tests.support.question_bar import bar, planned

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(180)]

DOCUMENT = (
    "<style>body { background: #0a5; color: white; font: 48px sans-serif }</style>"
    "<h1 style='border-bottom: 8px solid gold'>Prices</h1><p>Two of three fell.</p>"
)


def when(results: int) -> When:
    return When(last_user="touch", results=results)


def pictures(page: Page, shots: Path, name: str) -> None:
    """Take a picture of each width and colour scheme."""
    for width, viewport in {
        "1400": {"width": 1_400, "height": 900},
        "390": PHONE["viewport"],
    }.items():
        page.set_viewport_size(viewport)  # type: ignore[arg-type]  # a dict of two numbers
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=shots / f"{name}-{width}-{scheme}.png")


def test_failed_commands_edits_and_documents_look_like_what_they_are(
    serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    edit = {"path": "notes.txt", "old_string": "one", "new_string": "first\nsecond\nthird"}
    write = "printf 'one\\n' > notes.txt; cat > output/prices.html <<'EOF'\n" + DOCUMENT + "\nEOF"
    model = script(
        [
            planned(),
            Reply(calls=[Call("shell", {"command": write})], when=when(1)),
            Reply(calls=[Call("read_file", {"path": "notes.txt"})], when=when(2)),
            Reply(calls=[Call("edit_file", edit)], when=when(3)),
            Reply(calls=[Call("shell", {"command": "echo no room; exit 3"})], when=when(4)),
            Reply(text="All said.", when=when(5)),
        ]
    )
    page = enter(serve(model))
    choose_mode(page, "Everything")
    send(page, "touch them")
    status(page, "completed")
    thread = page.get_by_test_id("thread")
    failed = thread.get_by_role("button", name=re.compile("no room"))
    expect(failed).to_contain_text("✕")
    expect(failed).to_contain_text("exit 3")
    changed = thread.get_by_role("button", name=re.compile("edit_file"))
    expect(changed).to_contain_text("+3 \N{MINUS SIGN}1")
    changed.click()
    expect(thread.get_by_label("Change", exact=True)).to_contain_text("+second")
    expect(thread.get_by_label("Arguments")).to_have_count(0)
    pictures(page, shots, "rows")
    page.set_viewport_size({"width": 1_400, "height": 900})
    page.get_by_role("link", name="Library").click()
    picture = page.get_by_test_id("document-picture")
    inner = picture.frame_locator("iframe").frame_locator("iframe")
    expect(inner.get_by_role("heading", name="Prices", include_hidden=True)).to_have_css(
        "border-bottom-color", "rgb(255, 215, 0)"
    )
    pictures(page, shots, "document-picture")


def test_a_question_and_a_running_call_are_shown_once(
    serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    command = "printf started; while [ ! -e done ]; do sleep 0.1; done"
    model = script(
        [
            planned(),
            Reply(calls=[Call("shell", {"command": command})], when=when(1)),
            Reply(text="All said.", when=when(2)),
        ]
    )
    page = enter(serve(model))
    send(page, "touch them")
    expect(bar(page).get_by_role("heading", name="Run this command?")).to_be_visible()
    expect(page.get_by_text("while [ ! -e done ]")).to_have_count(1)
    pictures(page, shots, "question")
    allow = bar(page).get_by_role("button", name="Allow once")
    expect(allow).to_be_enabled()
    allow.click()
    working = page.get_by_test_id("working")
    expect(working).to_contain_text("started")
    expect(working.get_by_role("button")).to_contain_text("Working")
    expect(page.get_by_role("button", name="shell")).to_have_count(1)
    thread = page.get_by_test_id("thread")
    expect(thread.get_by_role("button", name=re.compile("allowed once · you"))).to_be_visible()
    pictures(page, shots, "running")


def test_a_run_at_its_limit_is_amber_and_goes_on(
    serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    model = script(
        [
            planned(),
            Reply(calls=[Call("shell", {"command": "true"})], when=when(1)),
            Reply(text="Half of it.", when=When(last_user="touch")),
            Reply(text="The other half.", when=When(last_user="Go on")),
            Reply(text="Half of it."),
        ]
    )
    page = enter(serve(model, AGENT__MAX_ITERATIONS="2"))
    choose_mode(page, "Everything")
    send(page, "touch them")
    thread = page.get_by_test_id("thread")
    limit = thread.get_by_text("reached its step limit")
    expect(limit).to_be_visible()
    expect(limit).to_have_class(re.compile("text-warn"))
    pictures(page, shots, "limit")
    page.set_viewport_size({"width": 1_400, "height": 900})
    incomplete = "stopped at its step limit"
    expect(page.get_by_test_id("status")).to_have_text(re.compile(f"⚠.*{incomplete}"))
    expect(page.get_by_role("link", name="touch them")).to_contain_text(incomplete)
    page.get_by_role("link", name="Tasks", exact=True).click()
    expect(page.get_by_role("main").get_by_role("link")).to_contain_text(f"{incomplete}")
    pictures(page, shots, "limit-tasks")
    page.set_viewport_size({"width": 1_400, "height": 900})
    page.go_back()
    thread.get_by_role("button", name="Go on").click()
    expect(thread.get_by_text("The other half.")).to_be_visible()


def test_each_of_three_calls_is_shown_once_and_refused_ones_keep_their_place(
    serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    names = ("one.txt", "two.txt", "three.txt")
    pair = [Call("write_file", {"path": name, "content": "x\n"}) for name in names]
    model = script(
        [
            planned(),
            Reply(calls=pair, when=when(1)),
            Reply(text="All said.", when=when(4)),
        ]
    )
    page = enter(serve(model))
    send(page, "touch them")
    expect(bar(page).get_by_role("heading", name="Create 3 files?")).to_be_visible()
    thread = page.get_by_test_id("thread")
    expect(thread.get_by_text("one.txt")).to_have_count(0)
    pictures(page, shots, "three-calls")
    page.set_viewport_size({"width": 1_400, "height": 900})
    second = bar(page).get_by_role("checkbox").nth(1)
    second.uncheck()
    expect(second).not_to_be_checked()
    allow = bar(page).get_by_role("button", name=re.compile("Allow"))
    expect(allow.first).to_be_enabled()
    allow.first.click()
    status(page, "completed")
    rows = thread.get_by_role("button", name=re.compile("write_file"))
    for _ in range(2):
        expect(rows).to_have_count(3)
        for row, name in zip(rows.all(), names, strict=True):
            expect(row).to_contain_text(name)
        expect(rows.nth(1)).to_contain_text("!")
        expect(rows.nth(1)).to_contain_text("denied")
        expect(rows.nth(1)).not_to_contain_text(re.compile("content: x|local owner"))
        page.reload()
        expect(thread.get_by_text("All said.")).to_be_visible()
    pictures(page, shots, "three-calls-ended")
