"""Effects of the answer to a question."""

from functools import partial

import pytest

from internal.agent.app.runs.answers import answer_question, apply_answer
from internal.agent.app.runs.creation import new_task_ids
from internal.agent.app.runs.questions import Actor, expired_answer
from internal.agent.domain.answers import AnswerInput
from internal.agent.domain.errors import Conflict, Forbidden, InvalidRequest, NotFound
from internal.agent.domain.ids import QuestionId
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.agent.domain.questions import Question, QuestionRecord
from internal.agent.domain.tasks import Origin, Run
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, T1, T2, a_run, a_session, a_task, add_running_run

CHAT = "lark:app:oc_1"
ASKER = Principal("lark:app:ou_1", "Ann", frozenset({"talk"}))
OPERATOR = Principal("lark:app:ou_2", "Bob", frozenset({"talk", "operate"}))


@pytest.fixture
async def question(database: Database, stores: Stores) -> QuestionRecord:
    """A stored question of a waiting run."""
    return await ask(database, stores, Question(QuestionId("question-1"), "clarify", "Which?"))


async def ask(
    database: Database, stores: Stores, question: Question, used_seconds: float = 0.0
) -> QuestionRecord:
    """Store a question of a waiting run."""
    origin = Origin("lark", ASKER.id, "app", "oc_1", "om_1")
    await database.write(lambda: stores.sessions.add(a_session()))
    await database.write(lambda: stores.tasks.add(a_task(origin=origin), None))
    run = await add_running_run(database, stores, a_run())
    asked = QuestionRecord(
        question, run.id, run.task_id, run.session_id, ASKER.id, CHAT, "operators", T0, T2
    )
    await database.write(lambda: stores.events.reserve_seqs(run.id, run.fence, 0, used_seconds))
    await database.write(lambda: stores.runs.pause(run.id, run.fence))
    await database.write(lambda: stores.questions.add(asked))
    return asked


async def answer(
    database: Database, stores: Stores, given: AnswerInput, principal: Principal, now: str = T1
) -> QuestionRecord:
    actor = Actor(principal, "lark", CHAT)
    work = partial(
        answer_question,
        stores,
        QuestionId("question-1"),
        given,
        actor=actor,
        message=None,
        ids=new_task_ids(),
        now=now,
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
    expire = partial(
        apply_answer, stores, question, expired_answer(question, T2), ids=new_task_ids(), now=T2
    )
    expired, events = await database.write(expire)
    assert expired.status == "expired"
    assert [event.event for event in events] == [
        "workflow.question.answered",
        "workflow.lifecycle.updated",
    ]
    with pytest.raises(Conflict, match="expired"):
        await database.write(expire)


async def stored_run(database: Database, stores: Stores, question: QuestionRecord) -> Run:
    run = await database.read(partial(stores.runs.get, question.run_id))
    assert run is not None
    return run


def recovery() -> Question:
    return Question(QuestionId("question-1"), "recovery", "The process died 5 times.")


async def test_another_try_has_its_time_again_and_the_advice_as_steering(
    database: Database, stores: Stores
) -> None:
    question = await ask(database, stores, recovery(), used_seconds=60.0)
    await answer(database, stores, AnswerInput("approve", "skip it"), OPERATOR)
    run = await stored_run(database, stores, question)
    assert (run.status, run.used_seconds) == ("queued", 0.0)
    (advice,) = await database.read(partial(stores.inbox.list_undelivered, question.run_id))
    assert (advice.text, advice.principal) == ("skip it", OPERATOR.id)


@pytest.mark.parametrize(
    ("given", "now", "error"),
    [
        (AnswerInput("reject", "no use"), T1, "Given up by Bob: no use."),
        (None, T2, "Nobody decided in time."),
    ],
)
async def test_a_run_that_is_given_up_ends(
    database: Database, stores: Stores, given: AnswerInput | None, now: str, error: str
) -> None:
    question = await ask(database, stores, recovery())
    if given is not None:
        await answer(database, stores, given, OPERATOR, now)
    else:
        expired = expired_answer(question, now)
        apply = partial(apply_answer, stores, question, expired, ids=new_task_ids(), now=now)
        await database.write(apply)
    run = await stored_run(database, stores, question)
    assert (run.status, run.stop_reason) == ("failed", "interrupted")
    assert run.error == f"The process died 5 times. {error}"
