"""Routes of questions: what waits for a person, and its answer."""

from collections.abc import Iterable
from typing import Any

import msgspec

from internal.agent.app.queries import QuestionView, view_of_question
from internal.agent.app.runs.questions import Actor
from internal.agent.domain.answers import AnswerInput as AnswerOfPerson
from internal.agent.domain.errors import InvalidRequest, NotFound
from internal.agent.domain.ids import QuestionId, SessionId, TaskId
from internal.agent.domain.questions import QuestionRecord, QuestionStatus
from internal.agent.domain.tasks import Task
from internal.channels.web.endpoints import Call
from internal.channels.web.schemas import Given, Id, Limit, Nothing


class QuestionsQuery(Given, frozen=True):
    """Which questions. `cursor` is `next` of the page before."""

    status: QuestionStatus | None = None
    session_id: Id | None = None
    limit: Limit = 50
    cursor: Id | None = None


class GivenAnswer(Given, AnswerOfPerson, frozen=True):
    """An answer; which fields a question takes stands in its `answer_schema`."""


class QuestionsPage(msgspec.Struct, frozen=True):
    """Questions, newest first. `next` is None at the end."""

    questions: list[QuestionView]
    next: str | None


async def list_questions(call: Call[QuestionsQuery, Nothing]) -> QuestionsPage:
    """Return a page of questions, newest first."""
    query, queries = call.query, call.door.gateway.queries
    if query.cursor is not None:
        try:
            await queries.question(QuestionId(query.cursor), call.principal)
        except NotFound as error:
            raise InvalidRequest(f"There is no page {query.cursor[:80]}.") from error
    found = await queries.questions(
        call.principal,
        status=query.status,
        session_id=None if query.session_id is None else SessionId(query.session_id),
        before=query.cursor,
        limit=query.limit + 1,
    )
    page = found[: query.limit]
    after = page[-1].question.id if len(found) > query.limit else None
    tasks = await _tasks(call, page)
    views = [
        view_of_question(one, tasks[one.task_id], _answerer(call))
        for one in page
        if one.task_id in tasks
    ]
    return QuestionsPage(views, after)


async def show_question(call: Call[Nothing, Nothing]) -> QuestionView:
    """Return a question and, when it is closed, what was answered."""
    found = await call.door.gateway.queries.question(_id(call), call.principal)
    return await _view(call, found)


async def answer_question(call: Call[Nothing, GivenAnswer]) -> QuestionView:
    """Answer a question; the first answer counts and the run goes on, all others are told."""
    answered = await call.door.gateway.answer(_id(call), call.body, _answerer(call))
    return await _view(call, answered)


async def _view(call: Call[Any, Any], found: QuestionRecord) -> QuestionView:
    task = await call.door.gateway.queries.task(found.task_id, call.principal)
    return view_of_question(found, task, _answerer(call))


async def _tasks(call: Call[Any, Any], page: Iterable[QuestionRecord]) -> dict[TaskId, Task]:
    """Return the tasks of these questions; one that was deleted meanwhile is left out."""
    tasks: dict[TaskId, Task] = {}
    for task_id in {found.task_id for found in page}:
        try:
            tasks[task_id] = await call.door.gateway.queries.task(task_id, call.principal)
        except NotFound:
            continue
    return tasks


def _answerer(call: Call[Any, Any]) -> Actor:
    return Actor(call.principal, call.channel)


def _id(call: Call[Any, Any]) -> QuestionId:
    return QuestionId(call.path["question_id"])
