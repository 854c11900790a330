"""This process as the host: the house stands here, and its runs are done here."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, contextmanager, suppress
from types import TracebackType
from typing import Self

import msgspec

from internal.agent.app.briefing import Options, brief_for
from internal.agent.app.cursor import Cursor, parse_cursor
from internal.agent.app.frames import Frame
from internal.agent.app.intake import Submission
from internal.agent.app.watching import Shown
from internal.agent.domain.controls import StreamReset
from internal.agent.domain.errors import Conflict, LarkspurError
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.tasks import Attachment, Task
from internal.channels.cli.order import Ids
from internal.channels.cli.session.host import (
    About,
    By,
    CostRow,
    HostError,
    Moment,
    SessionRow,
    Spoken,
    TaskEnd,
    TaskRow,
    Wish,
)
from internal.channels.cli.session.house import Desk, Runner

_PAGE = 500


class LocalHost:
    """Hands wishes to the house of this process. Without a runner it only looks and asks.

    `trouble` is told what a run died of without being able to say so itself. Leaving the context
    stops the runs that are still at work and waits until that is stored.
    """

    def __init__(
        self,
        desk: Desk,
        runner: Runner | None = None,
        trouble: Callable[[str], None] = lambda _sentence: None,
    ) -> None:
        self._desk = desk
        self._runner = runner
        self._trouble = trouble
        self._runs: dict[asyncio.Task[None], TaskId] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for task_id in [*self._runs.values()]:
            with suppress(LarkspurError):
                await self._desk.gateway.stop(task_id, LOCAL_OWNER, "cli")
        if self._runs:
            await asyncio.wait(self._runs)

    async def about(self) -> About:
        """Return the model and the profiles."""
        defaults = self._desk.defaults
        offline = defaults.provider == "offline"
        return About(defaults.model, defaults.profile, sorted(defaults.profiles), offline)

    async def submit(self, wish: Wish) -> Ids:
        """Store a task and begin to run it."""
        desk, runner = self._desk, self._runner
        if runner is None:
            raise HostError("Nothing runs tasks here.")
        with _sentences():
            options = msgspec.convert(dict(wish.options), Options)
            brief = brief_for(desk.defaults, options, LOCAL_OWNER, wish.profile)
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
        with _sentences():
            steered = await self._desk.gateway.steer(TaskId(task_id), text, LOCAL_OWNER, "cli")
        if steered.taken_as == "task":
            self._run(RunId(steered.run_id), steered.task_id, steered.session_id)
        return steered.taken_as == "steering"

    async def stop(self, task_id: str) -> None:
        """Store the wish that a task ends."""
        with _sentences(), suppress(Conflict):
            await self._desk.gateway.stop(TaskId(task_id), LOCAL_OWNER, "cli")

    async def head(self, session_id: str) -> str:
        """Return the place behind all that has happened."""
        with _sentences():
            await self._desk.gateway.records.session(SessionId(session_id), LOCAL_OWNER)
            bounds = await self._desk.gateway.records.bounds()
        return str(Cursor(bounds.epoch, bounds.head))

    async def watch(self, session_id: str, after: str) -> AsyncGenerator[Moment]:
        """Yield what happens, until it is closed."""
        with _sentences():
            bounds = await self._desk.gateway.records.bounds()
            beginning = Cursor(bounds.epoch, bounds.earliest - 1)
            start = parse_cursor(after) if after else beginning
            batches = self._desk.gateway.watch(frozenset({SessionId(session_id)}), start)
            async with aclosing(batches):
                async for batch in batches:
                    if moment := _moment(batch):
                        yield moment
                        if moment.reset:
                            return

    async def sessions(self, limit: int = 50) -> list[SessionRow]:
        """Return sessions, last active first."""
        with _sentences():
            found = await self._desk.gateway.records.sessions(LOCAL_OWNER, limit=limit)
        return [
            SessionRow(
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
        with _sentences():
            await self._desk.gateway.rename_session(SessionId(session_id), title, LOCAL_OWNER)

    async def remove(self, session_id: str) -> None:
        """Delete a session with all that is its."""
        with _sentences():
            await self._desk.gateway.delete_session(SessionId(session_id), LOCAL_OWNER)

    async def spoken(self, session_id: str) -> list[Spoken]:
        """Return all that was said in a session, oldest first."""
        records, found = self._desk.gateway.records, list[Spoken]()
        before: int | None = None
        while True:
            with _sentences():
                page = await records.messages(
                    SessionId(session_id), LOCAL_OWNER, before=before, limit=_PAGE
                )
            found += [Spoken(said.role, said.text, created) for _, _, said, created in page]
            if len(page) < _PAGE:
                return [one for one in reversed(found) if one.text.strip()]
            before = page[-1][0]

    async def tasks(self, session_id: str | None = None, limit: int = 50) -> list[TaskRow]:
        """Return tasks, newest first."""
        wanted = None if session_id is None else SessionId(session_id)
        with _sentences():
            found = await self._desk.gateway.records.tasks(
                LOCAL_OWNER, session_id=wanted, limit=limit
            )
        return [_row(task) for task in found]

    async def task(self, task_id: str) -> TaskEnd:
        """Return a task and how far it is."""
        records = self._desk.gateway.records
        with _sentences():
            run = await records.run_of(TaskId(task_id), LOCAL_OWNER)
            task = await records.task(TaskId(task_id), LOCAL_OWNER)
        return TaskEnd(_row(task), run.id, run.answer, run.error)

    async def costs(self, by: By, session_id: str | None = None) -> list[CostRow]:
        """Return what was used."""
        wanted = None if session_id is None else SessionId(session_id)
        with _sentences():
            found = await self._desk.gateway.records.costs(LOCAL_OWNER, by, session_id=wanted)
        return [
            CostRow(
                one.key,
                one.usage.total - one.usage.output_tokens,
                one.usage.output_tokens,
                one.cost,
            )
            for one in found
        ]

    def _run(self, run_id: RunId, task_id: TaskId, session_id: SessionId) -> None:
        if self._runner is None:
            return
        run = asyncio.create_task(self._run_to_its_end(self._runner, run_id, session_id))
        self._runs[run] = task_id
        run.add_done_callback(self._over)

    async def _run_to_its_end(self, runner: Runner, run_id: RunId, session_id: SessionId) -> None:
        await runner.run_own(run_id)
        # words that came too late for the run became the next task of its session
        records = self._desk.gateway.records
        waiting = await records.tasks(LOCAL_OWNER, session_id=session_id, status="queued")
        for task in reversed(waiting):
            if task.id not in self._runs.values():
                run = await records.run_of(task.id, LOCAL_OWNER)
                self._run(run.id, task.id, session_id)

    def _over(self, run: asyncio.Task[None]) -> None:
        del self._runs[run]
        error = None if run.cancelled() else run.exception()
        if error is not None:
            self._trouble(str(error) if isinstance(error, LarkspurError) else repr(error))


@contextmanager
def _sentences() -> Generator[None]:
    """Turn the house's errors into the host's."""
    try:
        yield
    except LarkspurError as error:
        raise HostError(str(error)) from error
    except msgspec.ValidationError as error:
        raise HostError(f"{error}.") from error


def _moment(batch: list[Shown]) -> Moment | None:
    if any(isinstance(frame, StreamReset) for frame in batch):
        return Moment(reset=True)
    shown = [frame.json for frame in batch if isinstance(frame, Frame) and not frame.inner]
    return Moment(shown) if shown else None


def _row(task: Task) -> TaskRow:
    return TaskRow(
        task.id,
        task.session_id,
        task.instruction,
        task.origin.channel,
        task.brief.model,
        task.status,
        task.stop_reason,
        task.created,
    )
