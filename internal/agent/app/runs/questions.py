"""Answering: the first answer to a question counts, and its run goes on."""

from typing import NamedTuple

from msgspec import UNSET

from internal.agent.domain.answers import AnswerInput, normalize_answer
from internal.agent.domain.chats import InboundMessage, OutgoingMessage
from internal.agent.domain.errors import Conflict, Forbidden, NotFound
from internal.agent.domain.events.envelope import RunIds
from internal.agent.domain.events.record import EventRecord
from internal.agent.domain.events.types import LifecycleUpdated, QuestionAnswered
from internal.agent.domain.ids import QuestionId
from internal.agent.domain.principals import Principal
from internal.agent.domain.questions import CLOCK, NOBODY, Answer, QuestionRecord, QuestionStatus
from internal.agent.domain.tasks import Channel
from internal.agent.domain.text import replace_surrogates, truncate, truncate_json
from internal.agent.store.access import AuditEntry, PermissionRule
from internal.agent.store.database import Write
from internal.agent.store.stores import Stores


def close_question(
    stores: Stores, asked: QuestionRecord, answer: Answer, now: str
) -> Write[QuestionAnswered | None]:
    """Store the answer if the question is open; return its event, None for one too late.

    The deed is noted, and the chat where it was asked is promised the news.
    """
    if not (yield from stores.questions.close(answer, now)):
        return None
    said = f"{answer.decision}: {answer.text}" if answer.text else answer.decision
    deed = AuditEntry(now, answer.by, answer.via, "question.answered", answer.question_id)
    yield from stores.audit.add(deed._replace(detail=truncate(said, 500)))
    yield from queue_question_notice(stores, asked, "closed", now)
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
    stores: Stores, asked: QuestionRecord, news: str, now: str
) -> Write[None]:
    """Promise a question, or the news that it is closed, to the chat that its task came from."""
    if not asked.chat:
        return
    task = yield from stores.tasks.get(asked.task_id)
    if task is None:
        return
    origin = task.origin
    outgoing = OutgoingMessage(
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


def expired_answer(asked: QuestionRecord, now: str) -> Answer:
    """Return the no of a question whose time is over."""
    return Answer(asked.question.id, "expired", NOBODY, CLOCK, at=now)


def closed_message(found: QuestionRecord) -> str:
    """Say why a question cannot be answered any more."""
    answer = found.answer
    if answer is None or answer.decision == "expired":
        expired = found.status in ("open", "expired")
        return "The question has expired: not run." if expired else "The question is closed."
    said = f" ({truncate(answer.text, 80)})" if answer.text else ""
    when = f"{answer.at[:16].replace('T', ' ')} UTC"
    return f"Answered already by {answer.who} via {answer.via}, {when}: {answer.decision}{said}."


class Actor(NamedTuple):
    """Who answers, through which channel. `chat` names the chat that they say it in."""

    principal: Principal
    via: Channel
    chat: str = ""


def can_view(asked: QuestionRecord, answerer: Actor) -> bool:
    """Say whether a question exists for somebody: the owner, who gave the task, their chat."""
    principal = answerer.principal
    here = bool(asked.chat) and asked.chat == answerer.chat
    return principal.may("owner") or principal.id == asked.principal or here


def can_answer(asked: QuestionRecord, answerer: Actor) -> bool:
    """Say whether somebody's answer counts: an operator's where it was asked, or the asker's."""
    principal = answerer.principal
    if asked.audience == "asker" and principal.id == asked.principal:
        return True
    # whoever operates in a chat operates there: their right does not reach into another one
    here = asked.chat == answerer.chat if asked.chat else can_view(asked, answerer)
    return principal.may("owner") or (here and principal.may("operate"))


def answer_question(
    stores: Stores,
    question_id: QuestionId,
    given: AnswerInput,
    answerer: Actor,
    message: InboundMessage | None,
    now: str,
) -> Write[tuple[QuestionRecord, list[EventRecord]]]:
    """Store the answer and queue the waiting run, before the others of its lane.

    `message` is the accepted message that it came in, settled with it.

    Raises:
        NotFound: there is no such question for this person.
        Forbidden: they may not answer it, or not with rules of their own.
        Malformed: the answer does not fit the question.
        Conflict: it is closed; the sentence says by whom. Or the message was settled before.
    """
    found = yield from stores.questions.get(question_id)
    if found is None or not can_view(found, answerer):
        raise NotFound(f"There is no question {question_id[:80]}.")
    if not can_answer(found, answerer):
        raise Forbidden("Only operators may answer this question.")
    if found.status != "open" or found.expires <= now:
        raise Conflict(closed_message(found))
    answer = _answer(found, normalize_answer(found.question, given), answerer, now)
    if message is not None:
        ids = (message.channel, message.app, message.message_id)
        if not (yield from stores.inbox.dismiss(*ids)):
            raise Conflict("The message was taken in before.")
    yield from _write_rules(stores, found, answer)
    return (yield from apply_answer(stores, found, answer, now))


def apply_answer(
    stores: Stores, asked: QuestionRecord, answer: Answer, now: str
) -> Write[tuple[QuestionRecord, list[EventRecord]]]:
    """Store the one answer to an open question; its run is queued.

    Raises:
        Conflict: it is not open any more.
    """
    answered = yield from close_question(stores, asked, answer, now)
    run = yield from stores.runs.get(asked.run_id)
    if answered is None or run is None:
        again = yield from stores.questions.get(asked.question.id)
        raise Conflict(closed_message(again or asked._replace(status="closed")))
    ids = RunIds(run.session_id, run.task_id, run.id, run.parent_run_id)
    queued = LifecycleUpdated(status="queued", phase="answer")
    shown = yield from stores.events.append_idle(ids, (answered, queued), now)
    yield from stores.runs.queue_waiting(run.id, now)
    yield from stores.tasks.set_status(run.task_id, "queued", None, now=now)
    status: QuestionStatus = "expired" if answer.decision == "expired" else "answered"
    return asked._replace(status=status, answer=answer), shown


def _answer(asked: QuestionRecord, given: AnswerInput, answerer: Actor, now: str) -> Answer:
    principal = answerer.principal
    offered = {rule for call in asked.question.calls for rule in call.rules}
    if not (principal.may("owner") or offered.issuperset(given.rules)):
        raise Forbidden("Only the local owner may write rules that were not offered.")
    return Answer(
        asked.question.id,
        given.decision,
        principal.id,
        answerer.via,
        text=replace_surrogates(given.text).strip(),
        items=given.items,
        name=principal.name,
        at=now,
        edit=given.edit,
        choices=given.choices,
        grant=given.grant,
        rules=given.rules,
    )


def _write_rules(stores: Stores, asked: QuestionRecord, answer: Answer) -> Write[None]:
    """Store what a yes allows from now on: in its session, or for all tasks of its place."""
    if answer.grant == "once":
        return
    place = asked.session_id if answer.grant == "session" else asked.rule_scope
    for rule in answer.rules:
        yield from stores.permission_rules.add(
            PermissionRule(0, place, rule, answer.by, answer.via, answer.question_id, answer.at)
        )
        deed = AuditEntry(answer.at, answer.by, answer.via, "rule.written", place, rule)
        yield from stores.audit.add(deed)
