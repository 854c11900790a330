"""One Chromium for all tests; a context, a gateway and a home folder for each."""

import shutil
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    Request,
    expect,
    sync_playwright,
)

from internal.channels.web.static_page import DIST
from tests import ROOT
from tests.browser.gateway import Gateway, Model
from tests.machine.abilities import CHROMIUM_FLAGS
from tests.support.anthropic_server import Reply
from tests.support.page_in_browser import Open, Serve, is_blocked

DESKTOP = {"width": 1360, "height": 860}
PATIENCE_MS = 20_000


@pytest.fixture(scope="session")
def shots() -> Path:
    """Return the folder for pictures of the page; docs/images has some of them."""
    folder = ROOT / "build" / "shots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def browser() -> Generator[Browser]:
    chromium = shutil.which("chromium")
    assert chromium, "Chromium is missing: apt-get install chromium, or pytest -m 'not browser'."
    assert (DIST / "index.html").is_file(), "The page is not built: run make page."
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        yield launched
        launched.close()


@pytest.fixture
def stack() -> Generator[ExitStack]:
    with ExitStack() as entered:
        yield entered


@pytest.fixture
def serve(home: Path, environ: dict[str, str], stack: ExitStack) -> Serve:
    """Start a gateway: with the offline model, or in front of a scripted one.

    Without a key it uses the offline model until it gets one.
    """

    def started(model: Model | None = None, *, has_key: bool = True, **settings: str) -> Gateway:
        extra = {f"LARKSPUR_{name}": value for name, value in settings.items()}
        if model is not None and not has_key:
            extra |= {"ANTHROPIC_BASE_URL": model.url}
        elif model is not None:
            extra |= {
                "ANTHROPIC_BASE_URL": model.url,
                "ANTHROPIC_API_KEY": "x",
                "LARKSPUR_LLM__PROVIDER": "anthropic",
                "LARKSPUR_LLM__MODEL": "claude-sonnet-4-5",
            }
        gateway = Gateway(home, environ, extra=extra)
        stack.callback(gateway.kill)
        gateway.start()
        return gateway

    return started


@pytest.fixture
def script(
    tmp_path: Path, environ: dict[str, str], stack: ExitStack
) -> Callable[[Sequence[Reply]], Model]:
    """Start a model that says these replies."""

    def started(replies: Sequence[Reply]) -> Model:
        return stack.enter_context(Model(replies, tmp_path, environ))

    return started


@pytest.fixture
def context(browser: Browser, stack: ExitStack) -> Callable[..., BrowserContext]:
    """Open a browser of its own, in which nothing foreign is asked for and no error is thrown."""
    errors: list[str] = []
    foreign: list[Request] = []

    def note(asked: Request) -> None:
        # Chromium's viewer of PDF files is an extension with resources of its own
        own = ("http://127.0.0.1:", "file:", "blob:", "chrome-extension:", "chrome:")
        if not asked.url.startswith(own):
            foreign.append(asked)

    def opened(**options: Any) -> BrowserContext:
        made = browser.new_context(**{"viewport": DESKTOP, "locale": "en-GB", **options})
        stack.callback(made.close)
        made.on("request", note)
        made.on("weberror", lambda thrown: errors.append(str(thrown.error)))
        return made

    def check() -> None:
        assert errors == []
        assert [asked.url for asked in foreign if not is_blocked(asked)] == []

    stack.callback(check)
    return opened


@pytest.fixture
def enter(context: Callable[..., BrowserContext]) -> Open:
    """Open the page of a gateway, logged in."""

    def entered(gateway: Gateway, **options: Any) -> Page:
        page = context(**options).new_page()
        page.goto(gateway.link())
        page.locator("#message").wait_for()
        return page

    return entered
