"""The one door that every channel knocks on: accept, submit, steer, stop, watch."""

from collections.abc import AsyncGenerator
from functools import partial
from typing import Literal

import msgspec

from internal.agent.app.answering import answer_question
from internal.agent.app.broadcaster import Delivery, EventBroadcaster
from internal.agent.app.cursor import Cursor
from internal.agent.app.ending import cancel_resting
from internal.agent.app.intake import (
    FreshIds,
    Submission,
    Submitted,
    add_task,
    checked_words,
    fresh_ids,
    inbound,
    open_session,
)
from internal.agent.app.records import Records
from internal.agent.app.watching import Shown, Watched
from internal.agent.domain.envelope import rfc3339
from internal.agent.domain.errors import Conflict, Forbidden, NotFound, Stopped
from internal.agent.domain.ids import SessionId, TaskId, new_session_id
from internal.agent.domain.principals import Principal
from internal.agent.domain.questions import Answer
from internal.agent.domain.tasks import (
    ENDED,
    Channel,
    Origin,
    Session,
    Status,
    StopRequest,
    Task,
)
from internal.agent.ports.clock import Clock
from internal.agent.ports.conversations import Inbound
from internal.agent.ports.database import Database, Write
from internal.agent.ports.dispatching import Dispatcher
from internal.agent.ports.stores import Stores


class Steered(msgspec.Struct, frozen=True):
    """What became of words for a session at work: steering for its run, or the next task."""

    taken_as: Literal["steering", "task"]
    task_id: TaskId
    run_id: str
    session_id: SessionId


class Gateway:
    """What every channel calls. What it returns is on disk."""

    def __init__(
        self,
        database: Database,
        stores: Stores,
        broadcaster: EventBroadcaster,
        dispatcher: Dispatcher,
        clock: Clock,
    ) -> None:
        self.records = Records(database, stores)
        self._database = database
        self._stores = stores
        self._broadcaster = broadcaster
        self._dispatcher = dispatcher
        self._clock = clock

    async def accept(self, message: Inbound) -> bool:
        """Keep a raw message before it is acknowledged; False when it is known already."""
        return await self._database.write(partial(self._stores.inbox.accept, message))

    async def submit(self, submission: Submission, principal: Principal) -> Submitted:
        """Store a task and queue its run. The same idempotency key returns the first task again.

        Raises:
            Malformed: the text is empty or too long.
            NotFound: the session does not exist or belongs to somebody else.
            Forbidden: the principal may not talk.
        """
        if not principal.may("talk"):
            raise Forbidden("You may not give tasks here.")
        words = checked_words(submission.instruction)
        submission = msgspec.structs.replace(submission, instruction=words)
        fresh, now = fresh_ids(), self._now()
        submitted, shown = await self._database.write(
            partial(self._submit, submission, principal, fresh, now)
        )
        self._show(shown)
        return submitted

    async def steer(
        self, task_id: TaskId, text: str, principal: Principal, channel: Channel
    ) -> Steered:
        """Give words to the run at work in the task's session, or make them its next task.

        Raises:
            Malformed: the text is empty or too long.
            NotFound: the task does not exist or belongs to somebody else.
        """
        words = checked_words(text)
        task = await self.records.task(task_id, principal)
        fresh, now = fresh_ids(), self._now()
        submission = Submission(words, task.brief, channel, task.session_id)
        steered, shown = await self._database.write(
            partial(self._steer, submission, principal, fresh, now)
        )
        self._show(shown)
        return steered

    async def stop(self, task_id: TaskId, principal: Principal, via: Channel) -> Status:
        """Stop a task's run; a running one ends within 2 s. Returns the status now.

        The request is stored before anything else, so it holds through a crash.

        Raises:
            NotFound: the task does not exist or belongs to somebody else.
            Forbidden: the principal may not operate.
            Conflict: the task has ended.
        """
        task = await self.records.task(task_id, principal)
        if not principal.may("operate") and principal.id != task.origin.principal:
            raise Forbidden("You may not stop this task.")
        stopped = Stopped(principal.id, via)
        fresh, now = fresh_ids(), self._now()
        status, shown = await self._database.write(partial(self._stop, task, stopped, fresh, now))
        if status == "running":
            run = await self.records.run_of(task_id, principal)
            self._dispatcher.leave(run.id, stopped)
        self._show(shown)
        return status

    async def open_session(self, principal: Principal, channel: Channel, title: str) -> Session:
        """Store a new session, "" for no title yet.

        Raises:
            Forbidden: the principal may not talk.
        """
        if not principal.may("talk"):
            raise Forbidden("You may not open sessions here.")
        session_id, now = new_session_id(), self._now()

        def work() -> Write[None]:
            yield from open_session(self._stores, session_id, channel, principal, now)
            if title:
                yield from self._stores.sessions.entitle(session_id, title)

        await self._database.write(work)
        return await self.records.session(session_id, principal)

    async def rename_session(
        self, session_id: SessionId, title: str, principal: Principal
    ) -> Session:
        """Give a session another title.

        Raises:
            NotFound: the session does not exist or belongs to somebody else.
        """
        await self.records.session(session_id, principal)
        rename = partial(self._stores.sessions.rename, session_id, title, self._now())
        await self._database.write(rename)
        return await self.records.session(session_id, principal)

    async def delete_session(self, session_id: SessionId, principal: Principal) -> None:
        """Delete a session with all that is its.

        Raises:
            NotFound: the session does not exist or belongs to somebody else.
            Conflict: one of its runs has not ended.
        """
        await self.records.session(session_id, principal)
        if not await self._database.write(partial(self._stores.sessions.delete, session_id)):
            raise Conflict("A task of this session has not ended: stop it first.")

    async def answer(self, answer: Answer, principal: Principal) -> None:
        """Answer a question; the first answer wins and its run goes on.

        Raises:
            NotFound: there is no such question, or it is in somebody else's session.
            Forbidden: the principal may not operate.
            Conflict: it is answered already; the sentence says by whom.
        """
        if not principal.may("operate"):
            raise Forbidden("You may not answer this question.")
        shown = await self._database.write(
            partial(answer_question, self._stores, answer, self._now())
        )
        self._show(shown)

    def watch(self, watched: Watched, start: Cursor | None) -> AsyncGenerator[list[Shown]]:
        """Yield what a stream shows; see `EventBroadcaster.watch`.

        Who may watch what is the caller's to check, with `records.session`.
        """
        return self._broadcaster.watch(watched, start)

    def _submit(
        self, submission: Submission, principal: Principal, fresh: FreshIds, now: str
    ) -> Write[tuple[Submitted, list[Delivery]]]:
        stores = self._stores
        if key := submission.idempotency_key:
            known = yield from stores.tasks.by_key(principal.id, key)
            run = None if known is None else (yield from stores.runs.of_task(known.id))
            if known is not None and run is not None:
                return Submitted(known.id, run.id, known.session_id, known.status), []
        session_id = submission.session_id
        if session_id is None:
            session_id = fresh.session_id
            yield from open_session(stores, session_id, submission.channel, principal, now)
        else:
            session = yield from stores.sessions.get(session_id)
            if session is None or not (principal.may("owner") or session.owner == principal.id):
                raise NotFound(f"There is no session {session_id}.")
        shown = yield from self._add(submission, principal, session_id, fresh, now)
        return Submitted(fresh.task_id, fresh.run_id, session_id, "queued"), shown

    def _steer(
        self, submission: Submission, principal: Principal, fresh: FreshIds, now: str
    ) -> Write[tuple[Steered, list[Delivery]]]:
        stores, session_id = self._stores, submission.session_id
        if session_id is None:
            raise NotFound("There is no session to steer.")
        run = yield from stores.runs.active(session_id)
        if run is not None:
            message = inbound(submission, fresh, principal, now)
            yield from stores.inbox.take(message, session_id, run.id, steer=True)
            return Steered("steering", run.task_id, run.id, session_id), []
        shown = yield from self._add(submission, principal, session_id, fresh, now)
        return Steered("task", fresh.task_id, fresh.run_id, session_id), shown

    def _add(
        self,
        submission: Submission,
        principal: Principal,
        session_id: SessionId,
        fresh: FreshIds,
        now: str,
    ) -> Write[list[Delivery]]:
        origin = Origin(submission.channel, principal.id, message_id=fresh.message_id)
        shown = yield from add_task(self._stores, submission, session_id, fresh, origin, now)
        message = inbound(submission, fresh, principal, now)
        yield from self._stores.inbox.take(message, session_id, fresh.run_id, steer=False)
        return shown

    def _stop(
        self, task: Task, stopped: Stopped, fresh: FreshIds, now: str
    ) -> Write[tuple[Status, list[Delivery]]]:
        run = yield from self._stores.runs.of_task(task.id)
        if run is None or run.status in ENDED:
            raise Conflict(f"The task has ended: {task.status}.")
        if run.status == "running":
            request = StopRequest(stopped.by, stopped.via, stopped.reason)
            yield from self._stores.runs.request_stop(run.id, request)
            return "running", []
        shown = yield from cancel_resting(self._stores, run, task, stopped, fresh, now)
        return "cancelled", shown

    def _show(self, shown: list[Delivery]) -> None:
        if shown:
            self._broadcaster.publish(shown)
        self._dispatcher.wake()

    def _now(self) -> str:
        return rfc3339(self._clock.now())
