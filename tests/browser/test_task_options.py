"""The model, the profile and the folder of a task, chosen beside the composer."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.support.anthropic_server import Call, Fault, Reply, When
from tests.support.page_in_browser import (
    Open,
    Serve,
    accessible,
    choose_mode,
    send,
    session_of,
    status,
)
from tests.support.question_bar import planned, shell, when

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


@pytest.mark.slow
def test_a_task_uses_the_chosen_model_and_folder(
    serve: Serve, script: Any, enter: Open, tmp_path: Path, shots: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    rejected = Fault("status", status=400, error="invalid_request_error", message="no", times=1)
    replies = [
        Reply(text="Done.", when=When(last_user="first")),
        Reply(text="Better.", fault=rejected, when=When(last_user="second")),
    ]
    gateway = serve(script(replies))
    page = enter(gateway)
    options = page.get_by_role("button", name="Model, profile and folder")
    options.click()
    dialog = page.get_by_role("dialog", name="Model, profile and folder")
    dialog.get_by_label("Model").select_option("claude-haiku-5-5")
    dialog.get_by_label("Folder").fill(str(tmp_path / "none"))
    accessible(page)
    page.screenshot(path=shots / "task-options.png")
    dialog.get_by_role("button", name="Done").click()
    send(page, "first")
    expect(page.get_by_role("alert")).to_contain_text(f"{tmp_path / 'none'} is not a folder")
    expect(page.get_by_label("Message", exact=True)).to_have_value("first")

    options.click()
    dialog.get_by_label("Folder").fill(str(folder))
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Send").click()
    status(page, "completed")
    expect(options).to_contain_text("claude-haiku-5-5 · project")
    task = gateway.ask("GET", f"/api/tasks?session_id={session_of(page)}")["tasks"][0]
    assert task["model"] == "claude-haiku-5-5"
    session = gateway.ask("GET", f"/api/sessions/{session_of(page)}")
    assert session["workspace"] == str(folder)

    page.reload()
    expect(options).to_contain_text("claude-haiku-5-5 · project")
    send(page, "second")
    status(page, "failed")
    page.get_by_role("button", name="Change model").click()
    dialog.get_by_label("Model").select_option("")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_text("Better.")).to_be_visible()
    page.get_by_role("link", name="New session").click()
    expect(options).not_to_contain_text("project")


@pytest.mark.slow
def test_a_mode_stays_with_its_session_and_a_wider_one_is_marked(
    serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    page = enter(serve(script([Reply(text="Done.")])))
    mode = page.get_by_role("button", name="Permissions: ")
    review = page.get_by_role("button", name="Review the plan first")
    expect(mode).to_have_accessible_name("Permissions: Ask first")
    mode.click()
    dialog = page.get_by_role("dialog", name="Permissions")
    expect(dialog.get_by_role("button", name="Edit files")).to_contain_text("asks before commands")
    accessible(page)
    for width in (1400, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.screenshot(path=shots / f"permission-modes-{width}.png")
    page.set_viewport_size({"width": 1400, "height": 900})
    page.keyboard.press("Escape")
    choose_mode(page, "Everything")
    review.click()
    expect(review).to_have_attribute("aria-pressed", "true")
    send(page, "first")
    status(page, "completed")
    marked = page.get_by_role("img", name="Permissions: Everything")
    expect(marked).to_be_visible()
    page.get_by_role("link", name="New session").click()
    expect(mode).to_have_accessible_name("Permissions: Ask first")
    expect(review).to_have_attribute("aria-pressed", "false")
    # another browser
    page.evaluate(
        "Object.keys(localStorage).filter((key) => key.startsWith('larkspur.options'))"
        ".forEach((key) => localStorage.removeItem(key))"
    )
    page.reload()
    marked.click()
    expect(mode).to_have_accessible_name("Permissions: Everything")
    expect(review).to_have_attribute("aria-pressed", "true")
    for width in (1400, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.screenshot(path=shots / f"wider-mode-{width}.png")


def test_isolated_commands_run_unasked(serve: Serve, script: Any, enter: Open, shots: Path) -> None:
    replies = [planned(), shell("touch ran", 1), Reply(text="Touched.", when=when(2))]
    page = enter(serve(script(replies), SANDBOX__PROVIDER="auto"))
    expect(page.get_by_role("button", name="Permissions: Edit and run")).to_be_visible()
    expect(page.get_by_text("isolated · no network")).to_be_visible()
    send(page, "touch it")
    status(page, "completed")
    expect(page.get_by_test_id("thread").get_by_text("Touched.")).to_be_visible()
    page.screenshot(path=shots / "isolated.png")


@pytest.mark.slow
def test_a_task_reaches_the_chosen_network(
    serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    command = "mkdir -p .git/hooks; echo x >.git/hooks/pre-commit; echo proxy=$HTTPS_PROXY"
    replies = [planned(), shell(command, 1), Reply(text="Done.", when=when(2))]
    gateway = serve(script(replies), SANDBOX__PROVIDER="auto")
    page = enter(gateway)
    page.get_by_role("button", name="Model, profile and folder").click()
    dialog = page.get_by_role("dialog", name="Model, profile and folder")
    dialog.get_by_label("Network").select_option("registries")
    accessible(page)
    page.screenshot(path=shots / "task-network.png")
    dialog.get_by_role("button", name="Done").click()
    expect(page.get_by_text("isolated · package indexes")).to_be_visible()
    send(page, "reach it")
    status(page, "completed")
    expect(page.get_by_test_id("thread")).to_contain_text("⚠ .git, .git/hooks/pre-commit")
    page.screenshot(path=shots / "trusted-files.png")
    rows = gateway.events(session_of(page))
    done = [row["event"] for row in rows if row["event"]["event"] == "workflow.tool.completed"]
    assert "proxy=http://" in done[0]["payload"]["result"]


def test_background_commands_are_shown_and_stopped(
    serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    arguments = {"command": "echo up; exec sleep 600", "background": True, "keep": True}
    ends = {"command": "exit 3", "background": True, "keep": True}
    replies = [
        planned(),
        Reply(calls=[Call("shell", arguments), Call("shell", ends)], when=when(1)),
        Reply(text="It serves.", when=when(3)),
    ]
    page = enter(serve(script(replies), SANDBOX__PROVIDER="auto"))
    send(page, "serve it")
    status(page, "completed")
    commands = page.get_by_role("region", name="Background commands")
    expect(commands.get_by_role("listitem")).to_have_count(2)
    expect(commands).to_contain_text("running, also after its task")
    expect(commands).to_contain_text("ended with exit code 3")
    commands.get_by_role("button", name="echo up; exec sleep 600", expanded=False).click()
    expect(commands.locator("pre")).to_have_text("up")
    accessible(page)
    page.screenshot(path=shots / "background-commands.png")
    page.set_viewport_size({"width": 390, "height": 900})
    page.screenshot(path=shots / "background-commands-390.png")
    page.set_viewport_size({"width": 1400, "height": 900})
    commands.get_by_role("button", name="Stop echo up; exec sleep 600").click()
    expect(commands).to_contain_text("stopped")
    expect(commands.get_by_role("button", name="Stop echo up")).to_have_count(0)
    # the panel was a drawer meanwhile
    commands.get_by_role("button", name="echo up; exec sleep 600", expanded=False).click()
    expect(commands).to_contain_text("[stopped]")
