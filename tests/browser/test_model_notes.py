"""Notes of the page about a model that cannot take a part, is refused or is replaced."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import expect

from internal.i18n.runs import RunMessages
from tests.support import documents
from tests.support.anthropic_server import Fault, Reply, When
from tests.support.page_in_browser import PHONE, Open, Serve, accessible, send

EN = RunMessages("en")
FIRST, SECOND = "claude-sonnet-4-5", "claude-second"

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


def refused(status: int, error: str, message: str, times: int | None = None) -> Fault:
    return Fault("status", status=status, error=error, message=message, times=times)


@pytest.mark.slow
def test_notes_about_the_model_help_on_a_phone(
    serve: Serve, script: Any, enter: Open, shots: Path, tmp_path: Path
) -> None:
    blind = refused(400, "invalid_request_error", "This model does not support image input", 1)
    wrong = refused(401, "authentication_error", "invalid x-api-key")
    down = refused(529, "overloaded_error", "Overloaded")
    replies = [
        Reply(text="I see nothing.", fault=blind, when=When(last_user="picture")),
        Reply(fault=wrong, when=When(last_user="wrong key")),
        Reply(fault=down, when=When(last_user="replaced", model=FIRST)),
        Reply(text="I am the second.", when=When(last_user="replaced", model=SECOND)),
    ]
    fallbacks = f'["anthropic:{SECOND}"]'
    gateway = serve(script(replies), LLM__MAX_RETRIES="0", LLM__FALLBACKS=fallbacks)
    page = enter(gateway, **PHONE)
    thread = page.get_by_test_id("thread")

    picture = tmp_path / "a.png"
    picture.write_bytes(documents.picture("PNG"))
    page.locator("input[type=file]").set_input_files(picture)
    expect(page.get_by_text("a.png").first).to_be_visible()
    send(page, "what is in the picture?")
    expect(thread.get_by_text("I see nothing.")).to_be_visible()
    expect(thread.get_by_text(EN.left_out("pictures", 1))).to_have_count(1)
    accessible(page)
    page.screenshot(path=shots / "model-note-left-out.png")

    send(page, "replaced")
    expect(thread.get_by_text("I am the second.")).to_be_visible()
    expect(thread).to_contain_text(EN.answered_by(SECOND, FIRST))
    accessible(page)
    page.screenshot(path=shots / "model-note-fallback.png")

    send(page, "with a wrong key")
    expect(thread.get_by_text(EN.ended("error", "model_key_refused"))).to_be_visible()
    accessible(page)
    page.screenshot(path=shots / "model-note-refused.png")
    thread.get_by_role("button", name="Change model").click()
    expect(page.get_by_role("combobox", name="Model")).to_be_visible()
    page.get_by_role("button", name="Done").click()
    thread.get_by_role("button", name="Enter another key").click()
    page.wait_for_url("**/settings/models#key")
    place = "The key of Anthropic is set by environment ANTHROPIC_API_KEY. Change it there."
    expect(page.get_by_text(place)).to_be_visible()


def test_a_refused_key_leads_to_its_field(
    serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    wrong = refused(401, "authentication_error", "invalid x-api-key")
    replies = [Reply(text="It works.", fault=msgspec.structs.replace(wrong, times=1))]
    page = enter(serve(script(replies), has_key=False, LLM__MAX_RETRIES="0"))
    page.goto(page.url + "settings/models")
    page.get_by_role("combobox", name="Provider").select_option("anthropic")
    key = page.get_by_role("textbox", name="Key", exact=True)
    key.fill("sk-ant-api03-" + "k3y" * 30)
    page.get_by_role("button", name="Store").click()
    expect(page.get_by_text("The gateway uses the new settings.")).to_be_visible()
    expect(key).to_have_value("")
    page.get_by_role("link", name="New session").click()
    send(page, "hello")
    thread = page.get_by_test_id("thread")
    thread.get_by_role("button", name="Enter another key").click()
    page.wait_for_url("**/settings/models#key")
    expect(key).to_be_focused()
    expect(page.get_by_role("combobox", name="Provider")).to_have_value("anthropic")
    page.screenshot(path=shots / "enter-another-key.png")
    key.fill("sk-ant-api03-" + "0k9" * 30)
    page.get_by_role("button", name="Store").click()
    expect(page.get_by_text("The gateway uses the new settings.")).to_be_visible()
    expect(key).to_have_value("")
    page.go_back()
    thread.get_by_role("button", name="Retry").click()
    expect(thread.get_by_text("It works.")).to_be_visible()
    # from a terminal or a chat
    page.goto(page.url.partition("/sessions")[0] + "/settings/models#key=anthropic:claude-x")
    expect(key).to_be_focused()
