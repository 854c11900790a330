"""One-shot tasks: submit a task, follow its run, print the result.

Standard library only: `larkspur -p` through a running gateway must start fast.
"""

from collections.abc import Callable, Mapping
from contextlib import aclosing
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from internal.channels.cli.artifact_files import find_local_file
from internal.channels.cli.client import GatewayClient, GatewayError, GatewayUnreachable
from internal.channels.cli.exit_codes import (
    FAILED,
    OK,
    USAGE,
    CliExit,
    SignalGuard,
    output_failure,
)
from internal.channels.cli.headless.report import REPORT_TASK, RunReport
from internal.channels.cli.output import Output, print_aside, print_error
from internal.channels.cli.records import SessionItem, StreamBatch, TaskRequest
from internal.channels.cli.task_request import Format, Ids
from internal.i18n.catalog import MessageCatalog

if TYPE_CHECKING:
    from internal.channels.cli.headless.answer_schema import AnswerSchema

MAX_CORRECTIONS = 2
"""Number of times that the model may correct an answer that does not match the schema."""
RECONNECT_SECONDS = 60.0
"""Longest wait for a gateway that has become unreachable."""
_CHANNELS = {"cli", "web"}


class OneShot(NamedTuple):
    """A task for `larkspur -p`.

    `continue_last` continues the most recently active session of the terminal or the page. The
    answer must match `schema`; the model gets `MAX_CORRECTIONS` chances to correct it.
    """

    request: TaskRequest
    output_format: Format = "text"
    continue_last: bool = False
    title: str | None = None
    detach: bool = False
    schema: "AnswerSchema | None" = None


class HeadlessRunner:
    """Runs a one-shot task through a client and prints it to `output`.

    The first signal stores a stop request and waits until the run has ended; the second exits.
    """

    def __init__(
        self, client: GatewayClient, output: Output, reconnect_seconds: float = RECONNECT_SECONDS
    ) -> None:
        self._client = client
        self._output = output
        self._reconnect_seconds = reconnect_seconds
        self._task_id = ""
        self._stop_pending = False
        self._outlasting: list[str] = []
        """Tasks that a signal stops as well: subtasks that outlast the run, or their report."""

    async def run(self, shot: OneShot) -> int:
        """Submit a task, print its run and return the exit code.

        Raises:
            CliExit: the task is refused, or the gateway or the output cannot be used.
        """
        with SignalGuard(self._handle_signal) as signals:
            if shot.schema is not None:
                return await self._run_with_schema(shot, shot.schema, signals)
            report, after = await self._start(shot, signals)
            if shot.detach:
                await self._write(report.format_queued())
                return OK
            return await self._show(report, after, signals)

    async def follow_own(self, ids: Ids, output_format: Format, after: str) -> int:
        """Print a run from a position on and return the exit code; a signal stops the run.

        Raises:
            CliExit: as for `run`.
        """
        with SignalGuard(self._handle_signal) as signals:
            return await self._show(await self._begin(ids, output_format, {}), after, signals)

    async def follow(self, ids: Ids, output_format: Format, after: str) -> int:
        """Print a run as `follow_own` does; a signal leaves the run alone."""
        report = await self._begin(ids, output_format, {})
        await self._follow(report, after)
        return await self._report(report, None)

    async def _run_with_schema(
        self, shot: OneShot, schema: "AnswerSchema", signals: SignalGuard
    ) -> int:
        """Run a task, and others that correct its answer, until the answer matches the schema."""
        task = schema.request(shot.request.task)
        shot = shot._replace(request=shot.request._replace(task=task))
        for corrections in range(MAX_CORRECTIONS + 1):
            report, after = await self._start(shot, signals)
            await self._watch(report, after, signals)
            if signals.code is not None or not report.is_answered:
                return await self._report(report, signals.code)
            checked = schema.check(report.answer)
            if not checked.problem:
                report.set_value(checked.value)
            elif corrections == MAX_CORRECTIONS:
                report.set_problem(checked.problem)
            else:
                task = schema.correction(checked.problem)
                session, request = report.ids.session_id, shot.request
                shot = shot._replace(
                    request=request._replace(task=task, session_id=session, files=()),
                    continue_last=False,
                    title=None,
                )
                continue
            return await self._report(report, None)
        raise AssertionError  # the last attempt returns

    async def _start(self, shot: OneShot, signals: SignalGuard) -> tuple[RunReport, str]:
        """Submit a task; return its report and the position in its session before it.

        A signal during an upload ends the command; a task that is stored is stopped.
        """
        ids, after = await self._submit(shot, partial(_check_signal, signals))
        workspace = str(shot.request.options.get("workspace", ""))
        return await self._begin(ids, shot.output_format, {"workspace": workspace}), after

    async def _submit(self, shot: OneShot, check: Callable[[], None]) -> tuple[Ids, str]:
        """Submit the task; return its ids and the position in its session before it."""
        client, request = self._client, shot.request._replace(one_shot=True)
        if shot.continue_last:
            newest = await newest_sessions(client)
            if not newest:
                raise CliExit(USAGE, "There is no session to continue yet.")
            request = request._replace(session_id=newest[0].session_id)
        after = "" if request.session_id is None else await client.head(request.session_id)
        ids = await client.submit(request, check)
        if shot.title is not None:
            await client.rename(ids.session_id, shot.title)
        return ids, after

    async def _begin(self, ids: Ids, output_format: Format, facts: Mapping[str, str]) -> RunReport:
        key_page = self._client.key_page
        report = RunReport(output_format, ids, find_local_file, key_page=key_page)
        if output_format == "stream-json":
            task, via = await self._client.task(ids.task_id), self._client.transport.via
            report.begin({"model": task.item.model, "profile": task.profile, **facts, "via": via})
        return report

    async def _show(self, report: RunReport, after: str, signals: SignalGuard) -> int:
        await self._watch(report, after, signals)
        return await self._report(report, signals.code)

    async def _watch(self, report: RunReport, after: str, signals: SignalGuard) -> None:
        """Print the stream of the run until it ends, and complete its answer."""
        self._task_id = report.ids.task_id
        if signals.code is not None:
            await self._stop()  # the signal came before the task was submitted
        await self._follow_all(report, after)

    async def _follow_all(self, report: RunReport, after: str) -> None:
        """Print the session's stream until run and subtasks end, or wait for a person."""
        await self._follow(report, after)
        if report.had_subtasks and not report.is_waiting:
            await self._follow_subtasks(report)

    async def _follow_subtasks(self, report: RunReport) -> None:
        """Print the stream until the subtasks that outlast the run have ended and are reported."""
        if running := report.subtasks:
            name = "waits_for_subtasks" if len(running) > 1 else "waits_for_subtask"
            print_error(MessageCatalog("cli", "en")(name, count=len(running)))
            self._outlasting = running
            report.follow_subtasks()
            await self._follow(report, report.last_id)
            self._outlasting = []
        while not report.is_waiting:
            newest = await self._client.tasks(report.ids.session_id)
            later = takewhile(lambda each: each.task_id != report.ids.task_id, newest)
            new = [
                each
                for each in later
                if each.task == REPORT_TASK and not report.has_task(each.task_id)
            ]
            if not new:
                return
            state = await self._client.task(new[-1].task_id)
            report.follow_report(new[-1].task_id, state.run_id)
            self._outlasting = [new[-1].task_id]
            await self._follow(report, report.last_id)

    async def _follow(self, report: RunReport, after: str) -> None:
        """Print the session's stream until the run ends or waits for a person."""
        batches = self._client.watch(
            report.ids.session_id, after, give_up_seconds=self._reconnect_seconds
        )
        try:
            async with aclosing(batches):
                async for batch in batches:
                    await self._take(report, batch)
                    if report.has_ended:
                        break
        except GatewayUnreachable as error:
            stored = f" The task {report.ids.task_id} is stored and continues with the gateway."
            raise CliExit(FAILED, f"{error}{stored}") from None
        if report.is_truncated:
            report.set_answer((await self._client.task(report.ids.task_id)).answer)

    async def _take(self, report: RunReport, batch: StreamBatch) -> None:
        if batch.reset:
            raise CliExit(
                FAILED, "The gateway's event log was replaced; it no longer contains this run."
            )
        if not batch.is_connected:
            print_error("The gateway does not answer; waiting for it …")
            return
        if self._stop_pending:
            await self._stop()
        for row in batch.rows:
            report.add_event(row.id, row.envelope)
        for notice in report.take_notices():
            print_error(notice)
        for aside in report.take_asides():
            print_aside(aside)
        await self._write(report.take_lines())

    async def _report(self, report: RunReport, signal_code: int | None) -> int:
        code, last = report.result(signal_code)
        await self._write(last)
        for message in report.messages():
            print_error(message)
        return code

    def _handle_signal(self) -> None:
        self._stop_pending = True
        if self._task_id:
            self._client.transport.start_from_signal(self._stop)

    async def _stop(self) -> None:
        """Store the stop request; if that fails, try again when the gateway is back."""
        self._stop_pending = True
        try:
            for task_id in (self._task_id, *self._outlasting):
                await self._client.stop(task_id, retry=False)
        except GatewayError as error:
            message = str(error).rstrip(".")
            print_error(f"The stop request is not stored yet ({message}); repeat to exit at once.")
        else:
            self._stop_pending = False

    async def _write(self, data: bytes) -> None:
        if not data:
            return
        try:
            await self._client.transport.run_blocking(partial(self._output.write, data))
        except OSError as error:
            if self._task_id:
                await self._stop()  # the reader of the answer is gone
            raise output_failure(error) from None


def _check_signal(signals: SignalGuard) -> None:
    if signals.code is not None:
        raise CliExit(signals.code, "Stopped before the task was sent.")


async def newest_sessions(client: GatewayClient) -> list[SessionItem]:
    """Return the sessions of the terminal and the page, most recently active first."""
    return [one for one in await client.sessions() if one.channel in _CHANNELS]
