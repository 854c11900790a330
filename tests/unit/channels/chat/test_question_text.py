"""How the settlement of a question is described."""

import time
from collections.abc import Callable, Generator
from datetime import UTC, datetime

import pytest

from internal.agent.domain.ids import QuestionId, RunId, SessionId, TaskId
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.questions import Answer, Question, QuestionRecord, QuestionStatus
from internal.channels.chat.question_text import (
    answerer_name,
    channel_name,
    describe_late,
    describe_outcome,
    format_time,
    with_asker,
)
from internal.i18n.chat import ChatPhrases

EN = ChatPhrases("en")
ID = QuestionId("question-1")
ANSWER = Answer(
    ID, "text", "lark:a:ou_2", "lark", text="blue", name="Mei", at="2026-01-31T08:00:00Z"
)


def record(status: QuestionStatus, answer: Answer | None = None) -> QuestionRecord:
    ids = (RunId("run-1"), TaskId("task-1"), SessionId("session-1"))
    question = Question(ID, "clarify", "Which colour?")
    return QuestionRecord(
        question, *ids, "p", "lark:a:oc_1", "asker", "", "", status=status, answer=answer
    )


@pytest.mark.parametrize(
    ("status", "answer", "outcome", "late"),
    [
        ("answered", ANSWER, "asked_answered", None),
        ("expired", None, "asked_expired", "click_expired"),
        ("closed", None, "asked_closed", "click_closed"),
    ],
)
def test_each_status_has_an_outcome_and_a_response_to_late_answers(
    status: QuestionStatus, answer: Answer | None, outcome: str, late: str | None
) -> None:
    settled = record(status, answer)
    assert describe_outcome(settled, EN).text == EN(outcome)
    expected = "Already answered by Mei in Lark: Answered." if late is None else EN(late)
    assert describe_late(settled, "somebody", EN) == expected


def test_the_answerer_and_the_channel_are_named() -> None:
    assert answerer_name(ANSWER, EN) == "Mei"
    assert channel_name(ANSWER, EN) == EN("asked_via_lark")
    local = Answer(ID, "text", LOCAL_OWNER.id, "echo")
    assert answerer_name(local, EN) == EN("asked_owner")
    assert channel_name(local, EN) == "echo"


def test_an_invalid_time_is_empty() -> None:
    assert format_time("") == ""


@pytest.mark.parametrize(
    ("zone", "instant", "shown"),
    [
        ("Asia/Shanghai", "2026-01-31T08:05:00Z", "16:05"),
        ("Asia/Shanghai", "2026-01-31T16:05:00Z", "2026-02-01 00:05"),
        ("UTC", "2026-01-31T08:05:00Z", "08:05 UTC"),
        ("UTC", "2026-02-01T00:05:00Z", "2026-02-01 00:05 UTC"),
        ("America/New_York", "2026-01-31T21:05:00+08:00", "08:05"),
    ],
)
def test_times_are_local_and_have_a_date_unless_it_is_today(
    zone: str, instant: str, shown: str, local_zone: Callable[[str], None]
) -> None:
    local_zone(zone)
    assert format_time(instant, datetime(2026, 1, 31, 12, tzinfo=UTC)) == shown


@pytest.fixture
def local_zone(monkeypatch: pytest.MonkeyPatch) -> Generator[Callable[[str], None]]:
    def set_zone(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield set_zone
    monkeypatch.undo()
    time.tzset()


def test_the_subtask_that_asks_is_named_in_both_languages() -> None:
    asks = Question(ID, "clarify", "Which?", asked_by="task 2 · analyst\u202e")
    assert with_asker("Which?", asks, EN) == r"task 2 · analyst\u202e asks: Which?"
    assert with_asker("Which?", asks, ChatPhrases("zh")).startswith("任务 2 · analyst")
    assert with_asker("Which?", Question(ID, "clarify", "Which?"), EN) == "Which?"
