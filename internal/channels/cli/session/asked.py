"""A question as JSON, the same as `GET /api/questions/{id}` gives it to the owner."""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from internal.agent.domain.answers import answer_schema, read_answer
from internal.agent.domain.questions import Question
from internal.agent.domain.tasks import Task
from internal.agent.ports.people import AskedQuestion

_LONGEST_TASK = 200


def view_of(found: AskedQuestion, task: Task) -> dict[str, Any]:
    """Return a question, its state, and the words that led to it."""
    asked, question, answer = found.asked, found.question, found.answer
    shown: dict[str, Any] = msgspec.to_builtins(question)
    said = None if answer is None else msgspec.to_builtins(answer)
    if said is not None:
        del said["question_id"]
    return {
        "question_id": question.id,
        "run_id": asked.run_id,
        "task_id": asked.task_id,
        "session_id": asked.session_id,
        "channel": task.origin.channel,
        "task": task.instruction[:_LONGEST_TASK],
        **{name: value for name, value in shown.items() if name not in {"id", "call_id"}},
        "who": asked.who,
        "status": found.status,
        "asked": asked.asked,
        "expires": asked.expires,
        "may_answer": found.status == "open",
        "answer": said,
        "answer_schema": answer_schema(question),
    }


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
