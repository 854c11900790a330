"""The address of a model on the settings page: tried, corrected with one click, and used."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.model_site import background_site, model_server
from tests.support.page_in_browser import Open, Serve, accessible, send

KEY = "sk-proj-" + "k3y" * 12

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


@pytest.mark.slow
def test_an_address_is_corrected_with_one_click_stored_and_used(
    serve: Serve, enter: Open, shots: Path
) -> None:
    models = ["m-large", "m-small"]
    with background_site(model_server("/v1", key=KEY, models=[*models, "gpt-6-sol"])) as site:
        gateway = serve(AGENT__GATES="off")
        page = enter(gateway)
        page.get_by_role("link", name="Settings").click()
        page.get_by_role("navigation", name="Settings").get_by_role("link", name="Models").click()
        page.get_by_role("combobox", name="Provider").select_option("openai")
        address = page.get_by_role("textbox", name="Address")
        expect(address).to_have_attribute("placeholder", "https://api.openai.com/v1")
        page.get_by_role("textbox", name="Key").fill(f'export OPENAI_API_KEY="{KEY}"')
        address.fill(f"{site.origin}/v1/chat/completions")
        page.get_by_role("button", name="Try it").click()
        expect(page.get_by_role("status").filter(has_text="answers as a model")).to_be_visible()
        accessible(page)
        page.screenshot(path=shots / "settings-model-address.png")
        page.get_by_role("button", name=f"Use {site.origin}/v1").click()
        expect(address).to_have_value(f"{site.origin}/v1")
        page.get_by_role("button", name="Try it").click()
        expect(page.get_by_text("gpt-6-sol of OpenAI answers.")).to_be_visible()
        expect(page.get_by_text("Left out around the key:")).to_be_visible()
        page.get_by_role("button", name="Store").click()
        expect(page.get_by_text("The gateway uses the new settings.")).to_be_visible()
        chosen = page.get_by_role("combobox", name="Default model")
        expect(chosen).to_have_value("openai:gpt-6-sol")

        other = page.get_by_role("combobox", name="Another model of OpenAI")
        other.focus()
        expect(page.get_by_text("OpenAI lists 3 models.")).to_be_visible()
        expect(page.locator("datalist option")).to_have_count(3)
        accessible(page)
        other.fill("m-small")
        page.get_by_role("button", name="Use it").click()
        expect(chosen).to_have_value("openai:m-small")
        page.get_by_role("link", name="New session").first.click()
        send(page, "hello")
        expect(page.get_by_test_id("thread")).to_contain_text("It works.")
        assert b'"model":"m-small"' in site.requests[-1].body.replace(b" ", b"")
    views = gateway.ask("GET", "/api/providers")["providers"]
    (openai,) = [one for one in views if one["name"] == "openai"]
    assert openai["base_url"] == f"{site.origin}/v1"
    assert not re.search(KEY, page.content())
