"""Routes for questions and their answers."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from internal.agent.app.queries import QuestionView, question_view
from internal.agent.app.runs.questions import Actor
from internal.agent.domain.answers import AnswerInput as AnswerOfPerson
from internal.agent.domain.answers import read_answer
from internal.agent.domain.ids import QuestionId, SessionId
from internal.agent.domain.questions import Question, QuestionStatus
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.schemas import (
    EmptyRequest,
    EventId,
    Id,
    Key,
    Limit,
    RequestModel,
    read_writing,
)
from internal.i18n.chat import answer_words


class QuestionsQuery(RequestModel, frozen=True):
    """Filters and page of a list of questions. `cursor` is `next` of the previous page."""

    status: QuestionStatus | UnsetType = UNSET
    session_id: Id | UnsetType = UNSET
    limit: Limit = 50
    cursor: Id | UnsetType = UNSET


class AnswerRequest(RequestModel, AnswerOfPerson, frozen=True):
    """An answer. The `answer_schema` of the question lists the fields it accepts.

    `seen` is the id of the newest event that was shown when a text was written, null for now. A
    text that was written before the question was asked is refused with the code `written_earlier`.
    """

    idempotency_key: Key | None = None
    seen: EventId | None = None


class QuestionsPage(msgspec.Struct, frozen=True):
    """Questions, newest first. `next` is null on the last page."""

    questions: list[QuestionView]
    next: str | None


async def list_questions(request: ApiRequest[QuestionsQuery, EmptyRequest]) -> QuestionsPage:
    """List questions, newest first."""
    query = request.query
    found = await request.services.gateway.queries.questions(
        request.principal,
        status=query.status or None,
        session_id=SessionId(query.session_id) if query.session_id else None,
        before=query.cursor or None,
        limit=query.limit + 1,
    )
    views = [question_view(*one, _answerer(request)) for one in found[: query.limit]]
    return QuestionsPage(views, views[-1].question_id if len(found) > query.limit else None)


async def show_question(request: ApiRequest[EmptyRequest, EmptyRequest]) -> QuestionView:
    """Return a question and, once it is closed, its answer."""
    queries, actor = request.services.gateway.queries, _answerer(request)
    return question_view(*await queries.question_with_task(_id(request), request.principal), actor)


async def answer_question(request: ApiRequest[EmptyRequest, AnswerRequest]) -> QuestionView:
    """Answer a question and resume its run. Later answers are rejected with the first one."""
    gateway, actor = request.services.gateway, _answerer(request)
    question_id, answer = _id(request), request.body
    writer = actor._replace(writing=read_writing(answer.seen))
    asked, _ = await gateway.queries.question_with_task(question_id, request.principal)
    answered = await gateway.answer(
        question_id, _read(asked.question, answer), writer, idempotency_key=answer.idempotency_key
    )
    task = await gateway.queries.task(answered.task_id, request.principal)
    return question_view(answered, task, actor)


def _read(question: Question, answer: AnswerOfPerson) -> AnswerOfPerson:
    """Return the answer in a text: the words for yes and no, an option, or the text itself.

    Other words about calls reject them with that reason.
    """
    if answer.decision != "text" or answer.choices or answer.edit is not None:
        return answer
    return read_answer(question, answer.text, *answer_words(question.kind)) or answer


def _answerer(request: ApiRequest[Any, Any]) -> Actor:
    return Actor(request.principal, request.channel)


def _id(request: ApiRequest[Any, Any]) -> QuestionId:
    return QuestionId(request.path["question_id"])
