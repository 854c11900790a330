"""Choice of a session's current run, and its status line."""

import time
from typing import Any

from internal.channels.cli.render.text import plain_text
from internal.channels.cli.render.theme import UNICODE
from internal.channels.cli.repl.status_line import RunActivity, RunState, render_status
from internal.i18n.catalog import MessageCatalog

ENGLISH = MessageCatalog("repl", "en")


def event(run: str, timestamp: str = "2026-01-02T03:04:05Z") -> dict[str, Any]:
    return {"run_id": run, "task_id": f"task of {run}", "timestamp": timestamp}


def status(run: RunState, plan: Any = None, *, stopping: bool = False, queued: int = 0) -> str:
    return plain_text(render_status(run, plan, UNICODE, ENGLISH, stopping=stopping, queued=queued))


def started(**more: Any) -> RunState:
    return RunState("task", "running", time.time() - 75, **more)


def test_the_running_run_is_current_before_a_queued_one() -> None:
    runs = RunActivity()
    runs.update_status(event("one"), "queued")
    assert runs.current is runs.runs["one"]
    runs.update_status(event("two"), "running")
    assert runs.current is runs.runs["two"]


def test_a_run_that_waits_for_a_person_is_not_current_but_can_be_stopped() -> None:
    runs = RunActivity()
    runs.update_status(event("one"), "waiting")
    assert runs.current is None
    assert runs.stoppable is runs.runs["one"]


def test_a_run_starts_once_and_its_time_counts_from_the_last_resumption() -> None:
    runs = RunActivity()
    assert runs.update_status(event("one"), "running")
    assert not runs.update_status(event("one"), "waiting")
    assert not runs.update_status(event("one", "2026-01-02T03:05:05Z"), "running")
    assert not runs.update_status(event("one", "2026-01-02T03:06:05Z"), "running")
    first = RunActivity()
    first.update_status(event("one"), "running")
    assert runs.runs["one"].since - first.runs["one"].since == 60


def test_a_run_that_has_ended_is_not_expected_again() -> None:
    runs = RunActivity()
    runs.expect("one", "task of one", "queued")
    runs.end(event("one"))
    runs.expect("one", "task of one", "queued")  # the response arrived after the events
    assert runs.runs == {}
    assert not runs.update_status(event("one"), "completed")
    assert runs.runs == {}


def test_the_running_tool_is_shown_with_its_argument_or_progress() -> None:
    run = started(tools={"call": {"tool_name": "shell", "arguments": {"command": "make\nall"}}})
    assert status(run) == "◆ shell make  1m15s"
    run.progress = "50 %"
    assert status(run) == "◆ shell 50 %  1m15s"


def test_thinking_and_the_progress_of_the_plan_are_shown() -> None:
    plan = {"steps": [{"status": each} for each in ("completed", "skipped", "pending")]}
    assert status(started(thinking=True), plan) == "◆ thinking ▣ 2/3  1m15s"
    assert status(started()) == "◆ 1m15s"


def test_tokens_and_queued_messages_are_counted() -> None:
    assert status(started(tokens=1_500), queued=2) == "◆ 1m15s · 1.5k tok · 2 queued"


def test_stopping_replaces_the_activity() -> None:
    assert status(started(thinking=True), stopping=True) == "◆ stopping …  1m15s"


def test_a_queued_run_shows_its_status() -> None:
    assert status(RunState("task", "queued", time.time() + 60)) == "◆ queued  0s"


def test_a_wait_for_the_model_replaces_the_activity() -> None:
    assert status(started(notice="retrying in 8 s", thinking=True)).startswith("◆ retrying in 8 s")
