"""The gateway of a terminal process, which executes the tasks that it accepts."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import Self

import msgspec

from internal.agent.app.background_task import background_task
from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.files.session_files import SessionFiles
from internal.agent.app.gateway import Gateway
from internal.agent.app.queries import SubtaskItem
from internal.agent.app.runs.coordinator import AgentCoordinator
from internal.agent.app.runs.creation import Submission, Submitted
from internal.agent.app.runs.questions import Actor
from internal.agent.app.task_commands import Steered
from internal.agent.domain.answers import AnswerInput
from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.errors import LarkspurError, StoreUnavailable
from internal.agent.domain.ids import QuestionId, RunId, SessionId, TaskId
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.agent.domain.questions import QuestionRecord
from internal.agent.domain.tasks import ENDED, Attachment, Run
from internal.agent.ports.commands import BackgroundCommands
from internal.agent.ports.reviews import Reviews
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.dispatch.leases import LeaseKeeper
from internal.dispatch.terminal import TerminalDispatcher

RETRY_SECONDS = 1.0
"""Time to wait after a failure of the database before a run is executed again."""


class TerminalRunner(msgspec.Struct, frozen=True):
    """Executes the runs of one terminal process.

    Attributes:
        waits: keep a run that waits for a person until it is answered; otherwise release it.
        on_error: receives the error of a run that could not be stored. A runner that waits
            continues the run when the database works again.
    """

    dispatcher: TerminalDispatcher
    coordinator: AgentCoordinator
    leases: LeaseKeeper
    waits: bool
    on_error: Callable[[BaseException], None]


class TerminalGateway(Gateway):
    """A gateway whose tasks are owned and executed by this process.

    It also executes the subtasks that its runs create, and the reports about them.

    Leaving its context stops the executing runs, with their subtasks, and waits until that is
    stored. Runs that wait for a person are released, so that another process can continue them.
    """

    def __init__(
        self,
        database: Database,
        stores: Stores,
        broadcaster: EventBroadcaster,
        *,
        runner: TerminalRunner,
        clock: Clock,
        files: SessionFiles,
        commands: BackgroundCommands,
        reviews: Reviews,
    ) -> None:
        super().__init__(
            database,
            stores,
            broadcaster=broadcaster,
            dispatcher=runner.dispatcher,
            clock=clock,
            files=files,
            commands=commands,
            reviews=reviews,
        )
        self._runner = runner
        self._runs: dict[RunId, tuple[asyncio.Task[None], TaskId]] = {}
        self._running, self._watching = AsyncExitStack(), AsyncExitStack()

    async def __aenter__(self) -> Self:
        dispatcher = self._runner.dispatcher
        self._running.enter_context(self._broadcaster.listen(dispatcher.on_event))
        await self._running.enter_async_context(background_task(dispatcher.keep_leases()))
        watch = dispatcher.watch_ready(self._start_ready)
        await self._watching.enter_async_context(background_task(watch))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        async with self._running:
            await self._watching.aclose()  # starts no more runs
            await self._end_all()

    async def _end_all(self) -> None:
        for run_id, (run, task_id) in [*self._runs.items()]:
            try:
                await self._end(run, run_id, task_id)
            except StoreUnavailable:
                run.cancel()  # it would try to continue until it can be stored
            except LarkspurError:
                pass
        if self._runs:
            await asyncio.wait([run for run, _ in self._runs.values()])
        with suppress(LarkspurError):
            # subtasks that were not started yet, and reports about stopped ones
            while ready := await self._runner.dispatcher.list_ready():
                for queued in ready:
                    await self.stop(queued.task_id, LOCAL_OWNER, "cli")

    async def submit(self, submission: Submission, principal: Principal) -> Submitted:
        """Store a task as this process's own and execute its run."""
        leases = self._runner.leases
        own = msgspec.structs.replace(submission, owner=leases.owner, lease_until=leases.expiry())
        submitted = await super().submit(own, principal)
        self._start(submitted.run_id, submitted.task_id, submitted.session_id)
        return submitted

    async def steer(self, submission: Submission, principal: Principal) -> Steered:
        """Steer the active run; a text that becomes the next task is executed here."""
        steered = await super().steer(submission, principal)
        if steered.taken_as == "task":
            self._start(RunId(steered.run_id), steered.task_id, steered.session_id)
        return steered

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
        """Answer a question; its run continues here unless another process owns it."""
        answered = await super().answer(
            question_id,
            answer_input,
            actor,
            message,
            attachments=attachments,
            idempotency_key=idempotency_key,
        )
        await self.adopt(answered.run_id)
        return answered

    async def adopt(self, run_id: RunId) -> bool:
        """Execute a queued run that has no owner. Return whether this process executes it."""
        if run_id in self._runs:
            return True
        if not await self._runner.dispatcher.adopt(run_id):
            return False
        run = await self._database.read(lambda: self._stores.runs.get(run_id))
        if run is not None:
            self._start(run_id, run.task_id, run.session_id)
        return run is not None

    def _start_ready(self, run: Run) -> None:
        self._start(run.id, run.task_id, run.session_id)

    def _start(self, run_id: RunId, task_id: TaskId, session_id: SessionId) -> None:
        if run_id in self._runs:
            return
        run = asyncio.create_task(self._execute(run_id, session_id))
        self._runs[run_id] = run, task_id
        run.add_done_callback(lambda run: self._ended(run_id, run))

    async def _execute(self, run_id: RunId, session_id: SessionId) -> None:
        runner = self._runner
        if not runner.waits:
            await runner.dispatcher.execute(run_id, runner.coordinator, wait_for_answers=False)
            return
        await self._execute_until_stored(run_id)
        # steering that came too late for the run became the next task of its session
        queued = await self.queries.tasks(LOCAL_OWNER, session_id=session_id, status="queued")
        for task in reversed(queued):
            run = await self.queries.latest_run(task.id, LOCAL_OWNER)
            self._start(run.id, task.id, session_id)

    async def _execute_until_stored(self, run_id: RunId) -> None:
        """Execute a run, again from its checkpoint when the database failed and works again."""
        runner = self._runner
        has_failed = False
        while True:
            try:
                if has_failed:
                    await runner.dispatcher.requeue(run_id)
                await runner.dispatcher.execute(run_id, runner.coordinator)
            except StoreUnavailable as error:
                if not has_failed:
                    runner.on_error(error)
                has_failed = True
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    async def _end(self, run: asyncio.Task[None], run_id: RunId, task_id: TaskId) -> None:
        """Stop a run that executes, or waits for one that does; release one that waits."""
        tree = await self.queries.task_tree(task_id, LOCAL_OWNER)
        if tree.run.status != "waiting" or (tree.run.awaits_tasks and _goes_on(tree.subtasks)):
            await self.stop(task_id, LOCAL_OWNER, "cli")
            return
        if self._runner.waits or tree.run.awaits_tasks:
            run.cancel()
        await asyncio.wait([run])
        for released in (run_id, *(item.run.id for item in tree.subtasks)):
            await self._runner.dispatcher.release(released)

    def _ended(self, run_id: RunId, run: asyncio.Task[None]) -> None:
        del self._runs[run_id]
        error = None if run.cancelled() else run.exception()
        if error is not None:
            self._runner.on_error(error)


def _goes_on(subtasks: Sequence[SubtaskItem]) -> bool:
    """Return whether one of the subtasks runs, or is queued and waits for no other one."""
    unfinished = {task.id for task, run in subtasks if run.status not in ENDED}
    return any(
        run.status == "running"
        or (run.status == "queued" and unfinished.isdisjoint(task.depends_on))
        for task, run in subtasks
    )
