"""Rights to view and answer a question, and reasons for its closure."""

import pytest

from internal.agent.app.runs.questions import (
    Actor,
    can_answer,
    can_view,
    closed_error,
    expired_answer,
)
from internal.agent.domain.ids import QuestionId
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.agent.domain.questions import Answer, Audience, Question, QuestionRecord
from tests.support.store_records import T0, T1, T2, a_run

CHAT = "lark:app:oc_1"
ASKER = Principal("lark:app:ou_1", "Ann", frozenset({"talk"}))
OPERATOR = Principal("lark:app:ou_2", "Bob", frozenset({"talk", "operate"}))
STRANGER = Principal("lark:app:ou_3", "Cy", frozenset({"talk"}))


def record(audience: Audience = "operators", chat: str = CHAT) -> QuestionRecord:
    run = a_run()
    question = Question(QuestionId("question-1"), "clarify", "Which?", options=("red", "green"))
    return QuestionRecord(
        question, run.id, run.task_id, run.session_id, ASKER.id, chat, audience, T0, T2
    )


@pytest.mark.parametrize(
    ("principal", "chat", "views", "answers", "answers_as_asker"),
    [
        (LOCAL_OWNER, "", True, True, True),
        (ASKER, "", True, False, True),
        (ASKER, CHAT, True, False, True),
        (OPERATOR, CHAT, True, True, True),
        (OPERATOR, "lark:app:oc_2", False, False, False),
        (STRANGER, CHAT, True, False, False),
        (STRANGER, "", False, False, False),
    ],
)
def test_rights_to_view_and_to_answer(
    principal: Principal, chat: str, *, views: bool, answers: bool, answers_as_asker: bool
) -> None:
    actor = Actor(principal, "lark", chat)
    assert can_view(record(), actor) == views
    assert can_answer(record(), actor) == answers
    assert can_answer(record("asker"), actor) == answers_as_asker
    assert can_answer(record("owner"), actor) == (principal is LOCAL_OWNER)


def test_without_a_chat_an_operator_answers_only_own_questions() -> None:
    operator = Actor(OPERATOR, "web")
    assert not can_answer(record(chat=""), operator)
    assert can_answer(record(chat="")._replace(principal=OPERATOR.id), operator)


def test_a_closed_question_says_why() -> None:
    answer = Answer(
        QuestionId("question-1"), "reject", "local", "web", name="Ann", at=T0, text="later"
    )
    assert str(closed_error(record()._replace(status="answered", answer=answer))) == (
        "Already answered by Ann via web, 2026-01-31 08:00 UTC: reject (later)."
    )
    expired = record()._replace(status="expired", answer=expired_answer(record(), T1))
    assert str(closed_error(expired)) == "The question has expired; nothing was run."
    assert str(closed_error(record()._replace(status="closed"))) == "The question is closed."
