"""A question as JSON, the same as `GET /api/questions/{id}` gives it to the owner."""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from internal.agent.app.queries import question_view
from internal.agent.app.runs.questions import Actor
from internal.agent.domain.answers import read_answer
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.questions import Question, QuestionRecord
from internal.agent.domain.tasks import Task


def view_of(found: QuestionRecord, task: Task) -> dict[str, Any]:
    """Return a question, its state, and the words that led to it."""
    view: dict[str, Any] = msgspec.to_builtins(
        question_view(found, task, Actor(LOCAL_OWNER, "cli"))
    )
    return view


def understood(
    view: Mapping[str, Any], text: str, yes: Collection[str], no: Collection[str]
) -> dict[str, Any] | None:
    """Understand a text as the answer to a question shown as JSON; None when it is none.

    `yes` and `no` are the exact words, in lower case.
    """
    question = msgspec.convert({**view, "id": view["question_id"], "call_id": ""}, Question)
    given = read_answer(question, text, yes, no)
    if given is None:
        return None
    return {name: value for name, value in msgspec.to_builtins(given).items() if value}
