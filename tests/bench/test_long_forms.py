"""Long sessions that really took place: a hundred tasks, and eight subtasks of sixty steps.

Each is opened, scrolled through and read again on the page, in the terminal and over HTTP.
"""

import json
import re
import shutil
import time
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from internal.channels.cli.render.theme import UNICODE
from internal.channels.cli.repl.view import TranscriptView
from internal.i18n.catalog import MessageCatalog
from tests.bench.processes import Server, environment, gateway, with_model
from tests.bench.table import Row, Table, most
from tests.browser.gateway import Model, call
from tests.support.scripted_model import Call, Reply, When

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]

TASKS, SUBTASKS, STEPS = 100, 8, 60
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SHOWN = "performance.getEntriesByName('larkspur.shown').at(-1)?.startTime"
HEAP_MB = "performance.memory.usedJSHeapSize / 1e6"
ELEMENTS = "document.getElementsByTagName('*').length"
MAX_ELEMENTS = 3_000
MAX_HEAP_MB = 150
MAX_SCROLLS = 200
TERMINAL = {"workflow.result.final", "workflow.result.cancelled"}

LOOK = Call("list_dir", {})
REPLIES = [
    Reply(
        calls=[Call("subagent", {"tasks": [{"instruction": f"dig {n}"} for n in range(SUBTASKS)]})],
        when=When(last_user="start", results=0),
    ),
    Reply("all have dug", when=When(last_user="start", results=1)),
    Reply("dug", when=When(last_user="dig", results=STEPS)),
    # a model that repeats one call is stopped
    *(
        Reply(
            calls=[Call("search_files", {"pattern": f"word {n}"})],
            when=When(last_user="dig", results=n),
        )
        for n in range(STEPS)
    ),
    Reply(calls=[LOOK], when=When(last_user="question", results=0)),
    Reply("an answer", when=When(last_user="question", results=1)),
]


def asked(server: Server, method: str, path: str, body: Any = None) -> Any:
    return call(f"http://127.0.0.1:{server.port}", method, path, body, server.token)


def take(server: Server, text: str, session: str | None = None) -> str:
    """Give a task, wait until it is completed, and return its session."""
    given = {"task": text, "options": {"permission_mode": "all", "max_iterations": STEPS + 10}}
    if session is not None:
        given["session_id"] = session
    made = asked(server, "POST", "/api/tasks?wait=300", given)
    assert made["status"] == "completed", made
    return str(made["session_id"])


def events(server: Server, session: str) -> list[dict[str, Any]]:
    """Return all rows of a session, by pages."""
    rows: list[dict[str, Any]] = []
    after = ""
    while True:
        page = asked(server, "GET", f"/api/sessions/{session}/events?limit=500{after}")
        rows += page["events"]
        if page["next"] is None:
            return rows
        after = f"&after={page['next']}"


def is_whole(rows: list[dict[str, Any]]) -> bool:
    """Return whether positions rise, each run has its events 1, 2, 3 … and its end is last."""
    positions = [int(row["id"].rpartition("-")[2]) for row in rows]
    seqs: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        seqs.setdefault(row["event"]["run_id"], []).append(row["event"])
    counted = all(
        [event["seq"] for event in run] == [*range(1, len(run) + 1)] for run in seqs.values()
    )
    ended = all(
        [event["event"] in TERMINAL for event in run].index(True) == len(run) - 1
        for run in seqs.values()
    )
    return counted and ended and positions == sorted(set(positions))


def scroll_to_start(page: Page, text: str) -> None:
    """Scroll up until the first message is on the screen; the list loads as it goes."""
    thread = page.get_by_test_id("thread")
    first = thread.get_by_text(text, exact=True).first
    for _ in range(MAX_SCROLLS):
        if first.count() and first.is_visible():
            return
        thread.hover()
        page.mouse.wheel(0, -3_000)
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => done()))")
    raise AssertionError("the start was not reached")


def on_the_page(server: Server, session: str, *, first: str, last: str) -> dict[str, float]:
    """Open, scroll and reload a session; return milliseconds, elements and megabytes."""
    url, found = f"http://127.0.0.1:{server.port}", {}
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium")
        flags = [*FLAGS, "--enable-precise-memory-info"]
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        page = browser.new_page()
        page.goto(str(call(url, "POST", "/api/links", {}, server.token)["url"]))
        page.locator("#message").wait_for()
        page.goto(f"{url}/sessions/{session}")
        end = page.get_by_test_id("thread").get_by_text(last, exact=True).last
        expect(end).to_be_visible()
        found["opened"] = float(page.evaluate(SHOWN))
        begun = time.monotonic()
        scroll_to_start(page, first)
        found["scrolled"] = (time.monotonic() - begun) * 1_000
        found["elements"] = float(page.evaluate(ELEMENTS))
        found["heap"] = float(page.evaluate(HEAP_MB))
        page.reload()
        expect(end).to_be_visible()
        found["reloaded"] = float(page.evaluate(SHOWN))
        browser.close()
    assert found["elements"] < MAX_ELEMENTS
    assert found["heap"] < MAX_HEAP_MB
    return found


def in_the_terminal(rows: list[dict[str, Any]]) -> tuple[float, float, list[str]]:
    """Return the milliseconds and megabytes that the terminal takes, and the printed rows."""
    encoded = [json.dumps(row["event"]).encode() for row in rows]
    view = TranscriptView(MessageCatalog("repl", "en"), UNICODE)
    printed: list[str] = []
    tracemalloc.start()
    begun = time.process_time()
    for each in encoded:
        view.add_event(each)
        rows_now, _ = view.take_rows(100)
        printed += ["".join(text for _, text in row) for row in rows_now]
    took = (time.process_time() - begun) * 1_000
    kept = tracemalloc.get_traced_memory()[0] - sum(map(len, printed))
    tracemalloc.stop()
    return took, kept / 1e6, printed


@pytest.fixture
def server(tmp_path: Path) -> Any:
    environ = environment(tmp_path / "model")
    with Model(REPLIES, tmp_path, environ) as model:
        settings = {**with_model(model.url), "LARKSPUR_AGENT__GATES": "off"}
        with gateway(tmp_path / "home", **settings) as started:
            yield started


def report(table: Table, name: str, shown: dict[str, float], terminal: float) -> None:
    table.add(
        Row(f"page, {name}, opened", "ms", [shown["opened"]], goal=most(1_000, "ours")),
        Row(f"page, {name}, scrolled to its start", "ms", [shown["scrolled"]], steady=False),
        Row(f"page, {name}, reloaded", "ms", [shown["reloaded"]], goal=most(1_000, "ours")),
        Row(f"page, {name}, elements at its start", "", [shown["elements"]]),
        Row(f"page, {name}, heap", "MB", [shown["heap"]]),
        Row(f"terminal, {name}, all events", "ms", [terminal]),
    )


def test_a_session_of_a_hundred_tasks(server: Server, table: Table) -> None:
    session = take(server, "question 1")
    for number in range(2, TASKS + 1):
        take(server, f"question {number}", session)
    begun = time.monotonic()
    rows = events(server, session)
    read = (time.monotonic() - begun) * 1_000
    assert is_whole(rows)
    assert rows == events(server, session), "read again"
    assert Counter(row["event"]["event"] for row in rows)["workflow.result.final"] == TASKS
    took, kept, printed = in_the_terminal(rows)
    inputs = re.findall(r"question (\d+)", "\n".join(printed))
    assert inputs == [str(number) for number in range(1, TASKS + 1)]
    assert kept < 20
    shown = on_the_page(server, session, first="question 1", last="an answer")
    report(table, f"{TASKS} tasks", shown, took)
    table.add(Row(f"HTTP, {TASKS} tasks, {len(rows):,} events in pages", "ms", [read]))


def test_a_session_with_eight_subtasks_of_sixty_steps(server: Server, table: Table) -> None:
    session = take(server, "start")
    begun = time.monotonic()
    rows = events(server, session)
    read = (time.monotonic() - begun) * 1_000
    assert is_whole(rows)
    assert rows == events(server, session), "read again"
    names = Counter(row["event"]["event"] for row in rows if row["event"]["is_subtask"])
    assert names["workflow.tool.completed"] == SUBTASKS * STEPS
    took, kept, printed = in_the_terminal(rows)
    ends = [row for row in printed if row.lstrip().startswith(UNICODE.subagent)]
    assert len(ends) == SUBTASKS
    assert kept < 20
    shown = on_the_page(server, session, first="start", last="all have dug")
    name = f"{SUBTASKS} subtasks of {STEPS} steps"
    report(table, name, shown, took)
    table.add(Row(f"HTTP, {name}, {len(rows):,} events in pages", "ms", [read]))
