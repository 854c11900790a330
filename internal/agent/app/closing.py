"""Closing a question: by whoever is first. What was decided is told wherever it was asked."""

from msgspec import UNSET

from internal.agent.domain.clipping import clipped, fitted
from internal.agent.domain.question_events import QuestionAnswered
from internal.agent.domain.questions import CLOCK, NOBODY, Answer
from internal.agent.ports.database import Write
from internal.agent.ports.stores import Stores
from internal.storage.stores.outbox import Outgoing
from internal.storage.stores.people import Deed
from internal.storage.stores.questions import Asked, AskedQuestion


def close_question(
    stores: Stores, asked: Asked, answer: Answer, now: str
) -> Write[QuestionAnswered | None]:
    """Store the answer if the question is open; return its event, None for one too late.

    The deed is noted, and the chat where it was asked is promised the news.
    """
    if not (yield from stores.questions.close(answer, now)):
        return None
    said = f"{answer.decision}: {answer.text}" if answer.text else answer.decision
    deed = Deed(now, answer.by, answer.via, "question.answered", answer.question_id)
    yield from stores.audit.add(deed._replace(detail=clipped(said, 500)))
    yield from promise(stores, asked, "closed", now)
    return QuestionAnswered(
        question_id=answer.question_id,
        decision=answer.decision,
        answered_by=answer.by,
        answered_via=answer.via,
        answered_name=answer.name or UNSET,
        text=fitted(answer.text) if answer.text else UNSET,
        items=answer.items or UNSET,
        grant=answer.grant if answer.grant != "once" else UNSET,
        rules=answer.rules or UNSET,
    )


def promise(stores: Stores, asked: Asked, news: str, now: str) -> Write[None]:
    """Promise a question, or the news that it is closed, to the chat that its task came from."""
    if not asked.chat:
        return
    task = yield from stores.tasks.get(asked.task_id)
    if task is None:
        return
    origin = task.origin
    outgoing = Outgoing(
        key=f"{asked.question.id}:{news}",
        channel=origin.channel,
        app=origin.app,
        chat_id=origin.chat_id,
        reply_to=origin.message_id,
        body=asked.question.title,
        run_id=asked.run_id,
        question_id=asked.question.id,
    )
    yield from stores.outbox.add(outgoing, now)


def expiry(asked: Asked, now: str) -> Answer:
    """Return the no of a question whose time is over."""
    return Answer(asked.question.id, "expired", NOBODY, CLOCK, at=now)


def closed_sentence(found: AskedQuestion) -> str:
    """Say why a question cannot be answered any more."""
    answer = found.answer
    if answer is None or answer.decision == "expired":
        expired = found.status in ("open", "expired")
        return "The question has expired: not run." if expired else "The question is closed."
    said = f" ({clipped(answer.text, 80)})" if answer.text else ""
    when = f"{answer.at[:16].replace('T', ' ')} UTC"
    return f"Answered already by {answer.who} via {answer.via}, {when}: {answer.decision}{said}."
