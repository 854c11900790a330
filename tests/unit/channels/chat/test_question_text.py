"""Texts about the settlement of a question."""

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
    format_left,
    format_span,
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


@pytest.mark.parametrize(
    ("end", "shown"),
    [
        ("2026-01-31T08:00:10Z", "1 min"),
        ("2026-01-31T09:30:00Z", "90 min"),
        ("2026-01-31T18:00:00+08:00", "2 h"),
        ("2026-02-01T08:00:00Z", "24 h"),
        ("2026-02-03T08:00:00Z", "3 days"),
        ("2026-01-30T08:00:00Z", "1 min"),
        ("", ""),
    ],
)
def test_the_time_left_is_the_same_in_every_zone(end: str, shown: str) -> None:
    assert format_left(end, EN, datetime(2026, 1, 31, 8, tzinfo=UTC)) == shown
    assert format_span("2026-01-31T08:00:00Z", end, EN) == shown
