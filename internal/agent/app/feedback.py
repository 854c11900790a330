"""Feedback on the answers of tasks: from the page by task, from chats by reactions on messages."""

from typing import NamedTuple

import msgspec

from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.errors import Conflict, NotFound
from internal.agent.domain.events.envelope import EventRecord, RunIds, wrap_event
from internal.agent.domain.events.types import FeedbackGiven
from internal.agent.domain.ids import SessionId, TaskId
from internal.agent.domain.tasks import ENDED, Feedback, Rating
from internal.agent.store.database import Read, Write
from internal.agent.store.stores import Stores


class AnswerRating(NamedTuple):
    """A person's rating of a message of the bot; None takes an earlier rating back.

    `at` is RFC 3339. `message` is the accepted event with the rating.
    """

    message_id: str
    principal: str
    rating: Rating | None
    at: str
    message: InboundMessage


class FeedbackItem(msgspec.Struct, frozen=True):
    """Feedback on the answer of a task. `by` is the principal, `at` the time (RFC 3339)."""

    task_id: TaskId
    session_id: SessionId
    instruction: str
    rating: Rating | None
    comment: str
    by: str
    at: str


def rate_task(
    stores: Stores, task_id: TaskId, feedback: Feedback, *, now: str
) -> Write[list[EventRecord]]:
    """Replace the feedback on an ended task; one without rating and comment removes it.

    Raises:
        NotFound: the task was deleted.
        Conflict: the task has not ended.
    """
    task = yield from stores.tasks.get(task_id)
    if task is None:
        raise NotFound(f"There is no task {task_id}.", reason_code="no_task", name=task_id)
    if task.status not in ENDED:
        raise Conflict(
            "This task has not ended. Rate its answer then.", reason_code="task_not_ended_rating"
        )
    is_empty = feedback.rating is None and not feedback.comment.strip()
    yield from stores.tasks.set_feedback(task_id, None if is_empty else feedback)
    run = yield from stores.runs.get_by_task(task_id)
    if run is None:
        return []
    event = FeedbackGiven(rating=feedback.rating, comment=feedback.comment, by=feedback.by)
    return [EventRecord.ephemeral(wrap_event(RunIds.of(run), event, now, None))]


def rate_answer(
    stores: Stores, given: AnswerRating, *, now: str
) -> Write[tuple[TaskId | None, list[EventRecord]]]:
    """Store the rating of a message that answers a task, and mark its event as handled.

    A rating replaces that of another person. Only the person who gave one takes it back; a comment
    of that person stays. Returns the task whose feedback changed, None for no change.
    """
    row = given.message
    if not (yield from stores.inbox.dismiss(row.channel, row.app, row.message_id)):
        return None, []
    answered = yield from stores.outbox.find_answer(row.channel, row.app, given.message_id)
    task = None if answered is None else (yield from stores.tasks.get(answered[0]))
    if task is None or task.status not in ENDED:
        return None, []
    old = task.feedback
    is_own = old is not None and old.by == given.principal
    if (old is not None and is_own and old.rating == given.rating) or (
        given.rating is None and not is_own
    ):
        return None, []
    comment = old.comment if old is not None and is_own else ""
    feedback = Feedback(given.rating, comment, given.principal, given.at)
    return task.id, (yield from rate_task(stores, task.id, feedback, now=now))


def list_feedback(stores: Stores, limit: int) -> Read[list[FeedbackItem]]:
    """Return the feedback on tasks, the newest tasks first."""
    return [
        FeedbackItem(
            task.id,
            task.session_id,
            task.instruction,
            task.feedback.rating,
            task.feedback.comment,
            task.feedback.by,
            task.feedback.at,
        )
        for task in (yield from stores.tasks.list_rated(limit))
        if task.feedback is not None
    ]
