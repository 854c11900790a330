"""Several tasks of one session from standard input, with messages and answers while they run."""

import json
import threading
from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import Any

from internal.channels.cli.client import GatewayClient
from internal.channels.cli.exit_codes import OK, USAGE, CliExit, SignalGuard
from internal.channels.cli.headless.input_stream import InputMessage, InputReader
from internal.channels.cli.headless.report import RunReport
from internal.channels.cli.headless.runner import HeadlessRunner, OneShot
from internal.channels.cli.input_files import check_files
from internal.channels.cli.output import Output
from internal.channels.cli.records import QuestionItem

_POLL_SECONDS = 0.25
_MAX_QUESTIONS = 500
_NO_TASK = "No task is running."


class _SharedOutput(Output):
    """Standard output for two threads, whose lines are not mixed."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def write(self, data: bytes) -> None:
        with self._lock:
            super().write(data)


class StreamRunner(HeadlessRunner):
    """Runs the tasks that standard input names, one after another in one session.

    A line that cannot be used is answered with a line of type `error`; the others are not affected.
    The other messages are for the active task: they wait until it is stored.
    """

    def __init__(self, client: GatewayClient) -> None:
        super().__init__(client, _SharedOutput())
        self._client = client
        self._state = threading.Condition()
        self._tasks: deque[tuple[int, InputMessage]] = deque()
        self._is_active = False
        self._has_ended = False
        self._is_acting = False
        self._rejected = 0

    async def run_stream(self, shot: OneShot, descriptor: int = 0) -> int:
        """Run all tasks; return the exit code of the last, 2 if it is 0 and a line was rejected.

        A task of `shot` is the first one.

        Raises:
            CliExit: as for `run`, or there was no task.
        """
        code: int | None = None
        if shot.request.task:
            self._tasks.append((0, InputMessage("task", shot.request.task)))
        with SignalGuard(self._handle_signal) as signals:
            reader = InputReader(
                descriptor, take=self._take_message, reject=self._reject, end=self._end
            )
            reader.start()
            while (task := await self._next_task(signals)) is not None:
                report = await self._run_task(shot, *task, signals)
                if report is not None:
                    session = report.ids.session_id
                    shot = shot._replace(
                        request=shot.request._replace(session_id=session, files=()),
                        continue_last=False,
                        title=None,
                    )
                    code = await self._report(report, signals.code)
            if signals.code is not None:
                return signals.code
        if code is None:
            raise CliExit(USAGE, "Standard input contains no task.")
        return USAGE if code == OK and self._rejected else code

    async def _run_task(
        self, shot: OneShot, number: int, message: InputMessage, signals: SignalGuard
    ) -> RunReport | None:
        """Run a task until it ends, or waits for a person and no further answer can arrive."""
        try:
            files = (*shot.request.files, *check_files(message.files))
            request = shot.request._replace(task=message.text, files=files)
            report, after = await self._start(shot._replace(request=request), signals)
        except CliExit as error:
            if number == 0 or signals.code is not None:
                raise
            self._activate(active=False)
            self._reject(number, str(error))
            return None
        self._task_id = report.ids.task_id
        self._activate(active=True)
        await self._watch(report, after, signals)
        while report.is_waiting and signals.code is None:
            with self._state:
                is_last = self._has_ended and not self._is_acting
            asked = await self._client.questions("open", report.ids.session_id, _MAX_QUESTIONS)
            if report.resume({one.question_id for one in asked}):
                await self._follow_all(report, report.last_id)
            elif is_last:
                break
            else:
                await self._client.transport.sleep(_POLL_SECONDS)
        self._activate(active=False)
        return report

    async def _next_task(self, signals: SignalGuard) -> tuple[int, InputMessage] | None:
        """Return the next task; None at the end of the input or after a signal."""
        found: list[tuple[int, InputMessage]] = []

        def wait() -> None:
            with self._state:
                while not self._tasks and not self._has_ended and signals.code is None:
                    self._state.wait(_POLL_SECONDS)
                if self._tasks and signals.code is None:
                    found.append(self._tasks[0])

        await self._client.transport.run_blocking(wait)
        return found[0] if found else None

    def _activate(self, *, active: bool) -> None:
        """Record that the first task has been stored, or that it has ended."""
        with self._state:
            self._is_active = active
            if not active:
                self._tasks.popleft()
            self._state.notify_all()

    def _take_message(self, number: int, message: InputMessage) -> None:
        """Queue a task; do anything else now, in order. Called by the thread that reads."""
        with self._state:
            if message.kind == "task":
                self._tasks.append((number, message))
                self._state.notify_all()
                return
            while self._is_acting or (self._tasks and not self._is_active):
                self._state.wait()
            self._is_acting = True
        self._client.transport.start_from_signal(partial(self._act, number, message))

    async def _act(self, number: int, message: InputMessage) -> None:
        try:
            await self._do(message)
        except CliExit as error:
            self._reject(number, str(error))
        finally:
            with self._state:
                self._is_acting = False
                self._state.notify_all()

    async def _do(self, message: InputMessage) -> None:
        with self._state:
            task_id = self._task_id if self._is_active else ""
        if message.kind == "answer" and message.question_id:
            await self._answer(message.question_id, message.answer)
            return
        if not task_id:
            raise CliExit(USAGE, _NO_TASK)
        if message.kind == "steer":
            await self._client.steer(task_id, message.text)
        elif message.kind == "stop":
            await self._client.stop(task_id)
        else:
            own = await self._open_questions(task_id)
            if len(own) != 1:
                raise CliExit(USAGE, f"{len(own)} questions are open; name one as question_id.")
            await self._answer(own[0].question_id, message.answer)

    async def _open_questions(self, task_id: str) -> list[QuestionItem]:
        """Return the open questions of a task and of its subtasks."""
        session_id = (await self._client.task(task_id)).item.session_id
        trees = await self._client.task_trees(session_id)
        tree = next(one for one in trees if one.item.task_id == task_id)
        ids = {task_id, *(one.task_id for one in tree.subtasks)}
        questions = await self._client.questions("open", session_id, _MAX_QUESTIONS)
        return [one for one in questions if one.task_id in ids]

    async def _answer(self, question_id: str, answer: Mapping[str, Any]) -> None:
        answered = await self._client.answer(question_id, answer)
        await self._client.transport.adopt(answered.run_id)

    def _reject(self, number: int, sentence: str) -> None:
        self._rejected += 1
        line: dict[str, Any] = {"type": "error", "line": number, "message": sentence}
        self._output.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")

    def _end(self) -> None:
        with self._state:
            self._has_ended = True
            self._state.notify_all()
