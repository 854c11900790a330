"""Scope of a login: all tabs of its browser, after a restart, and not on another port."""

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.gateway import Gateway
from tests.support.page_in_browser import Open, Serve, send, session_of, status

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

WITHOUT_STORAGE = """Object.defineProperty(window, 'localStorage', {
  get() { throw new DOMException('denied', 'SecurityError'); },
});"""
LOGIN_TEXT = "Run larkspur open on the machine of the gateway"


class Listener(HTTPServer):
    """A web server of another program on this machine; it stores the cookies it gets."""

    cookies: list[str]


class Handler(BaseHTTPRequestHandler):
    server: Listener

    def do_GET(self) -> None:
        self.server.cookies += self.headers.get_all("cookie", [])
        body = b"<!doctype html><title>other</title>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as inherited
        pass


@contextmanager
def other_server() -> Generator[Listener]:
    with Listener(("127.0.0.1", 0), Handler) as server:
        server.cookies = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def replay(gateway: Gateway, method: str, path: str, cookie: str) -> tuple[int, str]:
    """Send a request of the page from outside of a browser, with the cookie."""
    connection = HTTPConnection("127.0.0.1", gateway.port, timeout=30)
    headers = {"cookie": cookie, "origin": gateway.url, "content-type": "application/json"}
    body = {"task": "take over", "options": {"permission_mode": "all"}}
    try:
        connection.request(method, path, json.dumps(body) if method == "POST" else None, headers)
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
    finally:
        connection.close()


@pytest.mark.slow
def test_a_server_on_another_port_that_receives_the_cookie_cannot_use_it(
    serve: Serve, enter: Open
) -> None:
    page = enter(gateway := serve())
    send(page, "what is 6*7?")
    status(page, "completed")
    tasks = gateway.ask("GET", "/api/tasks")["tasks"]
    with other_server() as other:
        visitor = page.context.new_page()
        visitor.goto(f"http://127.0.0.1:{other.server_port}/")
        assert visitor.evaluate("Object.keys(localStorage)") == []
        cookie = other.cookies[0]
        assert cookie.startswith(f"larkspur-{gateway.port}=")
        # its page cannot send the cookie together with a login key either
        sent = visitor.evaluate(
            """(url) => fetch(url, {
              method: 'POST', credentials: 'include', body: '{"task": "take over"}',
              headers: { 'content-type': 'application/json', 'x-larkspur-login-key': 'x' },
            }).then(() => 'answered', () => 'blocked')""",
            f"{gateway.url}/api/tasks",
        )
        assert sent == "blocked"
        visitor.close()
    for method, path in (
        ("POST", "/api/tasks"),
        ("GET", "/api/sessions"),
        ("GET", "/api/sse?sessions=*"),
        ("POST", "/api/links"),
    ):
        reply, body = replay(gateway, method, path, cookie)
        assert reply == 401, path
        assert "not logged in" in body
    assert gateway.ask("GET", "/api/tasks")["tasks"] == tasks
    send(page, "what is 6*8?")
    expect(page.get_by_text("6*8 = 48")).to_be_visible()


@pytest.mark.slow
def test_a_login_lasts_in_all_tabs_over_a_restart_until_the_logout(
    serve: Serve, enter: Open
) -> None:
    page = enter(gateway := serve())
    send(page, "what is 6*7?")
    status(page, "completed")
    page.reload()
    expect(page.get_by_text("6*7 = 42")).to_be_visible()
    tab = page.context.new_page()
    tab.goto(page.url)
    expect(tab.get_by_text("6*7 = 42")).to_be_visible()
    send(tab, "what is 6*8?")
    for each in (tab, page):
        expect(each.get_by_text("6*8 = 48")).to_be_visible()
    gateway.stop()
    gateway.start()
    send(page, "what is 6*9?")
    for each in (tab, page):
        expect(each.get_by_text("6*9 = 54")).to_be_visible()
    tab.goto("about:blank")
    tab.go_back()
    send(tab, "what is 7*9?")
    for each in (tab, page):
        expect(each.get_by_text("7*9 = 63")).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_text(LOGIN_TEXT)).to_be_visible()
    expect(tab.get_by_text("Your login has expired")).to_be_visible()
    assert page.evaluate("localStorage.getItem('larkspur.login')") is None
    assert gateway.ask("GET", f"/api/sessions/{session_of(tab)}")["session_id"]


@pytest.mark.slow
def test_without_the_stored_key_the_page_asks_for_a_login(serve: Serve, enter: Open) -> None:
    page = enter(gateway := serve())
    page.evaluate("localStorage.clear()")
    page.reload()
    expect(page.get_by_text(LOGIN_TEXT)).to_be_visible()
    page.get_by_label("Code").fill(gateway.link())
    page.keyboard.press("Enter")
    send(page, "what is 6*7?")
    expect(page.get_by_text("6*7 = 42")).to_be_visible()


@pytest.mark.slow
def test_a_used_link_is_named_as_such(serve: Serve, context: Callable[..., BrowserContext]) -> None:
    gateway = serve()
    link = gateway.link()
    first, page = context().new_page(), context().new_page()
    first.goto(link)
    expect(first.get_by_label("Message", exact=True)).to_be_visible()
    page.goto(link)
    expect(page.get_by_text(LOGIN_TEXT)).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("already used")
    page.goto(gateway.link())
    page.reload()
    expect(page.get_by_label("Message", exact=True)).to_be_visible()


@pytest.mark.slow
def test_without_local_storage_a_login_lasts_as_long_as_the_page(
    serve: Serve, context: Callable[..., BrowserContext]
) -> None:
    gateway = serve()
    browser = context()
    browser.add_init_script(WITHOUT_STORAGE)
    page, tab = browser.new_page(), browser.new_page()
    tab.goto(gateway.url)
    expect(tab.get_by_text(LOGIN_TEXT)).to_be_visible()
    page.goto(gateway.link())
    expect(tab.get_by_label("Message", exact=True)).to_be_visible()
    send(page, "what is 6*7?")
    expect(page.get_by_text("6*7 = 42")).to_be_visible()
    page.reload()
    expect(page.get_by_text(LOGIN_TEXT)).to_be_visible()


@pytest.mark.slow
def test_a_replaced_token_ends_the_login_and_its_stream(serve: Serve, enter: Open) -> None:
    page = enter(gateway := serve())
    send(page, "what is 6*7?")
    status(page, "completed")
    draft = gateway.home / "token.new"
    draft.touch(mode=0o600)
    draft.write_text("n3w-" * 16)
    draft.replace(gateway.home / "token")
    expect(page.get_by_text("Your login has expired")).to_be_visible()
    page.get_by_label("Code").fill(gateway.link())
    page.get_by_label("Code").press("Enter")
    expect(page.get_by_text("Your login has expired")).to_have_count(0)
    send(page, "what is 6*8?")
    expect(page.get_by_text("6*8 = 48")).to_be_visible()


@pytest.mark.slow
def test_a_failed_download_is_reported(serve: Serve, enter: Open, tmp_path: Any) -> None:
    page: Page = enter(gateway := serve())
    (tmp_path / "numbers.csv").write_text("a,b\n1,2\n")
    page.locator("input[type=file]").set_input_files(tmp_path / "numbers.csv")
    send(page, "hello")
    status(page, "completed")
    save = page.get_by_test_id("thread").get_by_role("button", name="Download numbers.csv")
    expect(save).to_be_visible()
    gateway.kill()
    save.click()
    expect(page.get_by_role("alert")).to_be_visible()
    gateway.start()
    with page.expect_download() as download:
        save.click()
    assert download.value.suggested_filename == "numbers.csv"
    assert download.value.path().read_text() == "a,b\n1,2\n"
