"""Records as columns."""

from datetime import datetime, timedelta

import pytest

from internal.channels.cli.records import (
    QuestionItem,
    SessionItem,
    StreamBatch,
    StreamRow,
    age,
)
from internal.normal_forms.time_zones import format_minute

TIME = "2026-01-02T03:04:05.678Z"


def question(calls: list[dict[str, str]]) -> QuestionItem:
    return QuestionItem(
        *("question-1", "run-1", "task-1", "session-1", "cli", "approval", "Approve?"),
        *("operators", "open", TIME, TIME, {"calls": calls}),
    )


def test_time_is_shown_to_the_minute() -> None:
    assert format_minute(TIME) == "2026-01-02 03:04"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-5, ("now", 0)),
        (59, ("now", 0)),
        (60, ("minutes", 1)),
        (7_300, ("hours", 2)),
        (200_000, ("days", 2)),
    ],
)
def test_age_has_one_unit(seconds: int, expected: tuple[str, int]) -> None:
    assert age(TIME, datetime.fromisoformat(TIME) + timedelta(seconds=seconds)) == expected


def test_session_without_a_task_has_an_empty_status() -> None:
    session = SessionItem("session-1", "Title", "cli", TIME, None, 0, None, 0)
    assert session.cells == ("session-1", "2026-01-02 03:04", "cli", "", "Title")


def test_lists_tell_what_a_task_lacks_at_its_end() -> None:
    session = SessionItem("session-1", "Title", "cli", TIME, "completed", 1, "max_iterations", 0)
    assert session.cells[3] == "stopped at its step limit"
    ended = session._replace(stop_reason="final_answer")
    assert ended.cells[3] == "completed"
    assert ended._replace(calls_not_run=2).cells[3] == "completed, 2 calls were not run"
    failed = ended._replace(status="failed", stop_reason="error", calls_not_run=2)
    assert failed.cells[3] == "failed"


def test_question_shows_its_calls_or_else_its_title() -> None:
    assert question([{"what": "touch a"}, {"what": "touch b"}]).cells[-1] == "touch a; touch b"
    assert question([]).cells[-1] == "Approve?"


def test_batch_has_the_envelopes_of_its_rows() -> None:
    batch = StreamBatch([StreamRow("a-1", b"{}"), StreamRow("", b"[]")])
    assert batch.envelopes == [b"{}", b"[]"]
    assert batch.is_connected
