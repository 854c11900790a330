"""Questions: who may answer them, and what an answer changes."""

from typing import NamedTuple

from msgspec import UNSET

from internal.agent.app.access import add_rules
from internal.agent.domain.answers import AnswerInput, normalize_answer
from internal.agent.domain.chats import InboundMessage, OutgoingMessage
from internal.agent.domain.errors import Conflict, Forbidden, NotFound
from internal.agent.domain.events.envelope import EventRecord, RunIds
from internal.agent.domain.events.types import LifecycleUpdated, QuestionAnswered
from internal.agent.domain.ids import QuestionId
from internal.agent.domain.principals import AuditEntry, Principal
from internal.agent.domain.questions import CLOCK, NOBODY, Answer, QuestionRecord, QuestionStatus
from internal.agent.domain.tasks import Channel
from internal.agent.domain.text import replace_surrogates, truncate, truncate_json
from internal.agent.store.database import Write
from internal.agent.store.stores import Stores


class Actor(NamedTuple):
    """A person who views or answers questions through a channel, in a chat ("" for none)."""

    principal: Principal
    via: Channel
    chat: str = ""


def can_view(question: QuestionRecord, actor: Actor) -> bool:
    """Return True for the owner, for who submitted the task, and inside the task's chat."""
    principal = actor.principal
    in_chat = bool(question.chat) and question.chat == actor.chat
    return principal.may("owner") or principal.id == question.principal or in_chat


def can_answer(question: QuestionRecord, actor: Actor) -> bool:
    """Return True if an answer counts: of an operator in the task's chat, or of the submitter."""
    principal = actor.principal
    if question.audience == "asker" and principal.id == question.principal:
        return True
    # an operator may answer in the chat of the task only, not in others
    here = question.chat == actor.chat if question.chat else can_view(question, actor)
    return principal.may("owner") or (here and principal.may("operate"))


def answer_question(
    stores: Stores,
    question_id: QuestionId,
    answer_input: AnswerInput,
    *,
    actor: Actor,
    message: InboundMessage | None,
    now: str,
) -> Write[tuple[QuestionRecord, list[EventRecord]]]:
    """Store the answer and queue the waiting run ahead of the other runs of its lane.

    `message` is the accepted message that contained the answer; it is marked as handled.

    Raises:
        NotFound: the question does not exist or the actor must not see it.
        Forbidden: the actor may not answer it, or not with rules that were not offered.
        InvalidRequest: the answer does not fit the question.
        Conflict: the question is closed, or the message was handled before.
    """
    question = yield from stores.questions.get(question_id)
    if question is None or not can_view(question, actor):
        raise NotFound(f"There is no question {question_id[:80]}.")
    if not can_answer(question, actor):
        raise Forbidden("Only operators may answer this question.")
    if question.status != "open" or question.expires <= now:
        raise Conflict(closed_message(question))
    answer = _answer(question, normalize_answer(question.question, answer_input), actor, now=now)
    if message is not None:
        key = (message.channel, message.app, message.message_id)
        if not (yield from stores.inbox.dismiss(*key)):
            raise Conflict("This message was handled before.")
    yield from add_rules(stores, question, answer)
    return (yield from apply_answer(stores, question, answer, now=now))


def apply_answer(
    stores: Stores, question: QuestionRecord, answer: Answer, *, now: str
) -> Write[tuple[QuestionRecord, list[EventRecord]]]:
    """Store the answer to an open question and queue its run.

    Raises:
        Conflict: the question is not open any more.
    """
    answered = yield from close_question(stores, question, answer, now=now)
    run = yield from stores.runs.get(question.run_id)
    if answered is None or run is None:
        current = yield from stores.questions.get(question.question.id)
        raise Conflict(closed_message(current or question._replace(status="closed")))
    queued = LifecycleUpdated(status="queued", phase="answer")
    events = yield from stores.events.append_idle(RunIds.of(run), (answered, queued), now)
    yield from stores.runs.queue_waiting(run.id, now)
    yield from stores.tasks.set_status(run.task_id, "queued", None, now=now)
    status: QuestionStatus = "expired" if answer.decision == "expired" else "answered"
    return question._replace(status=status, answer=answer), events


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
    yield from queue_question_notice(stores, question, "closed", now=now)
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
    stores: Stores, question: QuestionRecord, notice: str, *, now: str
) -> Write[None]:
    """Queue a message to the task's chat: the question ("asked") or its closing ("closed")."""
    if not question.chat:
        return
    task = yield from stores.tasks.get(question.task_id)
    if task is None:
        return
    origin = task.origin
    outgoing = OutgoingMessage(
        key=f"{question.question.id}:{notice}",
        channel=origin.channel,
        app=origin.app,
        chat_id=origin.chat_id,
        reply_to=origin.message_id,
        body=question.question.title,
        run_id=question.run_id,
        question_id=question.question.id,
    )
    yield from stores.outbox.add(outgoing, now)


def expired_answer(question: QuestionRecord, now: str) -> Answer:
    """Return the answer of a question that nobody answered in time."""
    return Answer(question.question.id, "expired", NOBODY, CLOCK, at=now)


def closed_message(question: QuestionRecord) -> str:
    """Return a sentence why the question cannot be answered any more."""
    answer = question.answer
    if answer is None or answer.decision == "expired":
        if question.status in ("open", "expired"):
            return "The question has expired; nothing was run."
        return "The question is closed."
    text = f" ({truncate(answer.text, 80)})" if answer.text else ""
    time = f"{answer.at[:16].replace('T', ' ')} UTC"
    return f"Already answered by {answer.who} via {answer.via}, {time}: {answer.decision}{text}."


def _answer(
    question: QuestionRecord, answer_input: AnswerInput, actor: Actor, *, now: str
) -> Answer:
    principal = actor.principal
    offered = {rule for call in question.question.calls for rule in call.rules}
    if not (principal.may("owner") or offered.issuperset(answer_input.rules)):
        raise Forbidden("Only the owner may add rules that were not offered.")
    return Answer(
        question.question.id,
        answer_input.decision,
        principal.id,
        actor.via,
        text=replace_surrogates(answer_input.text).strip(),
        items=answer_input.items,
        name=principal.name,
        at=now,
        edit=answer_input.edit,
        choices=answer_input.choices,
        grant=answer_input.grant,
        rules=answer_input.rules,
    )
