"""A question as a door shows it: the same fields over HTTP and in a terminal."""

from typing import Any

import msgspec

from internal.agent.app.runs.questions import Actor, can_answer
from internal.agent.domain.answers import answer_schema
from internal.agent.domain.ids import QuestionId, RunId, SessionId, TaskId
from internal.agent.domain.plans import Plan, PlanEdit
from internal.agent.domain.questions import (
    Answer,
    ApprovalItem,
    Audience,
    Decision,
    Grant,
    QuestionKind,
    QuestionRecord,
    QuestionStatus,
)
from internal.agent.domain.tasks import Channel, Task

LONGEST_TASK = 200
"""Characters of the task that are shown beside its question."""


class AnswerView(msgspec.Struct, frozen=True):
    """The answer that counted: who gave it, through what, when. `by` is a principal."""

    decision: Decision
    text: str
    by: str
    name: str
    via: str
    at: str
    edit: PlanEdit | None
    choices: tuple[int, ...]
    items: dict[str, bool]
    grant: Grant
    rules: tuple[str, ...]


class QuestionView(msgspec.Struct, frozen=True):
    """A question: `calls` of an approval, the `plan` of a review, `task` the words that led to it.

    `may_answer`: it is open and whoever asks may answer it; what fits says `answer_schema`.
    """

    question_id: QuestionId
    run_id: RunId
    task_id: TaskId
    session_id: SessionId
    channel: Channel
    task: str
    kind: QuestionKind
    title: str
    body: str
    options: tuple[str, ...]
    multiple: bool
    calls: tuple[ApprovalItem, ...]
    plan: Plan | None
    who: Audience
    status: QuestionStatus
    asked: str
    expires: str
    may_answer: bool
    answer: AnswerView | None
    answer_schema: dict[str, Any]


def view_of_question(found: QuestionRecord, task: Task, answerer: Actor) -> QuestionView:
    """Return a question as this person sees it."""
    question = found.question
    return QuestionView(
        question_id=question.id,
        run_id=found.run_id,
        task_id=found.task_id,
        session_id=found.session_id,
        channel=task.origin.channel,
        task=task.instruction[:LONGEST_TASK],
        kind=question.kind,
        title=question.title,
        body=question.body,
        options=question.options,
        multiple=question.multiple,
        calls=question.calls,
        plan=question.plan,
        who=found.audience,
        status=found.status,
        asked=found.asked,
        expires=found.expires,
        may_answer=found.status == "open" and can_answer(found, answerer),
        answer=None if found.answer is None else _view_of_answer(found.answer),
        answer_schema=answer_schema(question),
    )


def _view_of_answer(answer: Answer) -> AnswerView:
    fields = {name: getattr(answer, name) for name in AnswerView.__struct_fields__}
    return AnswerView(**fields)
