"""The gateway: the facade that all channels call."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractContextManager, aclosing, suppress
from functools import partial
from typing import TypeVar

import msgspec

from internal.agent.app.access import Access, remove_rule
from internal.agent.app.administration.dead_letters import DeadLetters
from internal.agent.app.administration.mcp_servers import McpAdministration
from internal.agent.app.administration.skills import SkillAdministration
from internal.agent.app.background_task import wait_for_completion
from internal.agent.app.chat_delivery import ChatDelivery
from internal.agent.app.chats import Chats
from internal.agent.app.conversations import Conversations
from internal.agent.app.edited_messages import EditResult, MessageEdit, edit_message
from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.events.live_buffer import LiveSink, SessionFilter
from internal.agent.app.events.subscription import Cursor, StreamItem
from internal.agent.app.feedback import (
    AnswerRating,
    FeedbackItem,
    list_feedback,
    rate_answer,
    rate_task,
)
from internal.agent.app.files.changed_files import ChangedFiles
from internal.agent.app.files.session_files import SessionFiles
from internal.agent.app.files.worktree_changes import WorktreeApplier
from internal.agent.app.hosts.moves import MovedSession, move_session
from internal.agent.app.hosts.workspace_keeper import new_version
from internal.agent.app.processes.process_list import ProcessList
from internal.agent.app.queries import Queries
from internal.agent.app.received_messages import ReceivedMessages
from internal.agent.app.repeated_requests import RepeatedRequests
from internal.agent.app.run_displays import RunDisplays
from internal.agent.app.runs.answers import answer_question
from internal.agent.app.runs.creation import (
    StoredTask,
    Submission,
    Submitted,
    checked_submission,
    clean_text,
    new_task_ids,
    resume_submission,
)
from internal.agent.app.runs.finalization import RECALLED
from internal.agent.app.runs.questions import Actor
from internal.agent.app.runs.visibility import Writing
from internal.agent.app.session_commands import SessionCommands
from internal.agent.app.task_commands import (
    RecallRequest,
    RecallResult,
    Steered,
    fork_session,
    interrupt_session,
    mark_handled,
    move_to_background,
    recall_message,
    steer,
    stop_task,
    submit_task,
)
from internal.agent.app.waiting_messages import WaitingMessages
from internal.agent.domain.answers import AnswerInput
from internal.agent.domain.artifacts import Artifact, display_caption
from internal.agent.domain.chats import InboundMessage, OutgoingMessage
from internal.agent.domain.errors import Conflict, Forbidden, MessageRefused, RunStopped
from internal.agent.domain.events.envelope import EventRecord, rfc3339
from internal.agent.domain.ids import (
    ArtifactId,
    QuestionId,
    RunId,
    SessionId,
    TaskId,
    new_session_id,
)
from internal.agent.domain.permissions.rules import PermissionRule
from internal.agent.domain.principals import AuditEntry, Principal
from internal.agent.domain.questions import QuestionRecord
from internal.agent.domain.tasks import (
    Attachment,
    Channel,
    Feedback,
    Run,
    Session,
    SessionMarks,
    Status,
    Task,
    chat_name,
    may_control,
)
from internal.agent.ports.commands import BackgroundCommands
from internal.agent.ports.hooks import NO_HOOKS, HookInput, Hooks
from internal.agent.ports.reviews import Reviews
from internal.agent.ports.runtime import Clock, Dispatcher
from internal.agent.store.database import Database, Write
from internal.agent.store.stores import Stores

T = TypeVar("T")

_EVENTS_WITH_MESSAGES = frozenset(
    {
        "workflow.result.final",
        "workflow.result.cancelled",
        "workflow.question.asked",
        "workflow.question.answered",
    }
)
"""Events whose transactions add messages to the outbox."""

_ENDS = frozenset({"workflow.result.final", "workflow.result.cancelled"})

RETENTION = "retention"
"""Who deletes old sessions, in the audit log."""


class Gateway:
    """Facade used by all channels. When a method returns, its changes are on disk.

    Methods that take a principal check its rights. `hooks` are asked about each task and each
    message to a run before it is stored. `worktrees` applies the changes of subtasks, `processes`
    are the gateways and workers of the database, `changed_files` the files of workspaces.
    """

    hooks: Hooks = NO_HOOKS
    processes: ProcessList
    worktrees: WorktreeApplier
    changed_files: ChangedFiles

    def __init__(
        self,
        database: Database,
        stores: Stores,
        *,
        broadcaster: EventBroadcaster,
        dispatcher: Dispatcher,
        clock: Clock,
        files: SessionFiles,
        commands: BackgroundCommands,
        reviews: Reviews,
    ) -> None:
        self.queries = Queries(database, stores)
        self.access = Access(database, stores, clock)
        self.delivery = ChatDelivery(database, stores, clock)
        self.chats = Chats(database, stores)
        self.waiting = WaitingMessages(
            database, stores, queries=self.queries, broadcaster=broadcaster, clock=clock
        )
        self.run_displays = RunDisplays(database, stores, clock)
        self.conversations = Conversations(database, stores, clock)
        self.repeated_requests = RepeatedRequests(database, stores, clock)
        self.skills = SkillAdministration(database, stores, clock, reviews.skills)
        self.mcp = McpAdministration(database, stores, clock, reviews.mcp)
        self.dead_letters = DeadLetters(database, stores, clock, self._publish_retried)
        self.files = files
        self.commands = SessionCommands(self.queries, commands)
        self._commands = commands
        self._database = database
        self._stores = stores
        self._broadcaster = broadcaster
        self._dispatcher = dispatcher
        self._clock = clock

    def received_messages(self, channel: Channel, app: str) -> ReceivedMessages:
        """Return the received messages of an account of a chat service."""
        return ReceivedMessages(self._database, self._stores, channel, app)

    async def mark_handled(
        self, message: InboundMessage, replies: Sequence[OutgoingMessage] = ()
    ) -> bool:
        """Mark an accepted message as handled without a run, and queue replies to it.

        Returns False if the message was handled before; no reply is queued then.
        """
        work = partial(mark_handled, self._stores, message, replies, now=self._now())
        return await self._database.write(work)

    async def submit(self, submission: Submission, principal: Principal) -> Submitted:
        """Store a task and queue its run. A repeated idempotency key returns the first task.

        Raises:
            InvalidRequest: the text is empty or too long.
            NotFound: the session does not exist or belongs to another person.
            Forbidden: the principal may not submit tasks.
            MessageRefused: a hook refused it; it may be asked again about a repeated request.
            TooManyTasks: so many tasks of the person wait that no more are accepted.
        """
        submission = await self._accepted(submission, principal)
        return await self._create(partial(submit_task, self._stores, submission, principal))

    async def steer(self, submission: Submission, principal: Principal) -> Steered:
        """Send a message to the active run of a session, else make it the next task.

        Only who may stop a run may steer it, and a chat message only a run of its own thread.

        A repeated idempotency key returns the first result.

        Raises as `submit` does.
        """
        return (await self.steer_or_queue(submission, principal))[0]

    async def steer_or_queue(
        self, submission: Submission, principal: Principal
    ) -> tuple[Steered, bool]:
        """Steer as `steer` does. The second result is True for a task that waits for another."""
        submission = await self._accepted(submission, principal)
        return await self._create(partial(steer, self._stores, submission, principal))

    async def steer_task(
        self,
        task_id: TaskId,
        text: str,
        principal: Principal,
        *,
        channel: Channel,
        idempotency_key: str | None = None,
        writing: Writing = None,
        prompt: str = "",
    ) -> Steered:
        """Send a message to the session of a task, or to a task in the background.

        The model reads `prompt` in place of the text, unless it is "". Raises as `steer` does.
        """
        task = await self.queries.task(task_id, principal)
        submission = Submission(
            text,
            task.spec,
            channel,
            task.session_id,
            idempotency_key=idempotency_key,
            joins=None if task.lane == task.session_id else task_id,
            writing=writing,
            prompt=prompt,
        )
        return await self.steer(submission, principal)

    async def move_to_background(self, task_id: TaskId, principal: Principal) -> Task:
        """Let an unfinished task go on beside its session, whose next task can start at once.

        No effect on a task that is in the background already.

        Raises:
            NotFound: the task does not exist or belongs to another person.
            Forbidden: the principal may not control the task.
            Conflict: the task has ended.
        """
        task = await self.queries.task(task_id, principal)
        if not may_control(principal, task):
            raise Forbidden("You may not move this task.", reason_code="may_not_move_task")
        await self._database.write(partial(move_to_background, self._stores, task))
        self._dispatcher.wake()
        return await self.queries.task(task_id, principal)

    async def interrupt(self, submission: Submission, principal: Principal) -> Submitted:
        """Make a message the next task of a session and stop its running run.

        A run that the message could not steer is not stopped.

        Raises as `submit` does.
        """
        submission = await self._accepted(submission, principal)
        submitted, interruption, events = await self._database.write(
            partial(
                interrupt_session,
                self._stores,
                submission,
                principal,
                ids=new_task_ids(),
                now=self._now(),
            )
        )
        if interruption is not None:
            self._dispatcher.cancel(interruption.run_id, interruption.request.to_error())
        self._publish(events)
        return submitted

    async def stop(
        self,
        task_id: TaskId,
        principal: Principal,
        via: Channel,
        *,
        idempotency_key: str | None = None,
        writing: Writing = None,
    ) -> Status:
        """Stop a task. A running run ends as cancelled within 2 s. Returns the status of the task.

        The request is stored first, so it takes effect even if this process crashes, and whether
        the run is about to pause or to end. A repeated idempotency key returns the first result.
        `writing` says when a text was written that does not name the task.

        Raises:
            NotFound: the task does not exist or belongs to another person.
            Forbidden: the principal may not stop the task.
            Conflict: the task has ended.
            WrittenEarlier: the text was written before the run of the task began.
        """
        task = await self.queries.task(task_id, principal)
        if not may_control(principal, task):
            raise Forbidden("You may not stop this task.", reason_code="may_not_stop")
        stopped = RunStopped(principal.id, via, name=principal.name)
        return await self.stop_by_channel(
            task, stopped, idempotency_key=idempotency_key, writing=writing
        )

    async def stop_by_channel(
        self,
        task: Task,
        stopped: RunStopped,
        *,
        idempotency_key: str | None = None,
        writing: Writing = None,
    ) -> Status:
        """Stop a task as `stop` does, without a check of rights.

        Raises:
            Conflict: the task has ended.
            WrittenEarlier: the text was written before the run of the task began.
        """
        status, running, events = await self._database.write(
            partial(
                stop_task,
                self._stores,
                task,
                stopped,
                ids=new_task_ids(),
                now=self._now(),
                idempotency_key=idempotency_key,
                writing=writing,
            )
        )
        if running is not None:
            self._dispatcher.cancel(running, stopped)
        self._publish(events)
        return status

    async def resume(
        self,
        task_id: TaskId,
        principal: Principal,
        channel: Channel,
        message: InboundMessage | None = None,
    ) -> Submitted:
        """Continue a failed or stopped task as the next task of its session.

        A failed task continues from its last checkpoint.

        `message` is the accepted message that contains the request.

        Raises:
            NotFound: the task does not exist or belongs to another person.
            Forbidden: the principal may not submit tasks.
            Conflict: the task has not ended, or it is completed.
        """
        task, run = await self.queries.task_with_run(task_id, principal)
        return await self.submit(resume_submission(task, run, channel, message), principal)

    async def rate_task(self, task_id: TaskId, feedback: Feedback, principal: Principal) -> Task:
        """Replace a person's feedback on an ended task; without rating and comment, remove it.

        Raises:
            NotFound: the task does not exist, or its session belongs to another person.
            Conflict: the task has not ended.
        """
        task = await self.queries.task(task_id, principal)
        await self.queries.session(task.session_id, principal)
        given = msgspec.structs.replace(
            feedback, comment=clean_text(feedback.comment), by=principal.id, at=self._now()
        )
        rate = partial(rate_task, self._stores, task_id, given, now=self._now())
        self._publish(await self._database.write(rate))
        return await self.queries.task(task_id, principal)

    async def rate_answer(self, given: AnswerRating) -> TaskId | None:
        """Store the rating of a message of a chat; the channel checks the rights of the person.

        Returns the task whose feedback changed, None if none did: the message answers no task, or
        the rating is not new.
        """
        rate = partial(rate_answer, self._stores, given, now=self._now())
        task_id, events = await self._database.write(rate)
        self._publish(events)
        return task_id

    async def list_feedback(self, principal: Principal, *, limit: int = 100) -> list[FeedbackItem]:
        """Return the feedback on tasks, the newest tasks first.

        Raises:
            Forbidden: the principal is not the owner.
        """
        principal.require_owner("read this")
        return await self._database.read(partial(list_feedback, self._stores, limit))

    async def recall(self, recall: RecallRequest) -> RecallResult:
        """Undo the effects of a recalled message, unless it is answered already."""
        result, running, events = await self._database.write(
            partial(recall_message, self._stores, recall, ids=new_task_ids(), now=self._now())
        )
        if running is not None:
            stopped = RunStopped(running.by, recall.channel, RECALLED)
            self._dispatcher.cancel(running.run_id, stopped)
        self._publish(events)
        return result

    async def edit(self, edit: MessageEdit, principal: Principal) -> EditResult:
        """Replace a message that waits for its run, or send the new text to its run.

        Raises:
            InvalidRequest: the text is empty or too long.
            Forbidden: the principal may not submit tasks.
            MessageRefused: a hook refused it.
        """
        submission = await self._accepted(edit.submission, principal)
        notice = checked_submission(edit.notice, principal)
        edit = msgspec.structs.replace(edit, submission=submission, notice=notice)
        work = partial(edit_message, self._stores, edit, now=self._now())
        result, _, events = await self._database.write(work)
        self._publish(events)
        return result

    async def answer(
        self,
        question_id: QuestionId,
        answer_input: AnswerInput,
        actor: Actor,
        message: InboundMessage | None = None,
        *,
        attachments: tuple[Attachment, ...] = (),
        idempotency_key: str | None = None,
    ) -> QuestionRecord:
        """Answer a question; the first answer counts and its run continues.

        `message` is the accepted message that contained the answer; it is marked as handled.
        `attachments` are the files of an answer without one. A repeated idempotency key
        changes nothing and returns the question of the first request.

        Raises:
            NotFound: the question does not exist or the actor must not see it.
            Forbidden: the actor may not answer it. The attempt is added to the audit log.
            InvalidRequest: the answer does not fit the question.
            Conflict: the question is closed; the message says by whom.
            WrittenEarlier: the writer of the answer could not have seen the question.
        """
        now = self._now()
        work = partial(
            answer_question,
            self._stores,
            question_id,
            answer_input,
            actor=actor,
            message=message,
            attachments=attachments,
            ids=new_task_ids(),
            now=now,
            idempotency_key=idempotency_key,
        )
        try:
            answered, events = await self._database.write(work)
        except Forbidden as error:
            by = actor.principal.id
            entry = AuditEntry(now, by, actor.via, "question.refused", question_id, str(error))
            await self._database.write(partial(self._stores.audit.add, entry))
            raise
        self._publish(events)
        return answered

    async def remove_rule(self, number: int, principal: Principal, via: Channel) -> PermissionRule:
        """Remove a permission rule. Runs that start or resume later no longer use it.

        Raises:
            NotFound: the rule does not exist or the principal is not the owner.
        """
        remove = partial(remove_rule, self._stores, number, principal, via=via, now=self._now())
        return await self._database.write(remove)

    async def open_session(
        self, principal: Principal, channel: Channel, *, title: str = "", scope: str = ""
    ) -> Session:
        """Store a new session, which becomes the current one of its scope.

        Raises:
            Forbidden: the principal may not open sessions.
        """
        if not principal.may("talk"):
            raise Forbidden("You may not open sessions here.", reason_code="may_not_open_sessions")
        session_id, now = new_session_id(), self._now()

        session = Session(session_id, title, channel, principal.id, now, now, scope)
        await self._database.write(partial(self._stores.sessions.add, session))
        return session

    async def change_session(
        self,
        session_id: SessionId,
        principal: Principal,
        *,
        title: str | None = None,
        marks: SessionMarks | None = None,
    ) -> Session:
        """Change the title of a session and how it is listed; None leaves it as it is.

        Raises:
            NotFound: the session does not exist or belongs to another person.
        """
        await self.queries.session(session_id, principal)
        now = self._now()

        def work() -> Write[None]:
            if title is not None:
                yield from self._stores.sessions.rename(session_id, title, now)
            if marks is not None:
                yield from self._stores.sessions.mark(session_id, marks, now)

        await self._database.write(work)
        return await self.queries.session(session_id, principal)

    async def fork_session(
        self,
        session_id: SessionId,
        principal: Principal,
        channel: Channel,
        *,
        run_id: RunId | None = None,
        includes_run: bool = False,
        title: str | None = None,
    ) -> Session:
        """Create a session of the principal with a copy of another one's messages.

        They are those before the run, with `includes_run` also its own; without a run all of them.
        The new session keeps the attachments of the messages; it has no other files of the old one.

        Raises:
            NotFound: the session or the run does not exist or belongs to another person.
            Conflict: a run that is to be included has no messages yet.
        """
        source = await self.queries.session(session_id, principal)
        now = self._now()
        fork = Session(
            new_session_id(),
            title or source.title,
            channel,
            principal.id,
            now,
            now,
            forked_from=source.id,
            permission_mode=source.permission_mode,
            plan_review=source.plan_review,
        )
        await self._database.write(
            partial(
                fork_session, self._stores, source, fork, run_id=run_id, includes_run=includes_run
            )
        )
        return fork

    async def move_session(
        self, session_id: SessionId, principal: Principal, via: Channel, *, host: str
    ) -> MovedSession:
        """Let a host execute the next task of a session; "" stands for any host.

        The files that the session has on its host stay there: the next task has the files of the
        newest archive, or none.

        Raises:
            NotFound: the session does not exist or belongs to another person.
            Forbidden: the principal may not operate.
            InvalidRequest: there is no such host.
            Conflict: a task of the session is running.
        """
        session = await self.queries.session(session_id, principal)
        if not principal.may("operate"):
            raise Forbidden("You may not move this session.", reason_code="may_not_move_session")
        move = partial(
            move_session,
            self._stores,
            session.id,
            host,
            by=principal.id,
            via=via,
            now=self._now(),
            version=new_version(),
        )
        moved = await self._database.write(move)
        self._dispatcher.wake()
        return moved

    async def change_artifact(
        self,
        artifact_id: ArtifactId,
        principal: Principal,
        *,
        favourite: bool | None = None,
        caption: str | None = None,
    ) -> Artifact:
        """Change whether an artifact is a favourite, and its caption; None leaves it as it is.

        Raises:
            NotFound: the artifact does not exist or belongs to another person.
        """
        artifact = await self.queries.artifact(artifact_id, principal)
        changed = msgspec.structs.replace(
            artifact,
            favourite=artifact.favourite if favourite is None else favourite,
            caption=artifact.caption if caption is None else display_caption(caption),
        )
        await self._database.write(partial(self._stores.artifacts.change, changed))
        return await self.queries.artifact(artifact_id, principal)

    async def delete_session(self, session_id: SessionId, principal: Principal) -> None:
        """Delete a session, its data and the files that only it used; an audit entry remains.

        Files that cannot be removed now are removed by `SessionFiles.remove_unused` later.

        Raises:
            NotFound: the session does not exist or belongs to another person.
            Conflict: one of its runs has not ended.
        """
        session = await self.queries.session(session_id, principal)
        entry = AuditEntry(
            self._now(), principal.id, session.channel, "session.deleted", session_id, ""
        )
        if not await self._remove_session(session_id, entry):
            raise Conflict(
                "A task of this session has not ended. Stop it first.",
                reason_code="session_not_ended",
            )
        await self.files.remove_unused()

    async def delete_idle_session(self, session_id: SessionId, since: str) -> bool:
        """Delete a session as `delete_session` does, because of its age.

        Its files are removed by `SessionFiles.remove_unused`. Return False if it is pinned, was
        active since that time (RFC 3339) or does not exist.
        """
        entry = AuditEntry(
            self._now(), RETENTION, RETENTION, "session.deleted", session_id, f"idle since {since}"
        )
        return await self._remove_session(session_id, entry, idle_since=since)

    async def _remove_session(
        self, session_id: SessionId, entry: AuditEntry, *, idle_since: str | None = None
    ) -> bool:
        def work() -> Write[bool]:
            retention = self._stores.retention
            if idle_since is not None and not (
                yield from retention.is_idle(session_id, idle_since)
            ):
                return False
            if not (yield from self._stores.sessions.delete(session_id)):
                return False
            yield from self._stores.files.release_session(session_id)
            yield from self._stores.audit.add(entry)
            return True

        if not await self._database.write(work):
            return False
        self._broadcaster.forget_session(session_id)
        await self._commands.end_session(session_id)
        return True

    async def wait_for_run(
        self, submitted: Submitted, principal: Principal, seconds: float
    ) -> tuple[Task, Run]:
        """Return a task and its run when that has ended or waits for a person.

        After `seconds`, or when the process stops, they are returned as they are.
        """
        read = partial(self.queries.task_with_run, submitted.task_id, principal)
        batches = self._broadcaster.watch(frozenset({submitted.session_id}), None)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), aclosing(batches):
                async for batch in batches:
                    if not any(map(_may_settle, batch)):
                        continue
                    task, run = await read()
                    if run.is_settled:
                        return task, run
        return await read()

    def watch(
        self, sessions: SessionFilter, start: Cursor | None, sink: LiveSink | None = None
    ) -> AsyncGenerator[list[StreamItem]]:
        """Yield the items of a stream in batches; see `EventBroadcaster.watch`.

        Rights are not checked here: call `queries.session` first.
        """
        return self._broadcaster.watch(sessions, start, sink)

    def listen_for_messages(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `wake` as soon as messages to send were stored, for the length of a block.

        This applies to runs that end, ask or are answered, whatever causes it.
        """

        def on_event(record: EventRecord) -> None:
            if record.event in _EVENTS_WITH_MESSAGES:
                wake()

        return self._broadcaster.listen(on_event)

    def listen(self, listener: Callable[[EventRecord], None]) -> AbstractContextManager[None]:
        """Call a function with each event that this process stores; see `EventBroadcaster.listen`.

        Those of other processes may be missing.
        """
        return self._broadcaster.listen(listener)

    def watch_commits(self, callback: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `callback` after commits of other processes; see `Database.watch`."""
        return self._database.watch(callback)

    @property
    def is_closed(self) -> bool:
        """True once streams end because the process stops."""
        return self._broadcaster.closed

    def cursor(self, position: int) -> Cursor:
        """Return the cursor of a position in the log of this process."""
        return Cursor(self._broadcaster.epoch, position)

    async def _accepted(self, submission: Submission, principal: Principal) -> Submission:
        """Return the submission with its texts cleaned, unless it is refused."""
        submission = checked_submission(submission, principal)
        if self.hooks.watches("message_received"):
            message = submission.message
            given = HookInput(
                hook_event_name="message_received",
                session_id=submission.session_id,
                channel=submission.channel,
                chat=chat_name(message.channel, message.app, message.chat_id) if message else "",
                person=principal.id,
                prompt=submission.instruction,
            )
            if reason := await self.hooks.receive_message(given):
                raise MessageRefused(reason, reason_code="refused_by_hook", words=reason)
        return submission

    def _publish_retried(self, events: list[EventRecord]) -> None:
        self._publish(events)
        self.delivery.wake_loops()

    async def _create(self, work: Callable[..., Write[tuple[T, StoredTask]]]) -> T:
        """Execute the work of a submission, and start the run that it claims, if it does."""
        # to its end, because a claim cannot be undone
        return await wait_for_completion(self._create_and_start(work))

    async def _create_and_start(self, work: Callable[..., Write[tuple[T, StoredTask]]]) -> T:
        ids = new_task_ids()
        with self._dispatcher.reserve(ids.run_id) as slot:
            result, created = await self._database.write(
                partial(work, ids=ids, now=self._now(), slot=slot)
            )
            if slot is None or created.claimed is None:
                self._publish(created.events)
            else:
                self._broadcaster.publish(created.events)
                await slot.start(created.claimed)
        return result

    def _publish(self, events: list[EventRecord]) -> None:
        if events:
            self._broadcaster.publish(events)
        for event in events:
            if event.event in _ENDS:
                self._commands.request_end(event.run_id)
        self._dispatcher.wake()

    def _now(self) -> str:
        return rfc3339(self._clock.now())


def _may_settle(item: StreamItem) -> bool:
    """Return True if a run may have ended or asked: also before the stream began."""
    return not isinstance(item, EventRecord) or item.event in _EVENTS_WITH_MESSAGES
