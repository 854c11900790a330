"""The chat page of the Lark simulator."""

import base64
import json
import re
import signal
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

import tests.support
from internal.channels.lark.lark_markdown import as_card_markdown, parse_markdown
from internal.simulators.lark.model import App
from tests.browser.gateway import LARKSPUR

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

ROWS = json.loads(Path(tests.support.__path__[0], "cjk_emphasis.json").read_text("utf-8"))


@pytest.fixture
def chat_page(environ: dict[str, str], tmp_path: Path) -> Generator[str]:
    """The address that the simulator prints, with its key."""
    with subprocess.Popen(
        [LARKSPUR, "lark-sim", "--port", "0"],
        env=environ,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = ""
        while not line.startswith("chat page"):
            line = process.stdout.readline()
            assert line, "the simulator ended"
        yield line.split()[2]
        process.send_signal(signal.SIGTERM)


def test_the_key_is_never_a_cookie_and_files_are_shown_with_it(
    chat_page: str, context: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    page = context().new_page()
    page.goto(chat_page)
    expect(page.locator("#chats button").first).to_be_visible()
    page.locator("#chats button").first.click()
    page.get_by_label("Message", exact=True).fill("good morning")
    page.keyboard.press("Enter")
    expect(page.locator("#messages").get_by_text("good morning", exact=True)).to_be_visible()
    (tmp_path / "dot.png").write_bytes(PICTURE)
    (tmp_path / "notes.txt").write_text("three notes")
    page.locator("#file").set_input_files(tmp_path / "dot.png")
    picture = page.locator("#messages img")
    expect(picture).to_be_visible()
    expect(picture).to_have_js_property("naturalWidth", 1)
    page.locator("#file").set_input_files(tmp_path / "notes.txt")
    with page.expect_download() as download:
        page.get_by_role("button", name="notes.txt").click()
    assert download.value.path().read_text() == "three notes"
    assert page.context.cookies() == []
    assert "#" not in page.url
    page.reload()
    expect(page.locator("#chats button").first).to_be_visible()
    page.evaluate("localStorage.clear()")
    page.reload()
    expect(page.get_by_role("status")).to_contain_text("It contains the key")


def test_a_typed_name_is_a_mention(chat_page: str, context: Callable[..., BrowserContext]) -> None:
    page = context().new_page()
    page.goto(chat_page)
    page.locator("#chats button", has_text="Product").click()
    page.get_by_label("Message", exact=True).fill("@Larkspur good morning, @allies")
    with page.expect_request("**/send") as sending:
        page.keyboard.press("Enter")
    bot = App("cli_larksim", "any").open_id
    sent = sending.value.post_data_json
    assert sent is not None
    assert sent["mentions"] == [bot]


def test_cards_are_shown_as_lark_shows_them(
    chat_page: str, context: Callable[..., BrowserContext]
) -> None:
    page = context().new_page()
    page.goto(chat_page)

    def shown(text: str) -> str:
        script = """async (text) => {
          const script = document.querySelector("script[src]");
          const { markdown } = await import(new URL("markdown.js", script.src));
          const box = document.createElement("div");
          box.append(...markdown(text));
          return box.innerHTML;
        }"""
        html: str = page.evaluate(script, text)
        return html

    # the faults of a text that was not written for cards
    assert "**重点\uff1a**请" in shown("**重点\uff1a**请")
    assert "**\uff08一\uff09**二" in shown("字**\uff08一\uff09**二")
    assert "~~旧的。~~新的" in shown("~~旧的。~~新的")
    assert "level1" not in shown("- a\n  - b")
    assert "level1" in shown("- a\n    - b")
    assert "[ ] a" in shown("- [ ] a")
    assert "$E=mc^2$" in shown("$E=mc^2$")
    assert "&lt;br&gt;" in shown("|a<br>b|\n|-|")
    assert "h1" in shown("# a")
    assert "<b>" not in shown("3 ** 4 ** 5")
    for text, expected in ROWS:
        if "***" in text:  # the order of the two tags differs
            continue
        [paragraph] = shown(as_card_markdown(parse_markdown(text), 5)).split("</p>")[:-1]
        html = paragraph.removeprefix("<p>").replace("\u200b", "")
        html = re.sub(r"(</?)b>", r"\1strong>", re.sub(r"(</?)i>", r"\1em>", html))
        assert re.sub("<a [^>]*>", "<a>", html) == re.sub("<a [^>]*>", "<a>", expected)
