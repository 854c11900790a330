"""One shot through a running gateway. Standard library only: it must start fast."""

import os
import time
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import quote

from internal.channels.cli.exit_codes import FAILED, OK, USAGE, CliExit, SignalGuard, output_failure
from internal.channels.cli.http_client import Door, Ended, Unreachable
from internal.channels.cli.output import Output, print_error
from internal.channels.cli.output_format import RunReport
from internal.channels.cli.task_request import Format, Ids, OneShotRequest

PATIENCE_SECONDS = 60.0
"""How long a gateway that went away may take to come back."""
_PAUSE_SECONDS = 0.25
_CHANNELS = {"cli", "web"}

T = TypeVar("T")


class Attached:
    """Hands an order to a gateway and follows its run.

    `find` gives the door of the gateway as it is now: after a restart it may have another address.
    It returns None while there is none.
    """

    def __init__(
        self,
        door: Door,
        find: Callable[[], Door | None],
        output: Output,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._door = door
        self._patience = patience_seconds
        self._find = find
        self._output = output
        self._cursor = ""
        self._task_id = ""
        self._stop_owed = False
        self._since = 0.0
        self._told = False

    def run(self, order: OneShotRequest) -> int:
        """Submit the order, show its run, and return the exit code.

        Raises:
            Leave: the gateway refuses, or is gone for too long.
        """
        with SignalGuard(self._stop) as interrupts:
            ids = self._submit(order)
            report = self._begun(ids, order.output, workspace=order.options["workspace"])
            if order.detach:
                self._output.write(report.queued())
                return OK
            return self._show(report, interrupts)

    def resumed(self, ids: Ids, output: Format, after: str) -> int:
        """Show our run from a place of its session on, and return the exit code.

        Raises:
            Leave: the gateway is gone for too long.
        """
        self._cursor = after
        with SignalGuard(self._stop) as interrupts:
            return self._show(self._begun(ids, output), interrupts)

    def followed(self, ids: Ids, output: Format, after: str) -> int:
        """Show somebody's run like one of ours; a signal leaves it alone. Raises as `resumed`."""
        self._cursor = after
        report = self._begun(ids, output)
        self._follow(report)
        return self._finish(report, None)

    def newest(self) -> list[dict[str, Any]]:
        """Return the sessions that were last active in the terminal or on the page."""
        answer = self._patiently(lambda: self._door.get("/api/sessions?limit=50"))
        return [one for one in answer["sessions"] if one["channel"] in _CHANNELS]

    def _submit(self, order: OneShotRequest) -> Ids:
        session = self._session(order)
        if session is not None:
            # what was said before is not shown again
            page = f"/api/sessions/{quote(session, safe='')}/events?limit=1"
            self._cursor = self._patiently(lambda: self._door.get(page))["head"]
        body: dict[str, Any] = {
            "task": order.task,
            "options": order.options,
            # so that a request that got no answer can be sent again
            "idempotency_key": os.urandom(16).hex(),
            "attachments": [
                {
                    "name": file.name,
                    "media_type": file.media_type,
                    "data": b64encode(file.content).decode(),
                }
                for file in order.files
            ],
        }
        named = {"session_id": session, "profile": order.profile}
        body |= {name: value for name, value in named.items() if value is not None}
        made = self._patiently(lambda: self._door.post("/api/tasks", body))
        try:
            ids = Ids(made["session_id"], made["task_id"], made["run_id"])
        except (KeyError, TypeError):
            raise self._door.stranger() from None
        if order.title is not None:
            path, title = f"/api/sessions/{quote(ids.session_id)}", {"title": order.title}
            self._patiently(lambda: self._door.patch(path, title))
        return ids

    def _begun(self, ids: Ids, output: Format, **facts: str) -> RunReport:
        report = RunReport(output, ids)
        if output == "stream-json":
            task = self._task(ids)
            named = {name: task[name] for name in ("model", "profile")}
            report.begin({**named, **facts, "via": "gateway"})
        return report

    def _show(self, report: RunReport, interrupts: SignalGuard) -> int:
        self._task_id = report.ids.task_id
        if interrupts.code is not None:
            self._stop()  # the signal came before there was a task
        self._follow(report)
        return self._finish(report, interrupts.code)

    def _finish(self, report: RunReport, signalled: int | None) -> int:
        if report.clipped:
            report.complete(self._task(report.ids)["run"]["answer"])
        code, last = report.result(signalled)
        self._write(last)
        for remark in report.remarks():
            print_error(remark)
        return code

    def _task(self, ids: Ids) -> Any:
        path = f"/api/tasks/{quote(ids.task_id)}"
        return self._patiently(lambda: self._door.get(path))

    def _session(self, order: OneShotRequest) -> str | None:
        if not order.last:
            return order.session
        newest = self.newest()
        if not newest:
            raise CliExit(USAGE, "There is no session to continue yet.")
        return str(newest[0]["session_id"])

    def _follow(self, report: RunReport) -> None:
        session = quote(report.ids.session_id)
        while not report.ended:
            self._patiently(lambda: self._read(session, report))

    def _read(self, session: str, report: RunReport) -> None:
        """Show the stream from the cursor on, until the run ends.

        Raises:
            Unreachable: the stream ended before.
        """
        if self._stop_owed:
            self._deliver_stop()
        for frame in self._door.stream(f"/api/sse?session_id={session}", self._cursor):
            self._since, self._told = 0.0, False
            if frame.event == "stream.reset":
                raise CliExit(FAILED, "The gateway does not know this run's events any more.")
            if frame.data:
                report.take(frame.id or "", frame.data)
                self._write(report.lines())
            self._cursor = frame.id or self._cursor
            if report.ended:
                return
        raise Unreachable("the stream ended")

    def _patiently(self, ask: Callable[[], T]) -> T:
        """Ask until the gateway answers, or was away for too long."""
        while True:
            try:
                return ask()
            except Unreachable as error:
                self._wait(str(error))

    def _wait(self, reason: str) -> None:
        now = time.monotonic()
        if not self._since:
            self._since = now  # a stream may end for good reasons: not worth a word yet
        elif not self._told:
            self._told = True
            print_error(f"The gateway went away ({reason}); waiting for it …")
        if now > self._since + self._patience:
            stored = f" The task {self._task_id} is stored and goes on when it is back."
            raise CliExit(FAILED, f"The gateway did not come back.{stored * bool(self._task_id)}")
        time.sleep(_PAUSE_SECONDS)
        self._door = self._find() or self._door

    def _stop(self) -> None:
        """Store the wish to stop. Called in the handler of a signal: it must not raise."""
        self._stop_owed = True
        if self._task_id:
            try:
                self._deliver_stop()
            except Unreachable as error:
                print_error(f"The stop cannot be stored yet ({error}); again leaves at once.")

    def _deliver_stop(self) -> None:
        with suppress(Ended):
            self._door.stop(self._task_id)
        self._stop_owed = False

    def _write(self, data: bytes) -> None:
        try:
            self._output.write(data)
        except OSError as error:
            # nobody reads what the run was started for
            self._stop()
            raise output_failure(error) from None
