"""The totals of a one-shot command, from the ends of its runs."""

from typing import Any

from internal.channels.cli.headless.run_totals import RunTotals


def end(run_id: str, second: int, tokens: int, **more: Any) -> dict[str, Any]:
    timestamp = f"2026-01-31T08:00:{second:02}.000Z"
    payload = {"usage": {"input_tokens": tokens}, "duration_ms": 2_000, **more}
    return {"run_id": run_id, "timestamp": timestamp, "payload": payload}


def test_nothing_is_known_before_the_first_end() -> None:
    assert RunTotals("a").fields() == {"usage": None, "cost": None, "duration_ms": None}


def test_the_end_of_a_subtask_brings_the_new_total_of_its_run() -> None:
    totals = RunTotals("a")
    totals.add_end(end("a", 10, 5, cost=1.0))
    above = [{"run_id": "a", "usage": {"input_tokens": 8}, "cost": 1.5}]
    totals.add_end(end("below", 20, 3, cost=0.5, above=above))
    expected = {"usage": {"input_tokens": 8}, "cost": 1.5, "duration_ms": 2_000}
    assert totals.fields() == expected


def test_a_report_is_added_to_what_it_reports() -> None:
    totals = RunTotals("a")
    totals.add_end(end("a", 10, 5))
    totals.add_run("report")
    totals.add_end(end("report", 30, 2))
    assert totals.fields() == {"usage": {"input_tokens": 7}, "cost": None, "duration_ms": 22_000}
