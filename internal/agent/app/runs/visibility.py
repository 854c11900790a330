"""Visibility for the writer of a text: it answers, approves and stops nothing newer.

Texts arrive late: a chat service delivers a message again after minutes, a page sends texts that
were written without a connection. All channels give the time of writing, which is compared here, in
the transaction of the change. A click, a reply to a question and a text with its id name their
target: they count as written now.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from internal.agent.app.events.subscription import Cursor
from internal.agent.domain.chats import InboundMessage, question_key
from internal.agent.domain.errors import WrittenEarlier
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import QuestionId
from internal.agent.domain.questions import QuestionRecord
from internal.agent.domain.tasks import Run, Task
from internal.agent.store.database import Read
from internal.agent.store.stores import Stores

_ASKED, _RECEIVED = "workflow.question.asked", "workflow.input.received"


class WrittenAt(NamedTuple):
    """A text of a chat, written at an instant by the clock of the chat service (RFC 3339)."""

    instant: str


class WrittenAfter(NamedTuple):
    """A text of the page or the terminal, written when this was the newest event that it showed."""

    seen: Cursor


Writing = WrittenAt | WrittenAfter | None
"""When a text was written; None for now."""


def written_at(message: InboundMessage) -> Writing:
    """Return when a message of a chat was written, by its chat service."""
    return WrittenAt(message.sent) if message.sent else None


def list_newer(
    stores: Stores, questions: Sequence[QuestionRecord], writing: Writing
) -> Read[frozenset[QuestionId]]:
    """Return the ids of the questions that the writer of a text could not have seen."""
    newer: set[QuestionId] = set()
    for each in questions:
        if not (yield from _could_see_question(stores, each, writing)):
            newer.add(each.question.id)
    return frozenset(newer)


def check_question_visible(
    stores: Stores, question: QuestionRecord, writing: Writing
) -> Read[None]:
    """Check that the writer of a text could have seen a question.

    Raises:
        WrittenEarlier: the text was written before the question was shown.
    """
    if not (yield from _could_see_question(stores, question, writing)):
        raise WrittenEarlier(
            "This was written before the question: nothing was allowed.",
            reason_code="written_before_question",
        )


def could_see_run(stores: Stores, run: Run, task: Task, writing: Writing) -> Read[bool]:
    """Return True if a text was written after a run began, or its task could be seen.

    In a chat a run that waits for another one cannot be told from that: what counts is when it
    began. The page and the terminal show each task.
    """
    match writing:
        case None:
            return True
        case WrittenAfter(seen):
            inputs = yield from stores.events.list_by_run(run.id, _RECEIVED)
            return not inputs or (yield from _is_seen(stores, seen, inputs[0].position))
        case WrittenAt(instant):
            return (yield from _began(stores, run, task)) <= instant


def _could_see_question(stores: Stores, question: QuestionRecord, writing: Writing) -> Read[bool]:
    match writing:
        case None:
            return True
        case WrittenAfter(seen):
            asked = yield from stores.events.list_by_run(question.run_id, _ASKED)
            return not asked or (yield from _is_seen(stores, seen, asked[-1].position))
        case WrittenAt(instant):
            since = yield from stores.outbox.get_visible_since(question_key(question.question.id))
            return since is not None and since <= instant


def _is_seen(stores: Stores, seen: Cursor, position: int) -> Read[bool]:
    """Return True if an event is not after a position; of another log nothing was seen."""
    bounds = yield from stores.events.get_bounds()
    return seen.epoch == bounds.epoch and position <= seen.position


def _began(stores: Stores, run: Run, task: Task) -> Read[str]:
    """Return when a run began, by the clock of the chat service if its task came from there.

    Then it is the time of the message and, by our clock, how long its run waited.
    """
    origin = task.origin
    times = yield from stores.inbox.get_times(origin.channel, origin.app, origin.message_id)
    sent, received = times
    if not sent:
        return run.started or task.created
    if not run.started:
        return sent
    waited = datetime.fromisoformat(run.started) - datetime.fromisoformat(received)
    began = datetime.fromisoformat(sent) + waited
    return max(sent, rfc3339(began))
