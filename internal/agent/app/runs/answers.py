"""Answers: the changes by the answer to a question, in one transaction."""

import msgspec

from internal.agent.app.access import add_rules
from internal.agent.app.files.session_files import use_attachments
from internal.agent.app.idempotency import RequestKey, find_result, save_result
from internal.agent.app.runs.creation import TaskIds, load_task
from internal.agent.app.runs.finalization import end_idle_run
from internal.agent.app.runs.questions import (
    Actor,
    can_answer,
    can_view,
    close_question,
    closed_error,
)
from internal.agent.app.runs.visibility import check_question_visible
from internal.agent.domain.answers import AnswerInput, normalize_answer
from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.errors import Conflict, Forbidden, NotFound
from internal.agent.domain.events.envelope import EventRecord, RunIds
from internal.agent.domain.events.types import LifecycleUpdated
from internal.agent.domain.ids import QuestionId
from internal.agent.domain.questions import Answer, QuestionRecord, QuestionStatus
from internal.agent.domain.react.steps import TurnOutcome
from internal.agent.domain.tasks import Attachment, Run
from internal.agent.domain.text import replace_surrogates
from internal.agent.store.database import Write
from internal.agent.store.stores import Stores


class _Answered(msgspec.Struct, frozen=True):
    """The question that a request answered."""

    question_id: QuestionId


def answer_question(
    stores: Stores,
    question_id: QuestionId,
    answer_input: AnswerInput,
    *,
    actor: Actor,
    message: InboundMessage | None,
    ids: TaskIds,
    now: str,
    attachments: tuple[Attachment, ...] = (),
    idempotency_key: str | None = None,
) -> Write[tuple[QuestionRecord, list[EventRecord]]]:
    """Store the answer and queue the waiting run ahead of the other runs of its lane.

    `message` is the accepted message that contained the answer, which is marked as handled;
    `attachments` are the files of an answer without one. The model reads the files after the
    answer. `ids` are those of the next task if the answer ends the run. A repeated idempotency key
    changes nothing and returns the question of the first request.

    Raises:
        NotFound: the question does not exist or the actor must not see it.
        Forbidden: the actor may not answer it, or not with rules that were not offered.
        InvalidRequest: the answer does not fit the question.
        Conflict: the question is closed, or the message was handled before.
        WrittenEarlier: the writer of the answer could not have seen the question.
    """
    request = RequestKey(actor.principal.id, "answer", idempotency_key, question_id)
    first = yield from find_result(stores, request, _Answered)
    question = yield from stores.questions.get(first.question_id if first else question_id)
    if question is None or not can_view(question, actor):
        raise NotFound(
            f"There is no question {question_id[:80]}.",
            reason_code="no_question",
            name=question_id[:80],
        )
    if first is not None:
        return question, []
    if not can_answer(question, actor):
        who = "the owner" if question.audience == "owner" else "operators"
        raise Forbidden(
            f"Only {who} may answer this question.",
            reason_code="answer_by_others",
            who=question.audience,
        )
    if question.status != "open" or question.expires <= now:
        raise closed_error(question, actor.principal.id)
    yield from check_question_visible(stores, question, actor.writing)
    answer = _answer(question, normalize_answer(question.question, answer_input), actor, now=now)
    if message is not None:
        key = (message.channel, message.app, message.message_id)
        if not (yield from stores.inbox.dismiss(*key)):
            raise Conflict("This message was handled before.", reason_code="message_handled")
    else:
        yield from use_attachments(stores, attachments, question.session_id, actor.principal.id)
        message = _own_message(question, actor, attachments, now=now)
    yield from _assign_files(stores, question, message)
    yield from add_rules(stores, question, answer)
    yield from save_result(stores, request, _Answered(question_id), question.session_id, now=now)
    return (yield from apply_answer(stores, question, answer, ids=ids, now=now))


def _own_message(
    question: QuestionRecord, actor: Actor, attachments: tuple[Attachment, ...], *, now: str
) -> InboundMessage:
    """Return a message for the files of an answer that came without one."""
    return InboundMessage(
        channel=actor.via,
        app="",
        message_id=question.question.id,
        chat_id="",
        principal=actor.principal.id,
        raw="",
        received=now,
        attachments=attachments,
    )


def _assign_files(stores: Stores, question: QuestionRecord, message: InboundMessage) -> Write[None]:
    """Let the run of a question read the files of its answer, if there are any."""
    if not message.attachments:
        return
    names = ", ".join(each.name for each in message.attachments)
    content = {"text": f"Files of the answer: {names}", "attachments": message.attachments}
    files = msgspec.structs.replace(
        message,
        message_id=f"{message.message_id}:files",
        raw=msgspec.json.encode(content).decode(),
    )
    yield from stores.inbox.assign(files, question.session_id, question.run_id, steer=True)


def apply_answer(
    stores: Stores, question: QuestionRecord, answer: Answer, *, ids: TaskIds, now: str
) -> Write[tuple[QuestionRecord, list[EventRecord]]]:
    """Store the answer to an open question and queue its run, or end a run that is given up.

    Raises:
        Conflict: the question is not open any more.
    """
    answered = yield from close_question(stores, question, answer, now=now)
    run = yield from stores.runs.get(question.run_id)
    if answered is None or run is None:
        current = yield from stores.questions.get(question.question.id)
        raise closed_error(current or question._replace(status="closed"))
    is_recovery = question.question.kind == "recovery"
    if is_recovery and answer.decision in ("reject", "expired"):
        events = yield from stores.events.append_idle(RunIds.of(run), (answered,), now)
        events += yield from _give_up(stores, run, question, answer, ids=ids, now=now)
    else:
        if is_recovery:
            yield from _grant_another_try(stores, question, answer, now=now)
        queued = LifecycleUpdated(status="queued", phase="answer")
        events = yield from stores.events.append_idle(RunIds.of(run), (answered, queued), now)
        yield from stores.runs.queue_waiting(run.id, now)
        yield from stores.tasks.set_status(run.task_id, "queued", None, now=now)
    status: QuestionStatus = "expired" if answer.decision == "expired" else "answered"
    return question._replace(status=status, answer=answer), events


def _give_up(
    stores: Stores, run: Run, question: QuestionRecord, answer: Answer, *, ids: TaskIds, now: str
) -> Write[list[EventRecord]]:
    """End a run that is not to be tried again. Its checkpoint is kept, so it can be resumed."""
    task = yield from load_task(stores, run)
    why = "Nobody decided in time" if answer.decision == "expired" else f"Given up by {answer.who}"
    reason = f": {answer.text}" if answer.text else ""
    error = f"{question.question.title} {why}{reason}."
    outcome = TurnOutcome("interrupted", "", error)
    events = yield from end_idle_run(stores, run, task, outcome=outcome, ids=ids, now=now)
    if answer.decision == "reject":  # a person has decided: it is no dead letter
        yield from stores.runs.forget_crashes(run.id)
    return events


def _grant_another_try(
    stores: Stores, question: QuestionRecord, answer: Answer, *, now: str
) -> Write[None]:
    """Give the run its time again, and the advice as a message that it reads before it goes on."""
    yield from stores.runs.reset_used_seconds(question.run_id)
    if not answer.text:
        return
    message = InboundMessage(
        channel=answer.via,
        app="",
        message_id=answer.question_id,
        chat_id="",
        principal=answer.by,
        raw=msgspec.json.encode({"text": answer.text}).decode(),
        received=now,
    )
    yield from stores.inbox.assign(message, question.session_id, question.run_id, steer=True)


def _answer(
    question: QuestionRecord, answer_input: AnswerInput, actor: Actor, *, now: str
) -> Answer:
    principal = actor.principal
    offered = {rule for call in question.question.calls for rule in call.rules}
    if not (principal.may("owner") or offered.issuperset(answer_input.rules)):
        raise Forbidden(
            "Only the owner may add rules that were not offered.", reason_code="own_rules_by_owner"
        )
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
