"""The one door that every channel knocks on: accept, submit, say, steer, stop, answer, watch."""

from collections.abc import AsyncGenerator, Sequence
from functools import partial

import msgspec

from internal.agent.app.access import Access
from internal.agent.app.chat_delivery import ChatDelivery
from internal.agent.app.chats import Chats
from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.events.subscription import Cursor, SessionFilter, StreamItem
from internal.agent.app.queries import Queries
from internal.agent.app.run_displays import RunDisplays
from internal.agent.app.runs.creation import (
    Submission,
    Submitted,
    clean_instruction,
    new_task_ids,
    open_session,
    resume_submission,
)
from internal.agent.app.runs.finalization import RECALLED
from internal.agent.app.runs.permission_rules import remove_rule
from internal.agent.app.runs.questions import Actor, answer_question
from internal.agent.app.task_commands import (
    INTERRUPTED_REASON,
    RecallRequest,
    RecallResult,
    Steered,
    interrupt_session,
    mark_handled,
    recall_message,
    steer,
    stop_task,
    submit_task,
)
from internal.agent.domain.answers import AnswerInput
from internal.agent.domain.chats import InboundMessage, OutgoingMessage
from internal.agent.domain.errors import Conflict, Forbidden, RunStopped
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.events.record import EventRecord
from internal.agent.domain.ids import QuestionId, SessionId, TaskId, new_session_id
from internal.agent.domain.principals import Principal
from internal.agent.domain.questions import QuestionRecord
from internal.agent.domain.tasks import Channel, Session, Status
from internal.agent.ports.runtime import Clock, Dispatcher
from internal.agent.store.access import AuditEntry, PermissionRule
from internal.agent.store.database import Database, Write
from internal.agent.store.stores import Stores


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
        self.queries = Queries(database, stores)
        self.access = Access(database, stores, clock)
        self.delivery = ChatDelivery(database, stores, clock)
        self.chats = Chats(database, stores)
        self.run_displays = RunDisplays(database, stores, clock)
        self._database = database
        self._stores = stores
        self._broadcaster = broadcaster
        self._dispatcher = dispatcher
        self._clock = clock

    async def submit(self, submission: Submission, principal: Principal) -> Submitted:
        """Store a task and queue its run. The same idempotency key returns the first task again.

        Raises:
            Malformed: the text is empty or too long.
            NotFound: the session does not exist or belongs to somebody else.
            Forbidden: the principal may not talk.
        """
        submission = _checked(submission, principal)
        fresh, now = new_task_ids(), self._now()
        submitted, shown = await self._database.write(
            partial(submit_task, self._stores, submission, principal, fresh, now)
        )
        self._show(shown)
        return submitted

    async def steer(self, submission: Submission, principal: Principal) -> Steered:
        """Give words to the run at work in a session; without one they are its next task.

        Raises:
            Malformed: the text is empty or too long.
            NotFound: the session does not exist or belongs to somebody else.
            Forbidden: the principal may not talk.
        """
        submission = _checked(submission, principal)
        fresh, now = new_task_ids(), self._now()
        steered, shown = await self._database.write(
            partial(steer, self._stores, submission, principal, fresh, now)
        )
        self._show(shown)
        return steered

    async def mark_handled(
        self, message: InboundMessage, replies: Sequence[OutgoingMessage] = ()
    ) -> bool:
        """Settle an accepted message without a run, and promise the replies to it.

        False when it was settled or taken in before; nothing is promised then.
        """
        work = partial(mark_handled, self._stores, message, replies, self._now())
        return await self._database.write(work)

    async def steer_task(
        self, task_id: TaskId, text: str, principal: Principal, channel: Channel
    ) -> Steered:
        """Give words to the run at work in the task's session, or make them its next task.

        Raises:
            Malformed: the text is empty or too long.
            NotFound: the task does not exist or belongs to somebody else.
        """
        task = await self.queries.task(task_id, principal)
        return await self.steer(Submission(text, task.brief, channel, task.session_id), principal)

    async def stop(self, task_id: TaskId, principal: Principal, via: Channel) -> Status:
        """Stop a task's run; a running one ends within 2 s. Returns the status now.

        The request is stored before anything else, so it holds through a crash.

        Raises:
            NotFound: the task does not exist or belongs to somebody else.
            Forbidden: the principal may not operate.
            Conflict: the task has ended.
        """
        task = await self.queries.task(task_id, principal)
        if not principal.may("operate") and principal.id != task.origin.principal:
            raise Forbidden("You may not stop this task.")
        stopped = RunStopped(principal.id, via, name=principal.name)
        fresh, now = new_task_ids(), self._now()
        status, shown = await self._database.write(
            partial(stop_task, self._stores, task, stopped, fresh, now)
        )
        if status == "running":
            run = await self.queries.latest_run(task_id, principal)
            self._dispatcher.cancel(run.id, stopped)
        self._show(shown)
        return status

    async def interrupt(self, submission: Submission, principal: Principal) -> Submitted:
        """Stop the run at work in a session; the words are its next task. Raises as `say`."""
        submission = _checked(submission, principal)
        fresh, now = new_task_ids(), self._now()
        submitted, running, shown = await self._database.write(
            partial(interrupt_session, self._stores, submission, principal, fresh, now)
        )
        if running is not None:
            self._dispatcher.cancel(
                running, RunStopped(principal.id, submission.channel, INTERRUPTED_REASON)
            )
        self._show(shown)
        return submitted

    async def recall(self, recall: RecallRequest) -> RecallResult:
        """Take a message back that is not answered: its run ends, or it is not told to one."""
        fresh, now = new_task_ids(), self._now()
        recalled, running, shown = await self._database.write(
            partial(recall_message, self._stores, recall, fresh, now)
        )
        if running is not None:
            self._dispatcher.cancel(running, RunStopped(recall.by, recall.channel, RECALLED))
        self._show(shown)
        return recalled

    async def resume(
        self,
        task_id: TaskId,
        principal: Principal,
        channel: Channel,
        message: InboundMessage | None = None,
    ) -> Submitted:
        """Go on with a task that failed or was stopped, as the next task of its session.

        `message` is the accepted message that asks for it.

        Raises:
            NotFound: the task does not exist or belongs to somebody else.
            Forbidden: the principal may not talk.
            Conflict: it has not ended, or is done.
        """
        task = await self.queries.task(task_id, principal)
        return await self.submit(resume_submission(task, channel, message), principal)

    async def open_session(
        self, principal: Principal, channel: Channel, title: str = "", scope: str = ""
    ) -> Session:
        """Store a new session, "" for no title yet. It is the one at hand in its scope.

        Raises:
            Forbidden: the principal may not talk.
        """
        if not principal.may("talk"):
            raise Forbidden("You may not open sessions here.")
        session_id, now = new_session_id(), self._now()

        def work() -> Write[None]:
            yield from open_session(self._stores, session_id, channel, principal, now, scope)
            if title:
                yield from self._stores.sessions.set_title_if_empty(session_id, title)

        await self._database.write(work)
        return await self.queries.session(session_id, principal)

    async def rename_session(
        self, session_id: SessionId, title: str, principal: Principal
    ) -> Session:
        """Give a session another title.

        Raises:
            NotFound: the session does not exist or belongs to somebody else.
        """
        await self.queries.session(session_id, principal)
        rename = partial(self._stores.sessions.rename, session_id, title, self._now())
        await self._database.write(rename)
        return await self.queries.session(session_id, principal)

    async def delete_session(self, session_id: SessionId, principal: Principal) -> None:
        """Delete a session with all that is its; that it was deleted stays noted.

        Raises:
            NotFound: the session does not exist or belongs to somebody else.
            Conflict: one of its runs has not ended.
        """
        session = await self.queries.session(session_id, principal)
        deed = AuditEntry(self._now(), principal.id, session.channel, "session.deleted", session_id)

        def work() -> Write[None]:
            if not (yield from self._stores.sessions.delete(session_id)):
                raise Conflict("A task of this session has not ended: stop it first.")
            yield from self._stores.audit.add(deed)

        await self._database.write(work)

    async def answer(
        self,
        question_id: QuestionId,
        given: AnswerInput,
        answerer: Actor,
        message: InboundMessage | None = None,
    ) -> QuestionRecord:
        """Answer a question; the first answer wins and its run goes on.

        `message` is the accepted message that the answer came in, settled with it.

        Raises:
            NotFound: there is no such question for this person.
            Forbidden: they may not answer it.
            Malformed: the answer does not fit the question.
            Conflict: it is closed already; the sentence says by whom.
        """
        now = self._now()
        work = partial(answer_question, self._stores, question_id, given, answerer, message, now)
        try:
            answered, shown = await self._database.write(work)
        except Forbidden as error:
            who = answerer.principal.id
            deed = AuditEntry(now, who, answerer.via, "question.refused", question_id, str(error))
            await self._database.write(partial(self._stores.audit.add, deed))
            raise
        self._show(shown)
        return answered

    async def remove_rule(self, number: int, principal: Principal, via: Channel) -> PermissionRule:
        """Take a written rule back; runs that begin or go on later lack it. Raises as granting."""
        remove = partial(remove_rule, self._stores, number, principal, via, self._now())
        return await self._database.write(remove)

    def watch(
        self, watched: SessionFilter, start: Cursor | None
    ) -> AsyncGenerator[list[StreamItem]]:
        """Yield what a stream shows; see `EventBroadcaster.watch`.

        Who may watch what is the caller's to check, with `queries.session`.
        """
        return self._broadcaster.watch(watched, start)

    @property
    def is_closed(self) -> bool:
        """True once streams end because the process stops."""
        return self._broadcaster.closed

    def cursor(self, position: int) -> Cursor:
        """Return the cursor of a position in the log of this process."""
        return Cursor(self._broadcaster.epoch, position)

    def _show(self, shown: list[EventRecord]) -> None:
        if shown:
            self._broadcaster.publish(shown)
        self._dispatcher.wake()

    def _now(self) -> str:
        return rfc3339(self._clock.now())


def _checked(submission: Submission, principal: Principal) -> Submission:
    """Return a submission with its words as they may be stored, of somebody who may talk."""
    if not principal.may("talk"):
        raise Forbidden("You may not give tasks here.")
    words = clean_instruction(submission.instruction)
    return msgspec.structs.replace(submission, instruction=words)
