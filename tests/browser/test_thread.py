"""The rows of a conversation: failed runs, several runs at once, reasoning, copied answers."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from internal.i18n.runs import RunMessages
from tests.support.anthropic_server import Call, Fault, Reply, When
from tests.support.page_in_browser import (
    PHONE,
    Open,
    Serve,
    accessible,
    choose_mode,
    send,
    session_of,
    status,
)

ZH = RunMessages("zh")

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


def test_a_failed_run_is_one_row_with_what_can_be_done(
    serve: Serve, script: Any, context: Callable[..., BrowserContext]
) -> None:
    refused = Fault(
        "status", status=400, error="invalid_request_error", message="no such thing", times=1
    )
    replies = [
        Reply(text="It works **now**.", fault=refused, when=When(last_user="tell me")),
    ]
    gateway = serve(script(replies))
    browser = context(permissions=["clipboard-read", "clipboard-write"])
    page = browser.new_page()
    page.goto(gateway.link())
    send(page, "tell me")
    status(page, "failed")
    thread = page.get_by_test_id("thread")
    expect(thread.get_by_text("no such thing")).to_have_count(1)
    for stage in ("think", "iter:1", "execute"):
        expect(thread.get_by_text(stage)).to_have_count(0)
    expect(thread.get_by_role("button", name="Resume")).to_be_visible()
    accessible(page)

    thread.get_by_role("button", name="Retry").click()
    expect(thread.get_by_text("It works now.")).to_be_visible()
    expect(thread.get_by_role("button", name="Retry")).to_have_count(0)
    thread.get_by_role("button", name="Copy the answer").click()
    expect(thread.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("() => navigator.clipboard.readText()") == "It works **now**."
    told = gateway.ask("GET", f"/api/tasks?session_id={session_of(page)}")["tasks"]
    assert [one["task"] for one in told] == ["tell me", "tell me"]


@pytest.mark.slow
def test_trouble_of_the_model_is_said_in_the_language_of_the_page(
    serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    rejected = Fault("status", status=402, error="billing_error", message="Top up, req_01AbC")
    replies = [
        Reply(text="cut", fault=Fault("cut_after_bytes", bytes=700), when=When(last_user="third")),
        Reply(text="I will not", stop_reason="refusal", when=When(last_user="first")),
        Reply(fault=rejected, when=When(last_user="second")),
    ]
    page = enter(serve(script(replies), LLM__MAX_RETRIES="0"), **PHONE, locale="zh-CN")
    send_in_chinese(page, "first")
    thread = page.get_by_test_id("thread")
    expect(thread).to_contain_text(ZH.ended("error", "model_refused"))
    expect(thread).not_to_contain_text("declined")
    send_in_chinese(page, "second")
    expect(thread).to_contain_text(ZH.ended("error", "model_no_credit"))
    expect(thread).to_contain_text("reports that the account has no credit: Top up")
    expect(thread).not_to_contain_text("req_01AbC")
    send_in_chinese(page, "third")
    bar = page.get_by_role("heading", name=ZH.ended("error", "model_unreachable"))
    expect(bar).to_be_visible()
    accessible(page)
    page.screenshot(path=shots / "model-trouble-zh.png")
    page.set_viewport_size({"width": 1100, "height": 800})
    page.emulate_media(color_scheme="dark")
    page.screenshot(path=shots / "model-trouble-zh-dark.png")


def send_in_chinese(page: Page, text: str) -> None:
    page.get_by_label("消息", exact=True).fill(text)
    page.keyboard.press("Enter")


def test_a_run_keeps_its_rows_together_and_shows_what_it_does(
    serve: Serve, script: Any, enter: Open
) -> None:
    command = "for n in 1 2 3 4; do echo line $n; done; read -r _ < pipe"
    replies = [
        Reply(
            calls=[Call("plan", {"goal": "wait", "steps": ["wait"]})],
            when=When(last_user="slow", results=0),
        ),
        Reply(
            thinking="First I look.\nThen I run it.",
            calls=[Call("shell", {"command": f"mkfifo pipe; {command}"})],
            when=When(last_user="slow", results=1),
        ),
        Reply(text="The slow one is done.", when=When(last_user="slow", results=2)),
        Reply(text="The next one is done.", when=When(last_user="next")),
    ]
    gateway = serve(script(replies))
    page = enter(gateway)
    choose_mode(page, "Everything")
    send(page, "slow")
    thread = page.get_by_test_id("thread")
    working = page.get_by_test_id("working")
    expect(working).to_contain_text(re.compile(r"line 2\nline 3\nline 4"))
    page.get_by_label("Message", exact=True).fill("next")
    page.keyboard.press("Control+Enter")
    expect(working).to_have_count(2)
    expect(working.nth(1)).to_contain_text("queued")
    for pipe in gateway.home.rglob("pipe"):
        pipe.write_text("\n")
    expect(thread.get_by_text("The next one is done.")).to_be_visible()
    expect(working).to_have_count(0)
    whole = thread.inner_text()
    order = ["slow", "Thought for", "shell", "The slow one is done.", "next", "The next one"]
    assert [whole.find(one) for one in order] == sorted(whole.find(one) for one in order)
    page.reload()
    thread.get_by_role("button", name="Thought for").click()
    expect(thread.get_by_text("Then I run it.")).to_be_visible()


CONTENT = """\
The sum $a^2 + b^2$ costs $5.

$$\\frac{1}{2}$$

```python
def price(x):
    return x * 0.92
```

```diff
-old
+new
```

| company | change | reason | source |
|:--|--:|:-:|---|
| Alpha | 8 % | averylongwordwithoutanybreak | https://example.com/a/very/long/address |
"""


def test_code_formulas_and_tables_are_shown_as_such(
    serve: Serve, script: Any, context: Callable[..., BrowserContext], shots: Path
) -> None:
    gateway = serve(script([Reply(text=CONTENT, pieces=20, packets="each")]))
    browser = context(permissions=["clipboard-read", "clipboard-write"])
    page = browser.new_page()
    page.goto(gateway.link())
    send(page, "show me")
    status(page, "completed")
    thread = page.get_by_test_id("thread")
    expect(thread.locator(".hljs-keyword").first).to_have_text("def")
    expect(thread.locator(".hljs-addition")).to_have_text("+new")
    expect(thread.locator("math")).to_have_count(2)
    expect(thread.locator("math mfrac")).to_have_count(1)
    expect(thread.locator("td").nth(1)).to_have_attribute("align", "right")
    expect(thread.get_by_text("costs $5.")).to_be_visible()
    thread.get_by_role("button", name="Copy the code").first.click()
    expect(thread.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("() => navigator.clipboard.readText()").startswith("def price(x):\n")
    accessible(page)
    page.screenshot(path=shots / "content.png")
    page.emulate_media(color_scheme="dark")
    accessible(page)
    page.set_viewport_size({"width": 390, "height": 800})
    page.screenshot(path=shots / "content-phone.png")
    wide = page.evaluate("() => document.documentElement.scrollWidth")
    assert wide == 390


DIAGRAMS = """\
```mermaid
flowchart LR
  A[Question] --> B{Known?}
  B -->|yes| C[Answer]
  B -->|no| D["<img src=x onerror=alert(1)>"]
  click A "javascript:alert(1)"
```

```mermaid
pie title Cats
  "a": 3
```
"""


@pytest.mark.slow
def test_diagrams_are_pictures_and_their_source_can_be_read(
    serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    endless = "flowchart TD\n" + "".join(
        f" N{n} --> N{(n * other) % 600}\n" for n in range(600) for other in (3, 7)
    )
    page = enter(serve(script([Reply(text=f"{DIAGRAMS}\n```mermaid\n{endless}```\n")])))
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    send(page, "draw it")
    status(page, "completed")
    thread = page.get_by_test_id("thread")
    picture = thread.get_by_role("region", name="Diagram").first.get_by_role("img")
    expect(picture).to_have_js_property("complete", value=True)
    assert picture.evaluate("image => image.naturalWidth") > 200
    assert picture.evaluate("image => image.src").startswith("blob:")
    expect(thread.get_by_text("This diagram cannot be drawn.").first).to_be_visible()
    expect(thread.get_by_text('"a": 3')).to_be_visible()
    accessible(page)
    page.screenshot(path=shots / "diagram.png")
    page.emulate_media(color_scheme="dark")
    page.reload()
    picture.scroll_into_view_if_needed()
    page.screenshot(path=shots / "diagram-dark.png")
    thread.get_by_role("button", name="Show the source").first.click()
    expect(thread.get_by_text("A[Question] --> B{Known?}")).to_be_visible()
    thread.get_by_role("button", name="Show the diagram").click()
    expect(picture).to_be_visible()


@pytest.mark.slow
def test_an_answer_is_given_again_and_a_message_edited_in_a_branch(
    serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    replies = [
        Reply(text="It is **alder**.", when=When(last_user="first word")),
        Reply(text="It is birch.", when=When(last_user="second word")),
        Reply(text="It is cedar.", when=When(last_user="third word")),
    ]
    gateway = serve(script(replies))
    page = enter(gateway)
    thread = page.get_by_test_id("thread")
    send(page, "the first word?")
    expect(thread.get_by_text("It is alder.")).to_be_visible()
    status(page, "completed")  # until then, a message steers the run
    origin = session_of(page)
    send(page, "the second word?")
    expect(thread.get_by_text("It is birch.")).to_be_visible()
    status(page, "completed")  # until then, only the message before has this button

    thread.get_by_role("button", name="Edit and send in a branch").last.click()
    thread.get_by_role("textbox").fill("the third word?")
    thread.get_by_role("button", name="Send", exact=True).click()
    expect(thread.get_by_text("It is cedar.")).to_be_visible()
    expect(thread.get_by_text("It is birch.")).to_have_count(0)
    edited = session_of(page)
    earlier = page.get_by_role("region", name="Earlier conversation")
    expect(earlier.get_by_text("It is alder.")).to_be_visible()
    accessible(page)
    page.screenshot(path=shots / "branch.png")

    thread.get_by_role("button", name="Answer again, in a branch").click()
    # Both branches show the same answer and the same link: only the address tells them apart.
    page.wait_for_url(lambda url: origin not in url and edited not in url)
    earlier.get_by_role("link", name="Branched from another session").click()
    page.wait_for_url(f"**/sessions/{edited}")
    expect(thread.get_by_text("It is cedar.")).to_be_visible()
    earlier.get_by_role("link", name="Branched from another session").click()
    page.wait_for_url(f"**/sessions/{origin}")
    expect(thread.get_by_text("It is birch.")).to_be_visible()
    expect(earlier).to_have_count(0)
    thread.get_by_role("button", name="Branch from here").first.click()
    expect(earlier.get_by_text("It is alder.")).to_be_visible()
    expect(earlier.get_by_text("the second word?")).to_have_count(0)
    assert len(gateway.ask("GET", "/api/sessions")["sessions"]) == 4


@pytest.mark.slow
def test_a_long_branch_still_begins_with_the_earlier_conversation(
    serve: Serve, script: Any, enter: Open
) -> None:
    look = [Call("list_dir", {"path": "."})] * 110
    replies = [
        Reply(text="It is alder.", when=When(last_user="first word")),
        Reply(text="Once.", calls=look, when=When(last_user="look", results=0)),
        Reply(text="Twice.", calls=look, when=When(last_user="look", results=110)),
        Reply(text="The end.", when=When(last_user="look", results=220)),
    ]
    page = enter(serve(script(replies), AGENT__GATES="off"))
    thread = page.get_by_test_id("thread")
    send(page, "the first word?")
    expect(thread.get_by_text("It is alder.")).to_be_visible()
    origin = session_of(page)
    thread.get_by_role("button", name="Branch from here").click()
    page.wait_for_url(lambda url: origin not in url)
    send(page, "look around")
    expect(thread.get_by_text("The end.")).to_be_visible()
    expect(thread.get_by_text("It is alder.")).to_have_count(0)  # only visible rows are rendered
    thread.focus()
    page.keyboard.press("j")
    expect(thread.get_by_text("look around")).to_be_in_viewport()
    thread.hover()
    page.mouse.wheel(0, -5_000)
    earlier = page.get_by_role("region", name="Earlier conversation")
    expect(earlier.get_by_text("It is alder.")).to_be_in_viewport()


@pytest.mark.slow
def test_an_answer_is_rated_with_a_comment(
    serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    gateway = serve(script([Reply(text="It is **alder**.")]))
    page = enter(gateway)
    thread = page.get_by_test_id("thread")
    send(page, "the word?")
    up, down = (thread.get_by_role("button", name=f"{kind} answer") for kind in ("Good", "Bad"))
    comment = thread.get_by_role("textbox", name="Comment on the answer")
    down.click()
    expect(down).to_have_attribute("aria-pressed", "true")
    comment.fill("not <b>what</b> I asked")
    accessible(page)
    page.screenshot(path=shots / "feedback-comment.png")
    comment.press("Enter")
    expect(comment).to_have_count(0)
    expect(thread.get_by_text("not <b>what</b> I asked")).to_be_visible()
    page.reload()
    expect(down).to_have_attribute("aria-pressed", "true")
    expect(thread.get_by_text("not <b>what</b> I asked")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 800})
    page.screenshot(path=shots / "feedback-phone.png")
    up.click()
    expect(up).to_have_attribute("aria-pressed", "true")
    expect(comment).to_have_value("not <b>what</b> I asked")
    comment.press("Escape")
    page.emulate_media(color_scheme="dark")
    accessible(page)
    page.screenshot(path=shots / "feedback-dark.png")
    up.click()
    expect(up).to_have_attribute("aria-pressed", "false")
    tasks = gateway.ask("GET", "/api/tasks")["tasks"]
    assert [task["feedback"] for task in tasks] == [None]
