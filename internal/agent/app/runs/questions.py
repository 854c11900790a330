"""Questions: the rights to see and answer them, and their closing."""

from typing import NamedTuple

import msgspec
from msgspec import UNSET

from internal.agent.app.runs.visibility import Writing
from internal.agent.domain.chats import OutgoingMessage, closing_key, question_key
from internal.agent.domain.errors import Conflict
from internal.agent.domain.events.types import QuestionAnswered
from internal.agent.domain.principals import AuditEntry, Principal
from internal.agent.domain.questions import CLOCK, NOBODY, Answer, QuestionRecord
from internal.agent.domain.tasks import Channel
from internal.agent.domain.text import truncate, truncate_json
from internal.agent.store.database import Write
from internal.agent.store.stores import Stores
from internal.normal_forms.time_zones import format_moment


class Actor(NamedTuple):
    """A person who views or answers questions through a channel, in a chat ("" outside of one).

    `writing` is the time of a text that does not name its question.
    """

    principal: Principal
    via: Channel
    chat: str = ""
    writing: Writing = None


def can_view(question: QuestionRecord, actor: Actor) -> bool:
    """Return True for the owner, for the submitter of the task, and inside the task's chat."""
    principal = actor.principal
    in_chat = bool(question.chat) and question.chat == actor.chat
    return principal.may("owner") or principal.id == question.principal or in_chat


def can_answer(question: QuestionRecord, actor: Actor) -> bool:
    """Return True if an answer counts: of an operator in the task's chat, or of the submitter."""
    principal = actor.principal
    if question.audience == "owner":
        return principal.may("owner")
    if question.audience == "asker" and principal.id == question.principal:
        return True
    # an operator may answer in the chat of the task only, not in others
    here = question.chat == actor.chat if question.chat else can_view(question, actor)
    return principal.may("owner") or (here and principal.may("operate"))


def close_question(
    stores: Stores, question: QuestionRecord, answer: Answer, *, now: str
) -> Write[QuestionAnswered | None]:
    """Store the answer with an audit entry and a notice to the chat; return its event.

    Returns None if the question is not open.
    """
    if not (yield from stores.questions.close(answer, now)):
        return None
    detail = f"{answer.decision}: {answer.text}" if answer.text else answer.decision
    entry = AuditEntry(
        now, answer.by, answer.via, "question.answered", answer.question_id, truncate(detail, 500)
    )
    yield from stores.audit.add(entry)
    yield from queue_question_notice(stores, question, now=now, is_closing=True)
    return QuestionAnswered(
        question_id=answer.question_id,
        decision=answer.decision,
        answered_by=answer.by,
        answered_via=answer.via,
        answered_name=answer.name or UNSET,
        text=truncate_json(answer.text) if answer.text else UNSET,
        items=answer.items or UNSET,
        grant=answer.grant if answer.grant != "once" else UNSET,
        rules=answer.rules or UNSET,
    )


def queue_question_notice(
    stores: Stores, record: QuestionRecord, *, now: str, is_closing: bool = False
) -> Write[None]:
    """Queue a question, or its closing, to the chat of its task and to its recipients."""
    if not record.chat:
        return
    task = yield from stores.tasks.get(record.task_id)
    if task is None:
        return
    origin, question = task.origin, record.question
    make_key = closing_key if is_closing else question_key
    outgoing = OutgoingMessage(
        key=make_key(question.id),
        channel=origin.channel,
        app=origin.app,
        chat_id=origin.chat_id,
        reply_to=origin.message_id,
        body=question.title,
        run_id=record.run_id,
        question_id=question.id,
    )
    yield from stores.outbox.add(outgoing, now)
    for user in question.recipients:
        key = make_key(question.id, user)
        copy = msgspec.structs.replace(outgoing, key=key, chat_id=user, reply_to="")
        yield from stores.outbox.add(copy, now)


def expired_answer(question: QuestionRecord, now: str) -> Answer:
    """Return the answer of a question that nobody answered in time."""
    return Answer(question.question.id, "expired", NOBODY, CLOCK, at=now)


def closed_error(question: QuestionRecord, reader: str = "") -> Conflict:
    """Return the error that says why a question cannot be answered any more, for a principal."""
    answer = question.answer
    if answer is None or answer.decision == "expired":
        if question.status in ("open", "expired"):
            return Conflict(
                "The question has expired; nothing was run.", reason_code="question_expired"
            )
        return Conflict("The question is closed.", reason_code="question_closed")
    text = f" ({truncate(answer.text, 80)})" if answer.text else ""
    time = format_moment(answer.at)
    if answer.by == reader:
        sentence = f"Already answered by you via {answer.via}, {time}: {answer.decision}{text}."
        return Conflict(sentence, reason_code="question_answered_by_you", time=time)
    sentence = (
        f"Already answered by {answer.who} via {answer.via}, {time}: {answer.decision}{text}."
    )
    return Conflict(sentence, reason_code="question_answered", person=answer.who, time=time)
