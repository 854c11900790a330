"""Every kind of hostile text, through the real chain, in every place where the page shows text.

Nothing of it runs, nothing is requested, nothing covers the page, and the content security policy,
whose reports are collected, has nothing to stop.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.gateway import Gateway
from tests.browser.hostile_text import ELEMENT, KINDS
from tests.support.anthropic_server import Call, Fault, Reply, When
from tests.support.page_in_browser import Serve, accessible, status
from tests.support.question_bar import bar

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

MAX_PIECES = 40
MAX_SHOWN = 30
"""Tasks of a session whose rows are all rendered."""

COLLECT_REPORTS = """
window.reports = [];
addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sample }) =>
  window.reports.push([violatedDirective, blockedURI, sample].join(' ')));
"""

INSPECT = """() => {
  const found = [];
  const isColoured = (element, name) => name === 'class' &&
    element.matches('.code-block code span') && element.className.startsWith('hljs-');
  const note = (what, element) => found.push(`${what}: ${element.outerHTML.slice(0, 200)}`);
  const foreign = 'iframe,frame,object,embed,base,video,audio,picture,source,template,math,' +
    'dialog,slot,marquee,link:not(head link),meta:not(head meta),style:not(head style),img,' +
    'script:not(head script),.hostile,#hostile,[name=hostile],[srcdoc],[formaction]';
  for (const element of document.querySelectorAll(foreign)) note('element', element);
  for (const element of document.querySelectorAll('*')) {
    for (const { name } of element.attributes) if (name.startsWith('on')) note(name, element);
  }
  // the frame of a block of code, which no text can imitate: it may have no classes
  const own = '.code-block, .code-block > *, .code-block > div *';
  for (const element of document.querySelectorAll(`.prose *:not(${own})`)) {
    const style = getComputedStyle(element);
    if (!['static', 'relative'].includes(style.position)) note(style.position, element);
    for (const name of ['id', 'name', 'style', 'class', 'tabindex', 'autofocus', 'title'])
      if (element.hasAttribute(name) && !isColoured(element, name)) note(name, element);
  }
  for (const link of document.querySelectorAll('.prose a')) {
    const named = `${link.protocol}//${link.host}`;
    if (link.href === '') continue;
    if (!/^https?:$|^mailto:$/.test(link.protocol)) note('scheme', link);
    if (link.host === location.host) note('own address', link);
    if (link.target !== '_blank' || link.rel !== 'noopener noreferrer nofollow') note('rel', link);
    if (!link.textContent.toLowerCase().includes(link.host)) note('unnamed target', link);
    const mark = link.querySelector('bdi');
    if (mark && mark.getBoundingClientRect().height < 10) note('small mark', link);
  }
  const message = document.getElementById('message');
  if (message?.tagName !== 'TEXTAREA') found.push('the field of the message was replaced');
  const box = message.getBoundingClientRect();
  const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  if (top !== message) note('cover', top);
  if (document.documentElement.scrollWidth > innerWidth) found.push('the page is too wide');
  if (window.ran !== undefined) found.push('a script ran');
  return [...found, ...window.reports];
}"""

Watch = Callable[[Gateway], Page]


@pytest.fixture
def watch(context: Callable[..., BrowserContext], stack: ExitStack) -> Watch:
    """Open the page of a gateway; no text may cause a request."""
    requests: list[str] = []

    def check() -> None:
        assert [url for url in requests if "hostile" in url] == []

    def watched(gateway: Gateway) -> Page:
        opened = context()
        opened.add_init_script(COLLECT_REPORTS)
        opened.on("request", lambda asked: requests.append(asked.url))
        page = opened.new_page()
        page.goto(gateway.link())
        page.locator("#message").wait_for()
        return page

    stack.callback(check)
    return watched


@pytest.mark.slow
def test_no_kind_of_hostile_markdown_does_anything(serve: Serve, script: Any, watch: Watch) -> None:
    replies = [
        Reply(
            text=text,
            pieces=min(len(text), MAX_PIECES),
            packets="each",
            when=When(last_user=f"kind {number}."),
        )
        for number, text in enumerate(KINDS.values())
    ]
    model = script([*replies, Reply(text="That was all.", when=When(last_user="end"))])
    # the test gives tasks faster than a person may
    gateway = serve(model, SERVER__RATE_LIMIT_BURST="1000")
    page = watch(gateway)
    for first in range(0, len(KINDS), MAX_SHOWN):
        session = gateway.task(f"kind {first}.")["session_id"]
        page.goto(f"{gateway.url}/sessions/{session}")
        for number in range(first + 1, min(first + MAX_SHOWN, len(KINDS))):
            gateway.task(f"kind {number}.", session_id=session)
        gateway.task("end", session_id=session)
        for _ in ("live", "reloaded"):
            expect(page.get_by_text("That was all.")).to_be_visible(timeout=60_000)
            assert page.evaluate(INSPECT) == []
            page.reload()


@pytest.mark.slow
def test_plain_text_of_a_model_stays_plain_text(serve: Serve, script: Any, watch: Watch) -> None:
    def when(results: int) -> When:
        return When(last_user="go", results=results)

    plan = {"goal": ELEMENT, "steps": [ELEMENT], "title": ELEMENT}
    question = {"question": ELEMENT, "options": [ELEMENT, "[a](javascript:window.ran=1)"]}
    model = script(
        [
            Reply(calls=[Call("plan", plan)], thinking=ELEMENT, when=when(0)),
            Reply(calls=[Call("request_user", question)], when=when(1)),
            Reply(
                text=f"{ELEMENT} before the call",
                calls=[Call("shell", {"command": f"printf '%s' '{ELEMENT}' >&2; false"})],
                when=when(2),
            ),
            Reply(
                fault=Fault("status", status=400, error="invalid_request_error", message=ELEMENT),
                when=when(3),
            ),
        ]
    )
    page = watch(gateway := serve(model))
    file = {"name": ELEMENT, "media_type": "text/html", "data": "PGI+"}
    session = gateway.task(f"go {ELEMENT}", attachments=[file])["session_id"]
    gateway.ask("PATCH", f"/api/sessions/{session}", {"title": ELEMENT})
    page.goto(f"{gateway.url}/sessions/{session}")
    thread = page.get_by_test_id("thread")
    expect(bar(page)).to_contain_text(ELEMENT)
    assert page.evaluate(INSPECT) == []
    bar(page).get_by_role("button", name="javascript").click()
    expect(bar(page)).to_contain_text("printf")
    expect(bar(page)).to_contain_text(ELEMENT)
    assert page.evaluate(INSPECT) == []
    bar(page).get_by_role("button", name="Allow once").click()
    status(page, "failed")
    for row in thread.locator("[aria-expanded]").all():
        row.click()
    expect(thread.get_by_text(ELEMENT).first).to_be_visible()
    expect(page.get_by_text(ELEMENT).nth(7)).to_be_attached()
    assert page.evaluate(INSPECT) == []
    accessible(page)
