"""Routes for questions and their answers."""

from collections.abc import Iterable
from typing import Any

import msgspec

from internal.agent.app.queries import QuestionView, question_view
from internal.agent.app.runs.questions import Actor
from internal.agent.domain.answers import AnswerInput as AnswerOfPerson
from internal.agent.domain.errors import InvalidRequest, NotFound
from internal.agent.domain.ids import QuestionId, SessionId, TaskId
from internal.agent.domain.questions import QuestionRecord, QuestionStatus
from internal.agent.domain.tasks import Task
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.schemas import EmptyRequest, Id, Limit, RequestModel


class QuestionsQuery(RequestModel, frozen=True):
    """Filters and page of a list of questions. `cursor` is `next` of the previous page."""

    status: QuestionStatus | None = None
    session_id: Id | None = None
    limit: Limit = 50
    cursor: Id | None = None


class AnswerRequest(RequestModel, AnswerOfPerson, frozen=True):
    """An answer. The `answer_schema` of the question lists the fields it accepts."""


class QuestionsPage(msgspec.Struct, frozen=True):
    """Questions, newest first. `next` is null on the last page."""

    questions: list[QuestionView]
    next: str | None


async def list_questions(request: ApiRequest[QuestionsQuery, EmptyRequest]) -> QuestionsPage:
    """List questions, newest first."""
    query, queries = request.query, request.services.gateway.queries
    if query.cursor is not None:
        try:
            await queries.question(QuestionId(query.cursor), request.principal)
        except NotFound as error:
            raise InvalidRequest(f"The cursor {query.cursor[:80]} is invalid.") from error
    found = await queries.questions(
        request.principal,
        status=query.status,
        session_id=None if query.session_id is None else SessionId(query.session_id),
        before=query.cursor,
        limit=query.limit + 1,
    )
    page = found[: query.limit]
    after = page[-1].question.id if len(found) > query.limit else None
    tasks = await _tasks(request, page)
    views = [
        question_view(one, tasks[one.task_id], _answerer(request))
        for one in page
        if one.task_id in tasks
    ]
    return QuestionsPage(views, after)


async def show_question(request: ApiRequest[EmptyRequest, EmptyRequest]) -> QuestionView:
    """Return a question and, once it is closed, its answer."""
    found = await request.services.gateway.queries.question(_id(request), request.principal)
    return await _view(request, found)


async def answer_question(request: ApiRequest[EmptyRequest, AnswerRequest]) -> QuestionView:
    """Answer a question and resume its run. Later answers are rejected with the first one."""
    answered = await request.services.gateway.answer(_id(request), request.body, _answerer(request))
    return await _view(request, answered)


async def _view(request: ApiRequest[Any, Any], found: QuestionRecord) -> QuestionView:
    task = await request.services.gateway.queries.task(found.task_id, request.principal)
    return question_view(found, task, _answerer(request))


async def _tasks(
    request: ApiRequest[Any, Any], page: Iterable[QuestionRecord]
) -> dict[TaskId, Task]:
    """Return the tasks of questions, without those deleted in the meantime."""
    tasks: dict[TaskId, Task] = {}
    for task_id in {found.task_id for found in page}:
        try:
            tasks[task_id] = await request.services.gateway.queries.task(task_id, request.principal)
        except NotFound:
            continue
    return tasks


def _answerer(request: ApiRequest[Any, Any]) -> Actor:
    return Actor(request.principal, request.channel)


def _id(request: ApiRequest[Any, Any]) -> QuestionId:
    return QuestionId(request.path["question_id"])
