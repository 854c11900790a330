"""Who may view and answer a question, and what closes it."""

from functools import partial

import pytest

from internal.agent.app.runs.questions import (
    Actor,
    answer_question,
    apply_answer,
    can_answer,
    can_view,
    closed_message,
    expired_answer,
)
from internal.agent.domain.answers import AnswerInput
from internal.agent.domain.errors import Conflict, Forbidden, InvalidRequest, NotFound
from internal.agent.domain.ids import QuestionId
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.agent.domain.questions import Answer, Audience, Question, QuestionRecord
from internal.agent.domain.tasks import Origin
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, T1, T2, a_run, a_session, a_task, add_running_run

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


def test_without_a_chat_an_operator_answers_only_own_questions() -> None:
    operator = Actor(OPERATOR, "web")
    assert not can_answer(record(chat=""), operator)
    assert can_answer(record(chat="")._replace(principal=OPERATOR.id), operator)


def test_a_closed_question_says_why() -> None:
    answer = Answer(
        QuestionId("question-1"), "reject", "local", "web", name="Ann", at=T0, text="later"
    )
    assert closed_message(record()._replace(status="answered", answer=answer)) == (
        "Already answered by Ann via web, 2026-01-31 08:00 UTC: reject (later)."
    )
    expired = record()._replace(status="expired", answer=expired_answer(record(), T1))
    assert closed_message(expired) == "The question has expired; nothing was run."
    assert closed_message(record()._replace(status="closed")) == "The question is closed."


@pytest.fixture
async def question(database: Database, stores: Stores) -> QuestionRecord:
    """A stored question of a waiting run."""
    asked, origin = record(), Origin("lark", ASKER.id, "app", "oc_1", "om_1")
    await database.write(lambda: stores.sessions.add(a_session()))
    await database.write(lambda: stores.tasks.add(a_task(origin=origin), None))
    run = await add_running_run(database, stores, a_run())
    await database.write(lambda: stores.runs.pause(run.id, run.fence))
    await database.write(lambda: stores.questions.add(asked))
    return asked


async def answer(
    database: Database, stores: Stores, given: AnswerInput, principal: Principal, now: str = T1
) -> QuestionRecord:
    actor = Actor(principal, "lark", CHAT)
    work = partial(
        answer_question, stores, QuestionId("question-1"), given, actor=actor, message=None, now=now
    )
    answered, _ = await database.write(work)
    return answered


async def test_the_first_answer_counts_and_queues_the_run(
    database: Database, stores: Stores, question: QuestionRecord
) -> None:
    answered = await answer(database, stores, AnswerInput("text", "green"), OPERATOR)
    assert answered.status == "answered"
    assert answered.answer is not None
    assert (answered.answer.by, answered.answer.name, answered.answer.at) == (
        OPERATOR.id, "Bob", T1,
    )  # fmt: skip
    run = await database.read(partial(stores.runs.get, question.run_id))
    assert run is not None
    assert run.status == "queued"
    (notice,) = await database.read(
        partial(stores.outbox.list_due, "lark", "app", now="9999", limit=10)
    )
    assert notice.outgoing.key == "question-1:closed"
    with pytest.raises(Conflict, match="Already answered by Bob via lark"):
        await answer(database, stores, AnswerInput("text", "red"), LOCAL_OWNER)


@pytest.mark.parametrize(
    ("given", "principal", "now", "error"),
    [
        (AnswerInput("text", "red"), ASKER, T1, Forbidden),
        (AnswerInput("text"), OPERATOR, T1, InvalidRequest),
        (AnswerInput("text", "red", rules=("shell(ls)",)), OPERATOR, T1, InvalidRequest),
        (AnswerInput("text", "red"), OPERATOR, T2, Conflict),
    ],
)
async def test_a_rejected_answer_leaves_the_question_open(
    database: Database,
    stores: Stores,
    question: QuestionRecord,
    given: AnswerInput,
    principal: Principal,
    now: str,
    error: type[Exception],
) -> None:
    with pytest.raises(error):
        await answer(database, stores, given, principal, now)
    stored = await database.read(partial(stores.questions.get, question.question.id))
    assert stored == question


async def test_an_unknown_question_is_not_found(database: Database, stores: Stores) -> None:
    with pytest.raises(NotFound, match="no question"):
        await answer(database, stores, AnswerInput("text", "red"), LOCAL_OWNER)


async def test_an_expired_question_is_closed_once(
    database: Database, stores: Stores, question: QuestionRecord
) -> None:
    expire = partial(apply_answer, stores, question, expired_answer(question, T2), now=T2)
    expired, events = await database.write(expire)
    assert expired.status == "expired"
    assert [event.event for event in events] == [
        "workflow.question.answered",
        "workflow.lifecycle.updated",
    ]
    with pytest.raises(Conflict, match="expired"):
        await database.write(expire)
