"""One shot in this process: no gateway runs, or another model is wanted than its own."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from typing import Any, Protocol

import msgspec

from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.events.subscription import Cursor, StreamItem
from internal.agent.app.gateway import Gateway
from internal.agent.app.runs.creation import Submission
from internal.agent.app.task_options import TaskDefaults, TaskOptions, build_run_spec
from internal.agent.domain.errors import Conflict, StoreError
from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.tasks import Attachment, Channel, RunSpec
from internal.agent.ports.attachments import Attachments
from internal.channels.cli.exit_codes import USAGE, CliExit, SignalGuard, output_failure
from internal.channels.cli.output import Output, print_error
from internal.channels.cli.output_format import RunReport
from internal.channels.cli.task_request import Format, Ids, OneShotRequest

_CHANNELS: frozenset[Channel] = frozenset({"cli", "web"})


class House(Protocol):
    """What one shot needs of the house it runs in."""

    @property
    def gateway(self) -> Gateway:
        """What the order is handed to."""
        ...

    @property
    def broadcaster(self) -> EventBroadcaster:
        """Whose log the rows' ids are of."""
        ...

    @property
    def defaults(self) -> TaskDefaults:
        """What a task gets without options."""
        ...

    @property
    def attachments(self) -> Attachments:
        """Where files are kept."""
        ...

    @property
    def owner(self) -> str:
        """The name under which this process owns its run."""
        ...

    def lease(self) -> str:
        """Return until when a run submitted now is ours, RFC 3339."""
        ...

    def run_own(self, run_id: RunId, /, *, waits: bool = True) -> Awaitable[object]:
        """Run our queued run to its end; without `waits` to its pause, left to whoever answers."""
        ...


class Here:
    """Does an order in the house of this process."""

    def __init__(self, house: House, output: Output) -> None:
        self._house = house
        self._output = output
        self._loop = asyncio.get_running_loop()
        self._task_id: TaskId | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._unread: OSError | None = None

    async def run(self, order: OneShotRequest) -> int:
        """Submit the order, do its run and show it, and return the exit code.

        Raises:
            Leave: the order cannot be done.
            LarkspurError: it is refused, or cannot be stored.
        """
        house = self._house
        options = msgspec.convert(order.options, TaskOptions)
        brief = build_run_spec(house.defaults, options, LOCAL_OWNER, order.profile)
        with SignalGuard(self._interrupted) as interrupts:
            ids, start = await self._submit(order, brief)
            report = _begun(ids, order.output, brief)
            await self._work(report, start, interrupts)
            return await self._finish(report, interrupts.code)

    async def go_on(self, ids: Ids, output: Format, start: Cursor, brief: RunSpec) -> int:
        """Do a queued run of ours and show it from a place on; return the exit code.

        Raises:
            LarkspurError: it cannot be stored.
        """
        with SignalGuard(self._interrupted) as interrupts:
            report = _begun(ids, output, brief)
            await self._work(report, start, interrupts)
            return await self._finish(report, interrupts.code)

    async def followed(self, ids: Ids, output: Format, start: Cursor, brief: RunSpec) -> int:
        """Show a run of another terminal like one of ours; a signal leaves it alone."""
        report = _begun(ids, output, brief)
        await self._show(report, self._watch(report, start))
        return await self._finish(report, None)

    async def newest(self) -> list[dict[str, Any]]:
        """Return the sessions that were last active in the terminal or on the page."""
        found = await self._house.gateway.queries.sessions(LOCAL_OWNER)
        sessions = [one.session for one in found if one.session.channel in _CHANNELS]
        return [
            {"session_id": one.id, "title": one.title, "updated": one.updated} for one in sessions
        ]

    async def _submit(self, order: OneShotRequest, brief: RunSpec) -> tuple[Ids, Cursor]:
        house, session = self._house, order.session
        if order.last:
            newest = await self.newest()
            if not newest:
                raise CliExit(USAGE, "There is no session to continue yet.")
            session = newest[0]["session_id"]
        kept = [await house.attachments.put(*file) for file in order.files]
        bounds = await house.gateway.queries.bounds()
        submission = Submission(
            instruction=order.task,
            brief=brief,
            channel="cli",
            session_id=None if session is None else SessionId(session),
            attachments=tuple[Attachment, ...](kept),
            owner=house.owner,
            lease_until=house.lease(),
        )
        made = await house.gateway.submit(submission, LOCAL_OWNER)
        if order.title is not None:
            await house.gateway.rename_session(made.session_id, order.title, LOCAL_OWNER)
        ids = Ids(made.session_id, made.task_id, made.run_id)
        return ids, Cursor(bounds.epoch, bounds.head)

    async def _finish(self, report: RunReport, signalled: int | None) -> int:
        """Write the last words and return the exit code."""
        if report.clipped:
            queries, task_id = self._house.gateway.queries, TaskId(report.ids.task_id)
            report.complete((await queries.latest_run(task_id, LOCAL_OWNER)).answer)
        code, last = report.result(signalled)
        await self._write(last)
        if self._unread is not None:
            raise output_failure(self._unread)
        for remark in report.remarks():
            print_error(remark)
        return code

    async def _work(self, report: RunReport, start: Cursor, interrupts: SignalGuard) -> None:
        """Do the run and show it, until it has ended or waits."""
        self._task_id = TaskId(report.ids.task_id)
        if interrupts.code is not None:
            await self._stop()  # the signal came before there was a task
        batches = self._watch(report, start)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._run(RunId(report.ids.run_id)))
                await self._show(report, batches)
        except ExceptionGroup as group:  # one of the two failed and took the other along
            raise group.exceptions[0] from None
        finally:
            if self._stopping is not None:
                await self._stopping

    def _watch(self, report: RunReport, start: Cursor) -> AsyncGenerator[list[StreamItem]]:
        watched = frozenset({SessionId(report.ids.session_id)})
        return self._house.gateway.watch(watched, start)

    async def _run(self, run_id: RunId) -> None:
        await self._house.run_own(run_id, waits=False)

    async def _show(self, report: RunReport, batches: AsyncGenerator[list[StreamItem]]) -> None:
        epoch = self._house.broadcaster.epoch
        async with aclosing(batches):
            async for batch in batches:
                for frame in batch:
                    if isinstance(frame, EventRecord) and not frame.inner:
                        position = frame.position
                        report.take(str(Cursor(epoch, position)) if position else "", frame.json)
                await self._write(report.lines())
                if report.ended:
                    return

    async def _write(self, data: bytes) -> None:
        """Write in a thread: a slow reader must not keep the run from its work.

        When nobody reads any more the run is stopped, its end stored, and nothing more written.
        """
        if not data or self._unread is not None:
            return
        try:
            await asyncio.to_thread(self._output.write, data)
        except OSError as error:
            self._unread = error
            await self._stop()

    def _interrupted(self) -> None:
        # the handler may have broken into anything, the loop itself included
        self._loop.call_soon_threadsafe(self._begin_stop)

    def _begin_stop(self) -> None:
        self._stopping = self._loop.create_task(self._stop())  # awaited in _work

    async def _stop(self) -> None:
        if self._task_id is None:
            return
        try:
            await self._house.gateway.stop(self._task_id, LOCAL_OWNER, "cli")
        except Conflict:
            pass  # it has ended meanwhile
        except StoreError as error:
            print_error(f"The stop cannot be stored ({error}); again leaves at once.")


def _begun(ids: Ids, output: Format, brief: RunSpec) -> RunReport:
    report = RunReport(output, ids)
    named = {"model": brief.model, "profile": brief.profile.name}
    report.begin({**named, "workspace": brief.workspace, "via": "process"})
    return report
