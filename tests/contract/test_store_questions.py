"""Questions: open until the first answer; plans: one row for each version."""

from collections.abc import Callable
from functools import partial

import pytest

from internal.agent.domain.ids import QuestionId, RunId, SessionId
from internal.agent.domain.plans import Plan, numbered
from internal.agent.domain.questions import Answer, Asking, Decision, Question
from internal.agent.ports.database import Database, Row
from internal.agent.ports.stores import OpenQuestion, Stores
from tests.contract.store_facts import T0, T1, T2, T3

SESSION, RUN = SessionId("session-1"), RunId("run-1")


def a_question(name: str = "q") -> Question:
    asking = Asking("c1", "shell", "rm -r /", "exec", "a rule", "hash")
    return Question(QuestionId(name), "approval", "Run?", options=("yes", "no"), calls=(asking,))


def an_answer(name: str = "q", by: str = "ana", decision: Decision = "approve") -> Answer:
    return Answer(QuestionId(name), decision, by, "web", text="ok", items={"c1": True})


async def ask(
    database: Database, stores: Stores, name: str = "q", asked: str = T0, expires: str = T2
) -> OpenQuestion:
    question = a_question(name)
    await database.write(lambda: stores.questions.ask(question, RUN, SESSION, asked, expires))
    return OpenQuestion(question, RUN, SESSION, "open", expires, None)


async def get(database: Database, stores: Stores, name: str = "q") -> OpenQuestion | None:
    return await database.read(lambda: stores.questions.get(QuestionId(name)))


async def test_a_question_comes_back_as_it_was(database: Database, stores: Stores) -> None:
    assert await get(database, stores) is None
    stored = await ask(database, stores)
    assert await get(database, stores) == stored


@pytest.mark.parametrize(("decision", "status"), [("reject", "answered"), ("expired", "expired")])
async def test_the_first_answer_wins(
    database: Database, stores: Stores, decision: Decision, status: str
) -> None:
    stored = await ask(database, stores)
    first, second = an_answer(decision=decision), an_answer(by="bo")

    assert await database.write(lambda: stores.questions.close(first, T1))
    assert not await database.write(lambda: stores.questions.close(second, T1))

    assert await get(database, stores) == stored._replace(status=status, answer=first)
    unknown = an_answer("unknown")
    assert not await database.write(lambda: stores.questions.close(unknown, T1))


async def test_a_question_asked_again_keeps_its_answer(database: Database, stores: Stores) -> None:
    await ask(database, stores)
    await database.write(lambda: stores.questions.close(an_answer(), T1))
    answered = await get(database, stores)

    await ask(database, stores, expires=T3)

    assert await get(database, stores) == answered


async def test_open_and_expired_questions(database: Database, stores: Stores) -> None:
    late = await ask(database, stores, "a", asked=T1, expires=T1)
    early = await ask(database, stores, "b", asked=T0, expires=T3)
    await ask(database, stores, "c", expires=T0)
    await database.write(lambda: stores.questions.close(an_answer("c"), T0))

    assert await database.read(lambda: stores.questions.open_for(SESSION)) == [early, late]
    assert await database.read(lambda: stores.questions.open_for(SessionId("other"))) == []
    assert await database.read(lambda: stores.questions.expired(T0)) == []
    assert await database.read(lambda: stores.questions.expired(T1)) == [late]
    assert await database.read(lambda: stores.questions.expired(T3)) == [late, early]


async def test_a_run_that_ends_closes_its_questions(database: Database, stores: Stores) -> None:
    await ask(database, stores)
    await database.write(lambda: stores.questions.close_run(RunId("run-2"), T1))
    assert len(await database.read(lambda: stores.questions.open_for(SESSION))) == 1

    await database.write(lambda: stores.questions.close_run(RUN, T1))

    assert await database.read(lambda: stores.questions.open_for(SESSION)) == []
    assert not await database.write(lambda: stores.questions.close(an_answer(), T2))


async def test_plans_are_kept_by_version(
    database: Database, stores: Stores, peek: Callable[[str], list[Row]]
) -> None:
    first, second = (Plan(n, "goal", "complex", numbered(["look"])) for n in (1, 2))
    for plan, now in ((first, T0), (second, T1), (second.marked("1", "completed"), T2)):
        await database.write(partial(stores.questions.add_plan, RUN, SESSION, plan, now))

    rows = peek("select version, updated, plan like '%completed%' from plans order by version")
    assert rows == [(1, T0, 0), (2, T2, 1)]
