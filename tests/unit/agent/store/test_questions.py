"""Questions and plans."""

from collections.abc import Callable
from functools import partial

import pytest

from internal.agent.domain.ids import QuestionId, RunId, SessionId, TaskId
from internal.agent.domain.plans import Plan, number_steps
from internal.agent.domain.questions import (
    Answer,
    ApprovalItem,
    Decision,
    Question,
    QuestionRecord,
    QuestionStatus,
)
from internal.agent.store.database import Database, Read, Row
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, T1, T2, T3

SESSION, RUN = SessionId("session-1"), RunId("run-1")


def a_question(name: str = "q") -> Question:
    asking = ApprovalItem("c1", "shell", "rm -r /", "exec", "a rule", "hash")
    return Question(QuestionId(name), "approval", "Run?", options=("yes", "no"), calls=(asking,))


def an_answer(name: str = "q", by: str = "ana", decision: Decision = "approve") -> Answer:
    return Answer(QuestionId(name), decision, by, "web", text="ok", items={"c1": True})


async def ask(
    database: Database, stores: Stores, name: str = "q", asked: str = T0, expires: str = T2
) -> QuestionRecord:
    record = QuestionRecord(
        *(a_question(name), RUN, TaskId("task-1"), SESSION, "local", "lark:app:oc_1", "operators"),
        asked=asked,
        expires=expires,
    )
    await database.write(lambda: stores.questions.add(record))
    return record


async def get(database: Database, stores: Stores, name: str = "q") -> QuestionRecord | None:
    return await database.read(lambda: stores.questions.get(QuestionId(name)))


async def test_a_stored_question_is_returned_unchanged(database: Database, stores: Stores) -> None:
    assert await get(database, stores) is None
    stored = await ask(database, stores)
    assert await get(database, stores) == stored


@pytest.mark.parametrize(("decision", "status"), [("reject", "answered"), ("expired", "expired")])
async def test_the_first_answer_wins(
    database: Database, stores: Stores, decision: Decision, status: QuestionStatus
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

    assert await database.read(lambda: stores.questions.list_open_in_chat("lark:app:oc_1")) == [
        early,
        late,
    ]
    assert await database.read(lambda: stores.questions.list_open_in_chat("lark:app:oc_2")) == []
    assert await database.read(lambda: stores.questions.get_open_of_run(RUN)) == early
    assert await database.read(lambda: stores.questions.get_open_of_run(RunId("other"))) is None
    assert await database.read(lambda: stores.questions.list_expired(T0)) == []
    assert await database.read(lambda: stores.questions.list_expired(T1)) == [late]
    assert await database.read(lambda: stores.questions.list_expired(T3)) == [late, early]


async def test_pages_of_questions_are_newest_first_and_filtered(
    database: Database, stores: Stores
) -> None:
    first, second = await ask(database, stores, "a", T0), await ask(database, stores, "b", T1)
    await ask(database, stores, "c", T2)
    await database.write(lambda: stores.questions.close(an_answer("c"), T3))

    def page(
        principal: str | None = None,
        session: SessionId | None = None,
        status: QuestionStatus | None = "open",
        before: str | None = None,
        limit: int = 10,
    ) -> Callable[[], Read[list[QuestionRecord]]]:
        return partial(
            stores.questions.list_page, principal, session, status, before=before, limit=limit
        )

    assert await database.read(page()) == [second, first]
    assert await database.read(page(limit=1)) == [second]
    assert await database.read(page(before="b")) == [first]
    assert await database.read(page(principal="local")) == [second, first]
    assert await database.read(page(principal="ana")) == []
    assert await database.read(page(session=SESSION)) == [second, first]
    assert await database.read(page(session=SessionId("other"))) == []
    assert len(await database.read(page(status=None))) == 3


async def test_a_run_that_ends_closes_its_questions(database: Database, stores: Stores) -> None:
    await ask(database, stores)
    await database.write(lambda: stores.questions.close_of_run(RunId("run-2"), T1))
    assert await database.read(lambda: stores.questions.get_open_of_run(RUN)) is not None

    await database.write(lambda: stores.questions.close_of_run(RUN, T1))

    assert await database.read(lambda: stores.questions.get_open_of_run(RUN)) is None
    assert not await database.write(lambda: stores.questions.close(an_answer(), T2))


async def test_plans_are_stored_by_version(
    database: Database, stores: Stores, select: Callable[[str], list[Row]]
) -> None:
    first, second = (Plan(n, "goal", "complex", number_steps(["look"])) for n in (1, 2))
    for plan, now in ((first, T0), (second, T1), (second.marked("1", "completed"), T2)):
        await database.write(partial(stores.questions.save_plan, RUN, SESSION, plan, now=now))

    rows = select("select version, updated, plan like '%completed%' from plans order by version")
    assert rows == [(1, T0, 0), (2, T2, 1)]
