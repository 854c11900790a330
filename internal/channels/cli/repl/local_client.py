"""This process as the client: the house stands here, and its runs are done here."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from types import TracebackType
from typing import Any, Self

import msgspec

from internal.agent.app.events.subscription import Cursor, StreamItem, parse_cursor
from internal.agent.app.runs.creation import Submission
from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.domain.errors import Conflict, LarkspurError
from internal.agent.domain.events.control import StreamReset
from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.tasks import Attachment, Task
from internal.channels.cli.client import (
    AgentDefaults,
    By,
    GatewayError,
    QuestionItem,
    SessionItem,
    StreamBatch,
    TaskItem,
    TaskRequest,
    TaskState,
    TranscriptMessage,
    UsageItem,
)
from internal.channels.cli.repl.local_people import LocalPeople, sentences
from internal.channels.cli.repl.local_services import Desk, Runner
from internal.channels.cli.task_request import Ids

_PAGE = 500


class LocalHost(LocalPeople):
    """Hands wishes to the house of this process. Without a runner it only looks and asks.

    `trouble` is told what a run died of without being able to say so itself. Leaving the context
    stops the runs that are still at work and waits until that is stored; those that wait for a
    person are left to whoever goes on with them.
    """

    def __init__(
        self,
        desk: Desk,
        runner: Runner | None = None,
        trouble: Callable[[str], None] = lambda _sentence: None,
    ) -> None:
        super().__init__(desk)
        self._runner = runner
        self._trouble = trouble
        self._runs: dict[asyncio.Task[None], tuple[RunId, TaskId]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for run, (run_id, task_id) in [*self._runs.items()]:
            with suppress(LarkspurError):
                await self._end(run, run_id, task_id)
        if self._runs:
            await asyncio.wait(self._runs)

    async def about(self) -> AgentDefaults:
        """Return the model and the profiles."""
        defaults = self.desk.defaults
        offline = defaults.provider == "offline"
        return AgentDefaults(defaults.model, defaults.profile, sorted(defaults.profiles), offline)

    async def submit(self, wish: TaskRequest) -> Ids:
        """Store a task and begin to run it."""
        desk, runner = self.desk, self._runner
        if runner is None:
            raise GatewayError("Nothing runs tasks here.")
        with sentences():
            options = msgspec.convert(dict(wish.options), TaskOptions)
            brief = build_run_spec(desk.defaults, options, LOCAL_OWNER, wish.profile)
            kept = [await desk.attachments.put(*file) for file in wish.files]
            submission = Submission(
                instruction=wish.task,
                brief=brief,
                channel="cli",
                session_id=None if wish.session_id is None else SessionId(wish.session_id),
                attachments=tuple[Attachment, ...](kept),
                owner=runner.owner,
                lease_until=runner.lease(),
            )
            made = await desk.gateway.submit(submission, LOCAL_OWNER)
        self._run(made.run_id, made.task_id, made.session_id)
        return Ids(made.session_id, made.task_id, made.run_id)

    async def steer(self, task_id: str, text: str) -> bool:
        """Give words to the run at work; what became the next task is run here."""
        with sentences():
            steered = await self.desk.gateway.steer_task(
                TaskId(task_id), text, LOCAL_OWNER, channel="cli"
            )
        if steered.taken_as == "task":
            self._run(RunId(steered.run_id), steered.task_id, steered.session_id)
        return steered.taken_as == "steering"

    async def stop(self, task_id: str) -> None:
        """Store the wish that a task ends."""
        with sentences(), suppress(Conflict):
            await self.desk.gateway.stop(TaskId(task_id), LOCAL_OWNER, "cli")

    async def head(self, session_id: str) -> str:
        """Return the place behind all that has happened."""
        with sentences():
            await self.desk.gateway.queries.session(SessionId(session_id), LOCAL_OWNER)
            bounds = await self.desk.gateway.queries.bounds()
        return str(Cursor(bounds.epoch, bounds.head))

    async def watch(self, session_id: str, after: str) -> AsyncGenerator[StreamBatch]:
        """Yield what happens, until it is closed."""
        with sentences():
            bounds = await self.desk.gateway.queries.bounds()
            beginning = Cursor(bounds.epoch, bounds.earliest - 1)
            start = parse_cursor(after) if after else beginning
            batches = self.desk.gateway.watch(frozenset({SessionId(session_id)}), start)
            async with aclosing(batches):
                async for batch in batches:
                    if shown := _moment(batch):
                        yield shown
                        if shown.reset:
                            return

    async def sessions(self, limit: int = 50) -> list[SessionItem]:
        """Return sessions, last active first."""
        with sentences():
            found = await self.desk.gateway.queries.sessions(LOCAL_OWNER, limit=limit)
        return [
            SessionItem(
                one.session.id,
                one.session.title,
                one.session.channel,
                one.session.updated,
                one.status,
                one.tasks,
            )
            for one in found
        ]

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session another title."""
        with sentences():
            await self.desk.gateway.rename_session(SessionId(session_id), title, LOCAL_OWNER)

    async def remove(self, session_id: str) -> None:
        """Delete a session with all that is its."""
        with sentences():
            await self.desk.gateway.delete_session(SessionId(session_id), LOCAL_OWNER)

    async def transcript(self, session_id: str) -> list[TranscriptMessage]:
        """Return all that was said in a session, oldest first."""
        queries, found = self.desk.gateway.queries, list[TranscriptMessage]()
        before: int | None = None
        while True:
            with sentences():
                page = await queries.messages(
                    SessionId(session_id), LOCAL_OWNER, before=before, limit=_PAGE
                )
            found += [
                TranscriptMessage(said.role, said.text, created) for _, _, said, created in page
            ]
            if len(page) < _PAGE:
                return [one for one in reversed(found) if one.text.strip()]
            before = page[-1][0]

    async def tasks(self, session_id: str | None = None, limit: int = 50) -> list[TaskItem]:
        """Return tasks, newest first."""
        wanted = None if session_id is None else SessionId(session_id)
        with sentences():
            found = await self.desk.gateway.queries.tasks(
                LOCAL_OWNER, session_id=wanted, limit=limit
            )
        return [_row(task) for task in found]

    async def task(self, task_id: str) -> TaskState:
        """Return a task and how far it is."""
        queries = self.desk.gateway.queries
        with sentences():
            run = await queries.latest_run(TaskId(task_id), LOCAL_OWNER)
            task = await queries.task(TaskId(task_id), LOCAL_OWNER)
        return TaskState(_row(task), run.id, run.answer, run.error)

    async def costs(self, by: By, session_id: str | None = None) -> list[UsageItem]:
        """Return what was used."""
        wanted = None if session_id is None else SessionId(session_id)
        with sentences():
            found = await self.desk.gateway.queries.usage(LOCAL_OWNER, by, session_id=wanted)
        return [
            UsageItem(
                one.key,
                one.usage.total - one.usage.output_tokens,
                one.usage.output_tokens,
                one.cost,
            )
            for one in found
        ]

    async def resume(self, task_id: str) -> Ids:
        """Go on where a task ended; without a runner the next gateway does."""
        with sentences():
            made = await self.desk.gateway.resume(TaskId(task_id), LOCAL_OWNER, "cli")
            await self._take(made.run_id, made.task_id, made.session_id)
        return Ids(made.session_id, made.task_id, made.run_id)

    async def answer(self, question_id: str, given: Mapping[str, Any]) -> QuestionItem:
        """Answer a question; a run that belongs to nobody else goes on here."""
        row = await super().answer(question_id, given)
        with sentences():
            await self._take(RunId(row.run_id), TaskId(row.task_id), SessionId(row.session_id))
        return row

    async def _take(self, run_id: RunId, task_id: TaskId, session_id: SessionId) -> None:
        """Do a queued run here unless it is done elsewhere, or here already."""
        ours = (run_id, task_id) in self._runs.values()
        if self._runner is not None and not ours and await self._runner.adopt(run_id):
            self._run(run_id, task_id, session_id)

    async def _end(self, run: asyncio.Task[None], run_id: RunId, task_id: TaskId) -> None:
        """Stop a run that is at work, leave alone one that waits for a person."""
        status = (await self.desk.gateway.queries.latest_run(task_id, LOCAL_OWNER)).status
        if status != "waiting" or self._runner is None:
            await self.desk.gateway.stop(task_id, LOCAL_OWNER, "cli")
            return
        run.cancel()
        await asyncio.wait([run])
        await self._runner.release(run_id)

    def _run(self, run_id: RunId, task_id: TaskId, session_id: SessionId) -> None:
        if self._runner is None:
            return
        run = asyncio.create_task(self._run_to_its_end(self._runner, run_id, session_id))
        self._runs[run] = (run_id, task_id)
        run.add_done_callback(self._over)

    async def _run_to_its_end(self, runner: Runner, run_id: RunId, session_id: SessionId) -> None:
        await runner.run_own(run_id)
        # words that came too late for the run became the next task of its session
        queries = self.desk.gateway.queries
        waiting = await queries.tasks(LOCAL_OWNER, session_id=session_id, status="queued")
        for task in reversed(waiting):
            run = await queries.latest_run(task.id, LOCAL_OWNER)
            if (run.id, task.id) not in self._runs.values():
                self._run(run.id, task.id, session_id)

    def _over(self, run: asyncio.Task[None]) -> None:
        del self._runs[run]
        error = None if run.cancelled() else run.exception()
        if error is not None:
            self._trouble(str(error) if isinstance(error, LarkspurError) else repr(error))


def _moment(batch: list[StreamItem]) -> StreamBatch | None:
    if any(isinstance(frame, StreamReset) for frame in batch):
        return StreamBatch(reset=True)
    shown = [frame.json for frame in batch if isinstance(frame, EventRecord) and not frame.inner]
    return StreamBatch(shown) if shown else None


def _row(task: Task) -> TaskItem:
    return TaskItem(
        task.id,
        task.session_id,
        task.instruction,
        task.origin.channel,
        task.brief.model,
        task.status,
        task.stop_reason,
        task.created,
    )
