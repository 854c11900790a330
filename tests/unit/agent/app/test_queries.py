"""Queries: everybody reads their own data, the owner reads everything."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec
import pytest

from internal.agent.app.gateway import Gateway
from internal.agent.app.queries import MAX_TASK_CHARACTERS, Queries, question_view
from internal.agent.app.runs.creation import Submission, Submitted
from internal.agent.app.runs.questions import Actor
from internal.agent.domain.artifacts import ArtifactFilter
from internal.agent.domain.errors import Forbidden, NotFound
from internal.agent.domain.ids import QuestionId, SessionId
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.agent.domain.questions import Answer, Question, QuestionRecord
from internal.agent.domain.tasks import Origin, RunSpec
from internal.agent.store.database import Database, Read
from internal.agent.store.stores import Stores
from tests.support.database_wrapper import DatabaseWrapper
from tests.support.store_records import T0, T1, a_task, an_artifact

T = TypeVar("T")
TASK = Submission("count", RunSpec(), "web")
ANN, BOB = (Principal(f"lark:app:{name}", name, frozenset({"talk"})) for name in ("ann", "bob"))


async def test_data_of_another_person_is_not_found(gateway: Gateway) -> None:
    made = await gateway.submit(TASK, ANN)
    queries = gateway.queries
    for call in (
        partial(queries.task, made.task_id),
        partial(queries.latest_run, made.task_id),
        partial(queries.run_with_task, made.run_id),
        partial(queries.session, made.session_id),
        partial(queries.messages, made.session_id),
        partial(queries.events, made.session_id),
        partial(queries.usage, by="day", session_id=made.session_id),
    ):
        await call(principal=ANN)
        await call(principal=LOCAL_OWNER)
        with pytest.raises(NotFound):
            await call(principal=BOB)


async def test_artifacts_of_another_person_are_not_found(
    gateway: Gateway, database: Database, stores: Stores
) -> None:
    made = await gateway.submit(TASK, ANN)
    task = a_task(origin=Origin("web", ANN.id))
    chart = an_artifact(1, session_id=made.session_id, task_id=made.task_id)
    await database.write(partial(stores.artifacts.add, chart, task))
    queries, every = gateway.queries, ArtifactFilter()
    for person in (ANN, LOCAL_OWNER):
        assert await queries.artifact(chart.id, person) == chart
        assert await queries.artifacts(person, every) == [chart]
        assert (await queries.session_artifacts(made.session_id, person))[1] == [chart]
    assert await queries.artifacts(BOB, every) == []
    assert await queries.artifacts(BOB, ArtifactFilter(session_id=made.session_id)) == []
    for refused in (
        queries.artifact(chart.id, BOB),
        queries.artifacts(BOB, every, before=chart.id),
        queries.session_artifacts(made.session_id, BOB),
        gateway.change_artifact(chart.id, BOB, favourite=True),
    ):
        with pytest.raises(NotFound):
            await refused
    changed = await gateway.change_artifact(chart.id, ANN, favourite=True)
    assert changed == msgspec.structs.replace(chart, favourite=True)
    assert await queries.artifacts(ANN, ArtifactFilter(favourite=True)) == [changed]


async def test_lists_contain_the_principals_own_data(gateway: Gateway) -> None:
    first, second = [await gateway.submit(TASK, person) for person in (ANN, BOB)]
    queries = gateway.queries
    assert [task.id for task in await queries.tasks(ANN)] == [first.task_id]
    assert [task.id for task in await queries.tasks(LOCAL_OWNER)] == [
        second.task_id,
        first.task_id,
    ]
    assert await queries.tasks(ANN, status="running") == []
    assert [each.session.id for each in (await queries.sessions(BOB)).sessions] == [
        second.session_id
    ]
    newest = await queries.newest_session(ANN, "web")
    assert newest is not None
    assert newest.id == first.session_id
    assert await queries.newest_session(ANN, "cli") is None
    assert (await queries.bounds()).head == 4


async def test_a_page_starts_after_a_known_item_of_the_principal(gateway: Gateway) -> None:
    made = await gateway.submit(TASK, ANN)
    queries = gateway.queries
    assert await queries.tasks(ANN, before=made.task_id) == []
    assert (await queries.sessions(ANN, before=made.session_id)).sessions == []
    for call, name in (
        (queries.tasks, made.task_id),
        (queries.sessions, made.session_id),
        (queries.questions, "question-1"),
    ):
        with pytest.raises(NotFound, match="cursor"):
            await call(BOB, before=name)


class InterruptedDatabase(DatabaseWrapper):
    """A database in which another process deletes everything between two reads."""

    def __init__(self, database: Database, session_id: SessionId) -> None:
        super().__init__(database)
        self._session_id = session_id

    async def read(self, work: Callable[[], Read[T]], /, *, is_short: bool = False) -> T:
        result = await self._database.read(work, is_short=is_short)
        await self._database.write(partial(Stores().sessions.delete, self._session_id))
        return result


async def test_each_view_is_one_snapshot(
    gateway: Gateway, database: Database, stores: Stores
) -> None:
    """A second read of the same view would find nothing."""

    async def interrupted() -> tuple[Queries, Submitted]:
        made = await gateway.submit(TASK, ANN)
        record = QuestionRecord(
            Question(QuestionId(f"question-of-{made.task_id}"), "clarify", "Which?"), made.run_id,
            made.task_id, made.session_id, ANN.id, "", "operators", T0, T1,
        )  # fmt: skip
        await database.write(partial(stores.questions.add, record))
        await gateway.stop(made.task_id, ANN, "web")
        return Queries(InterruptedDatabase(database, made.session_id), stores), made

    queries, made = await interrupted()
    task, run = await queries.task_with_run(made.task_id, ANN)
    assert (task.status, run.status) == ("cancelled", "cancelled")
    with pytest.raises(NotFound):
        await queries.task(made.task_id, ANN)

    queries, made = await interrupted()
    page = await queries.events(made.session_id, ANN)
    assert page.events[-1].event == "workflow.result.cancelled"
    assert page.bounds.head == page.events[-1].position
    queries, made = await interrupted()
    await queries.messages(made.session_id, ANN)
    queries, made = await interrupted()
    assert await queries.usage(ANN, "day", session_id=made.session_id) == []
    queries, made = await interrupted()
    [(question, task)] = await queries.questions(ANN, status=None)
    assert (question.task_id, task.id) == (made.task_id, made.task_id)
    queries, made = await interrupted()
    name = QuestionId(f"question-of-{made.task_id}")
    question, task = await queries.question_with_task(name, ANN)
    assert (question.task_id, task.id) == (made.task_id, made.task_id)
    queries, made = await interrupted()
    await queries.check_sessions([made.session_id, made.session_id], ANN)


async def test_only_the_owner_reads_rules_roles_and_the_audit_log(gateway: Gateway) -> None:
    queries = gateway.queries
    for call in (queries.rules, queries.people, queries.audit_entries):
        assert await call(LOCAL_OWNER) == []
        with pytest.raises(Forbidden, match="Only the owner"):
            await call(ANN)


async def test_a_question_is_visible_to_its_submitter_and_in_its_chat(
    gateway: Gateway, database: Database, stores: Stores
) -> None:
    made = await gateway.submit(TASK, ANN)
    record = QuestionRecord(
        Question(QuestionId("question-1"), "clarify", "Which?"), made.run_id, made.task_id,
        made.session_id, ANN.id, "lark:app:oc_1", "operators", T0, T1,
    )  # fmt: skip
    await database.write(partial(stores.questions.add, record))
    queries, name = gateway.queries, record.question.id
    assert await queries.question(name, ANN) == record
    assert await queries.question(name, BOB, "lark:app:oc_1") == record
    with pytest.raises(NotFound, match="no question"):
        await queries.question(name, BOB)
    task = await queries.task(made.task_id, ANN)
    assert await queries.questions(ANN) == [(record, task)]
    assert await queries.question_with_task(name, ANN) == (record, task)
    assert await queries.questions(BOB) == []
    assert await queries.open_questions("lark:app:oc_1") == [record]


def test_the_view_of_a_question_depends_on_the_actor() -> None:
    task = a_task(instruction="x" * 500)
    record = QuestionRecord(
        Question(QuestionId("question-1"), "clarify", "Which?", options=("red",)),
        run_id=a_task().id, task_id=task.id, session_id=task.session_id,  # type: ignore[arg-type] # any id
        principal="local", chat="", audience="operators", asked=T0, expires=T1,
    )  # fmt: skip
    view = question_view(record, task, Actor(LOCAL_OWNER, "web"))
    assert (view.may_answer, view.answer) == (True, None)
    assert len(view.task) == MAX_TASK_CHARACTERS
    assert not question_view(record, task, Actor(ANN, "web")).may_answer

    answer = Answer(QuestionId("question-1"), "text", "local", "web", "red", name="Ann", at=T1)
    answered = question_view(
        record._replace(status="answered", answer=answer), task, Actor(LOCAL_OWNER, "web")
    )
    assert not answered.may_answer
    assert answered.answer is not None
    assert (answered.answer.text, answered.answer.name) == ("red", "Ann")
