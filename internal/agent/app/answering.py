"""Answering: the first answer to a question counts, and its run goes on."""

from internal.agent.app.broadcaster import Delivery
from internal.agent.app.recording import record_resting
from internal.agent.domain.clipping import fitted
from internal.agent.domain.envelope import RunIds
from internal.agent.domain.errors import Conflict, NotFound
from internal.agent.domain.events import LifecycleUpdated, QuestionAnswered
from internal.agent.domain.questions import Answer
from internal.agent.ports.database import Write
from internal.agent.ports.stores import Stores


def answer_question(stores: Stores, answer: Answer, now: str) -> Write[list[Delivery]]:
    """Store the answer and queue the waiting run, before the others of its lane.

    Raises:
        NotFound: there is no such question.
        Conflict: it is closed; the sentence says by whom.
    """
    asked = yield from stores.questions.get(answer.question_id)
    run = None if asked is None else (yield from stores.runs.get(asked.run_id))
    if asked is None or run is None:
        raise NotFound(f"There is no question {answer.question_id[:80]}.")
    if not (yield from stores.questions.close(answer, now)):
        first = asked.answer
        how = f" by {first.by} via {first.via}: {first.decision}" if first else ""
        raise Conflict(f"The question is answered already{how}.")
    events = (
        QuestionAnswered(
            question_id=answer.question_id,
            decision=answer.decision,
            answered_by=answer.by,
            answered_via=answer.via,
            text=fitted(answer.text),
        ),
        LifecycleUpdated(status="queued", phase="answer"),
    )
    ids = RunIds(run.session_id, run.task_id, run.id, run.parent_run_id)
    shown = yield from record_resting(stores.log, ids, events, now)
    yield from stores.runs.wake(run.id)
    yield from stores.tasks.set_status(run.task_id, "queued", None, now)
    return shown
