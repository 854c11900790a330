"""Dead letters: messages and runs that were given up, until the owner retries or dismisses them."""

from collections.abc import Callable
from functools import partial

from internal.agent.app.runs.creation import (
    TaskIds,
    create_task,
    new_task_ids,
    resume_submission,
)
from internal.agent.app.runs.resume import copy_turn
from internal.agent.domain.chats import DeadLetter, UnprocessedMessage, UnsentMessage
from internal.agent.domain.errors import Conflict, NotFound
from internal.agent.domain.events.envelope import EventRecord, rfc3339
from internal.agent.domain.ids import RunId
from internal.agent.domain.principals import AuditEntry, Principal
from internal.agent.domain.tasks import MAX_CRASHES, Channel, Run, Task
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database, Read, Write
from internal.agent.store.stores import Stores

Publish = Callable[[list[EventRecord]], None]
"""Makes the events of a retried run visible and wakes what continues messages and runs."""

_INCOMING, _OUTGOING = "incoming-", "outgoing-"
_MAX_DIGITS = 18


class DeadLetters:
    """Lists, retries and dismisses dead letters, for the owner alone.

    Every change is added to the audit log.
    """

    def __init__(self, database: Database, stores: Stores, clock: Clock, publish: Publish) -> None:
        self._database, self._stores, self._clock = database, stores, clock
        self._publish = publish

    async def list_all(self, principal: Principal, *, limit: int = 100) -> list[DeadLetter]:
        """Return dead letters, newest first.

        Raises:
            Forbidden: the principal is not the owner.
        """
        principal.require_owner("read this")
        stores = self._stores

        def work() -> Read[list[DeadLetter]]:
            found = [_of_unprocessed(e) for e in (yield from stores.inbox.list_unprocessed(limit))]
            found += [_of_unsent(each) for each in (yield from stores.outbox.list_unsent(limit))]
            for run in (yield from stores.runs.list_failed_after_crashes(MAX_CRASHES, limit)):
                task = yield from stores.tasks.get(run.task_id)
                if task is not None:
                    found.append(_of_run(run, task))
            return found

        found = await self._database.read(work)
        return sorted(found, key=lambda letter: letter.given_up_at, reverse=True)[:limit]

    async def count(self) -> int:
        """Return the number of dead letters."""
        count = partial(self._stores.outbox.count_dead_letters, MAX_CRASHES)
        return await self._database.read(count)

    async def retry(
        self, letter_id: str, principal: Principal, via: Channel, *, may_repeat: bool = False
    ) -> None:
        """Process or send a message again as if it were new, or continue the task of a run.

        The task continues as a new one with the same origin, so that its chat gets the answer.
        `may_repeat`: send also a message that may have been sent; it may then appear twice.

        Raises:
            Forbidden: the principal is not the owner.
            NotFound: there is no such dead letter.
            Conflict: the message may have been sent.
        """
        principal.require_owner("retry this")
        retry = partial(
            self._retry, letter_id, may_repeat=may_repeat, ids=new_task_ids(), now=self._now()
        )
        entry = AuditEntry(self._now(), principal.id, via, "dead_letter.retried", letter_id, "")
        await self._change(retry, entry)

    async def dismiss(self, letter_id: str, principal: Principal, via: Channel) -> None:
        """Remove a dead letter from the list; its message or run is not processed.

        Raises:
            Forbidden: the principal is not the owner.
            NotFound: there is no such dead letter.
        """
        principal.require_owner("dismiss this")
        dismiss = partial(self._dismiss, letter_id)
        entry = AuditEntry(self._now(), principal.id, via, "dead_letter.dismissed", letter_id, "")
        await self._change(dismiss, entry)

    async def _change(
        self, change: Callable[[], Write[list[EventRecord]]], entry: AuditEntry
    ) -> None:
        def work() -> Write[list[EventRecord]]:
            events = yield from change()
            yield from self._stores.audit.add(entry)
            return events

        self._publish(await self._database.write(work))

    def _retry(
        self, letter_id: str, *, may_repeat: bool, ids: TaskIds, now: str
    ) -> Write[list[EventRecord]]:
        if letter_id.startswith(_INCOMING):
            found = yield from self._stores.inbox.retry(_number(letter_id))
        elif letter_id.startswith(_OUTGOING):
            found = yield from self._resend(letter_id, may_repeat=may_repeat, now=now)
        else:
            return (yield from self._continue_task(RunId(letter_id), ids, now))
        if not found:
            raise _missing(letter_id)
        return []

    def _dismiss(self, letter_id: str) -> Write[list[EventRecord]]:
        if letter_id.startswith(_INCOMING):
            found = bool((yield from self._stores.inbox.dismiss_unprocessed(_number(letter_id))))
        elif letter_id.startswith(_OUTGOING):
            found = bool((yield from self._stores.outbox.dismiss_unsent(_number(letter_id))))
        else:
            found = (yield from self._take_run(RunId(letter_id))) is not None
        if not found:
            raise _missing(letter_id)
        return []

    def _resend(self, letter_id: str, *, may_repeat: bool, now: str) -> Write[str]:
        number, outbox = _number(letter_id), self._stores.outbox
        is_unconfirmed = yield from outbox.is_unconfirmed(number)
        if is_unconfirmed and not may_repeat:
            raise Conflict(
                f"{letter_id} may have been sent. Sent again, it may appear twice.",
                reason_code="letter_may_repeat",
                letter=letter_id,
            )
        return (yield from outbox.resend(number, now, unconfirmed=bool(is_unconfirmed)))

    def _continue_task(self, run_id: RunId, ids: TaskIds, now: str) -> Write[list[EventRecord]]:
        stores = self._stores
        run = yield from self._take_run(run_id)
        task = None if run is None else (yield from stores.tasks.get(run.task_id))
        if run is None or task is None:
            raise _missing(run_id)
        submission = resume_submission(task, run, task.origin.channel, None)
        create = partial(create_task, stores, submission, task.session_id, ids=ids)
        created = yield from create(origin=task.origin, now=now)
        yield from copy_turn(stores, run_id, ids.run_id, instruction=submission.model_text)
        return created.events

    def _take_run(self, run_id: RunId) -> Write[Run | None]:
        """Remove a run from the dead letters and return it; None if it is not one of them."""
        run = yield from self._stores.runs.get(run_id)
        if run is None or run.crashes < MAX_CRASHES or run.subtask is not None:
            return None
        return run if (yield from self._stores.runs.forget_crashes(run_id)) else None

    def _now(self) -> str:
        return rfc3339(self._clock.now())


def _number(letter_id: str) -> int:
    """Return the number of a message's dead letter.

    Raises:
        NotFound: it has none.
    """
    _, _, digits = letter_id.partition("-")
    if not (digits.isdecimal() and digits.isascii() and len(digits) <= _MAX_DIGITS):
        raise _missing(letter_id)
    return int(digits)


def _missing(letter_id: str) -> NotFound:
    return NotFound(
        f"There is no dead letter {letter_id[:80]}.",
        reason_code="no_dead_letter",
        letter=letter_id[:80],
    )


def _of_unprocessed(found: UnprocessedMessage) -> DeadLetter:
    message = found.message
    return DeadLetter(
        id=f"{_INCOMING}{found.number}",
        kind="incoming",
        channel=message.channel,
        chat_id=message.chat_id,
        principal=message.principal,
        about=found.text,
        reason=found.failure,
        attempts=found.attempts,
        given_up_at=found.failed,
    )


def _of_unsent(found: UnsentMessage) -> DeadLetter:
    outgoing = found.outgoing
    return DeadLetter(
        id=f"{_OUTGOING}{found.number}",
        kind="outgoing",
        channel=outgoing.channel,
        chat_id=outgoing.chat_id,
        about=found.instruction,
        text=outgoing.body,
        run_id=outgoing.run_id,
        question_id=outgoing.question_id,
        reason=found.failure,
        attempts=found.attempts,
        may_have_been_sent=found.unconfirmed,
        given_up_at=found.settled,
    )


def _of_run(run: Run, task: Task) -> DeadLetter:
    return DeadLetter(
        id=run.id,
        kind="run",
        channel=task.origin.channel,
        chat_id=task.origin.chat_id,
        principal=task.origin.principal,
        about=task.instruction,
        run_id=run.id,
        reason=run.error,
        attempts=run.crashes,
        given_up_at=run.ended,
    )
