"""Questions: a durable question to a person that pauses a run, and its single Answer."""

from typing import Literal

import msgspec

from internal.agent.domain.ids import QuestionId

QuestionKind = Literal["clarify", "approval"]
Decision = Literal["approve", "reject", "text", "expired"]


class Asking(msgspec.Struct, frozen=True):
    """One call of an approval question: exactly what would be run."""

    call_id: str
    tool: str
    what: str
    risk: str
    reason: str
    call_hash: str
    rules: tuple[str, ...] = ()


class Question(msgspec.Struct, frozen=True):
    """What a person is asked. `call_id` is the call that an answer of kind `clarify` completes.

    `calls` lists every call that an approval question covers.
    """

    id: QuestionId
    kind: QuestionKind
    title: str
    body: str = ""
    options: tuple[str, ...] = ()
    call_id: str = ""
    calls: tuple[Asking, ...] = ()


class Answer(msgspec.Struct, frozen=True):
    """The single accepted reply to a Question: who, through which channel, decision, text.

    `items` maps a call_id of an approval question to yes or no; a call that is missing there
    follows `decision`.
    """

    question_id: QuestionId
    decision: Decision
    by: str
    via: str
    text: str = ""
    items: dict[str, bool] = {}


def approval(question_id: QuestionId, asked: tuple[Asking, ...]) -> Question:
    """Return the one question about all calls that need a person's agreement."""
    title = f"Allow {asked[0].tool}?" if len(asked) == 1 else f"Allow {len(asked)} calls?"
    return Question(question_id, "approval", title, calls=asked)


def refusal(asking: Asking, answer: Answer, call_hash: str) -> str | None:
    """Return why a call is not run after all, None when a person agreed to this very call.

    `call_hash` is that of the call as it is now.
    """
    if answer.decision == "expired":
        return "Not run: nobody answered in time."
    if not answer.items.get(asking.call_id, answer.decision == "approve"):
        reason = f": {answer.text}" if answer.text.strip() else ""
        return f"Not run: {answer.by or 'nobody'} said no{reason}."
    if call_hash != asking.call_hash:
        return "Not run: this is not the call that a person agreed to."
    return None
