"""The state of a session: sends input to the gateway, shows its events, tracks the queue."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL
from typing import Any

from internal.agent.app.background_task import wait_shielded
from internal.agent.domain.permissions.modes import Mode
from internal.channels.cli.client import GatewayError
from internal.channels.cli.clipboard import NoPicture, read_picture
from internal.channels.cli.command_output import short_id
from internal.channels.cli.exit_codes import FAILED, INTERRUPTED, CliExit
from internal.channels.cli.input_files import InputFile, check_file
from internal.channels.cli.records import TaskItem, TaskRequest
from internal.channels.cli.render.text import Fragments, StyledLine, sanitize, truncate_line
from internal.channels.cli.render.theme import Glyphs
from internal.channels.cli.repl.commands.shell import ShellRunner
from internal.channels.cli.repl.file_mentions import mentioned_files
from internal.channels.cli.repl.paste import PasteBuffer, pasted_paths
from internal.channels.cli.repl.services import ReplServices
from internal.channels.cli.repl.status_line import AWAITS_TASKS, RunState, render_status
from internal.channels.cli.repl.view import TranscriptView
from internal.i18n.catalog import MessageCatalog
from internal.i18n.language import Language
from internal.i18n.quantities import format_cost

CYCLED_MODES = ("ask", "plan", "edit")
"""The modes that Shift+Tab cycles through, after the default one."""


@dataclass
class TaskChoices:
    """Task options of a session. `fixed` are options of the command line; they cannot change."""

    fixed: Mapping[str, Any]
    mode: str = CYCLED_MODES[0]
    default_mode: str = CYCLED_MODES[0]
    allow: list[str] = field(default_factory=list)
    deny: list[str] = field(default_factory=list)
    model: str | None = None
    profile: str | None = None
    plan_review: str | None = None
    """Which plans need approval: `always` or `off`; None leaves it to the settings."""
    chose_mode: bool = False
    """False leaves the mode to the settings."""
    network: str | tuple[str, ...] | None = None
    """Network access of isolated commands: a word or hosts; None uses the settings."""

    def next_mode(self) -> str:
        """Switch to the next mode and return it."""
        modes = tuple(dict.fromkeys((self.default_mode, *CYCLED_MODES)))
        at = modes.index(self.mode) if self.mode in modes else -1
        return self.set_mode(modes[(at + 1) % len(modes)])

    def set_default_mode(self, mode: str) -> None:
        """Set the mode of tasks that choose none, which is also shown until one is chosen."""
        self.default_mode = mode
        if not self.chose_mode:
            self.mode = mode

    def set_mode(self, mode: str) -> str:
        """Set the mode and return it."""
        self.mode, self.chose_mode = mode, True
        return mode

    @property
    def is_widened(self) -> bool:
        """Whether more calls run without a question than by default."""
        return Mode(self.mode).exceeds(Mode(self.default_mode))

    def enter_session(self, mode: str | None, *, reviews_plans: bool) -> None:
        """Use the last options of a session: its mode (None: the default) and its plan review."""
        self.chose_mode = mode is not None and mode != self.default_mode
        self.mode = mode or self.default_mode
        self.plan_review = "always" if reviews_plans else None

    def options(self) -> dict[str, Any]:
        """Return the options of a task, as `POST /api/tasks` takes them."""
        chosen = {
            "permission_mode": self.mode if self.chose_mode else None,
            "allow": list(self.allow),
            "deny": list(self.deny),
            "model": self.model,
            "plan_review": self.plan_review,
            "network": self.network,
        }
        return {**self.fixed, **{name: value for name, value in chosen.items() if value}}


HINT_SECONDS = 2.0
_MAX_RESUMED_MESSAGES = 6
"""Number of messages of a resumed session that are shown."""
DEFAULT_STATUS_PARTS = ("mode", "model", "folder", "context", "cost")
_MAX_SHELL_LABEL = 50
MIN_LONG_RUN_SECONDS = 10.0
"""The end of a run that took longer calls for attention."""
_OPEN = {"queued", "running", "waiting"}


class ReplSession:
    """The state of a session. `redraw` is called after every visible change."""

    def __init__(self, choices: TaskChoices, glyphs: Glyphs, language: Language) -> None:
        self.choices = choices
        self.messages: MessageCatalog = MessageCatalog("repl", language)
        self.session_id: str | None = None
        self.queue: deque[str] = deque()
        self.pastes = PasteBuffer(self._label_paste)
        self.model = choices.model or ""
        self.place = ""
        self.title: str | None = None
        self.files: list[InputFile] = []
        """Title and files of the first task of the session."""
        self.stopping = False
        self.last_sent = ""
        """The last message as it was written."""
        self.last_run = ""
        """The run of the last message; "" if it steered a run or none was sent."""
        self.seen = ""
        """The id of the newest event that was shown; "" if there is none."""
        self.written = ""
        """The id of the newest event that was shown when the input was changed last."""
        self.shell = ShellRunner(self._show_shell_lines)
        self.attention: Callable[[str], None] = lambda _sentence: None
        """Calls for a person who looks elsewhere; "" ends it."""
        self.status_parts: Sequence[str] = DEFAULT_STATUS_PARTS
        self.default_network = "off"
        """The configured network access of isolated commands."""
        self._asked = 0
        self.redraw: Callable[[], None] = lambda: None
        self.restore_input: Callable[[str], None] = lambda _text: None
        self.insert_text: Callable[[str], None] = lambda _text: None
        self._glyphs = glyphs
        self._services: asyncio.Future[ReplServices] = asyncio.get_running_loop().create_future()
        self._send_lock = asyncio.Lock()
        self._sending = 0
        self._uploading = self._stops_upload = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._watching: asyncio.Task[None] | None = None
        self._is_disconnected = False
        self._hint = ("", 0.0)
        self.view = TranscriptView(self.messages, glyphs, asks=True)

    # for the screen

    def take_rows(self, width: int) -> tuple[list[Fragments], list[Fragments]]:
        """Return the rows to print permanently, and the live rows below them."""
        return self.view.take_rows(width)

    def status(self, waiting: Fragments = (), hint: str = "") -> tuple[Fragments, str]:
        """Return the status line and the hint at its end.

        `waiting` is shown while no run is active, `hint` instead of the default hint.
        """
        messages, run = self.messages, self.view.current
        hint = hint or (messages("running_hint") if run else messages("idle_hint"))
        if self._hint[1] > time.monotonic():
            hint = self._hint[0]
        if self._is_disconnected:
            return (("class:need", f"{self._glyphs.note} {messages('gateway_unreachable')}"),), hint
        if run is not None:
            return self._running_status(run), hint
        if self.shell.command:
            label = truncate_line(f"! {self.shell.command}", _MAX_SHELL_LABEL)
            mark = ("class:running", f"{self._glyphs.tool} ")
            return (mark, ("", label)), messages("shell_hint")
        if self._sending:
            ready = self._services.done()
            return (
                ("class:faint", messages("sending") if ready else messages("getting_ready")),
            ), hint
        if waiting:
            return waiting, hint
        return self._idle_status(), hint

    def _idle_status(self) -> Fragments:
        facts = self._facts()
        shown: Fragments = ()
        for name in self.status_parts:
            if not (fact := facts.get(name)):
                continue
            style = "class:faint"
            if name == "mode":
                style = "class:need" if self.choices.is_widened else "class:accent"
            shown = (*shown, *((("class:faint", " · "),) if shown else ()), (style, fact))
        return shown

    def _facts(self) -> Mapping[str, str]:
        """Return the parts of the status line that are known."""
        view = self.view
        percent = view.request.percent
        return {
            "mode": self._mode(),
            "model": self.model,
            "folder": self.place,
            "context": self.messages("context_part", percent=percent) if percent else "",
            "cost": format_cost(view.cost.dollars) if view.cost.dollars else "",
        }

    def _mode(self) -> str:
        mode = self.choices.mode
        return f"{mode} · {self.network_label()}" if mode == Mode.RUN else mode

    def network_label(self) -> str:
        """Return a short label for the network access of isolated commands."""
        network = self.choices.network or self.default_network
        return self.messages(f"network_{network if isinstance(network, str) else 'hosts'}")

    def _running_status(self, run: RunState) -> Fragments:
        return render_status(
            run,
            self.view.plan,
            self._glyphs,
            self.messages,
            stopping=self.stopping,
            queued=len(self.queue),
            facts=[
                fact
                for name, fact in self._facts().items()
                if fact and name in {"mode", "context", "cost"} & {*self.status_parts}
            ],
        )

    def hint(self, text: str) -> None:
        """Show a hint for `HINT_SECONDS`."""
        self._hint = (text, time.monotonic() + HINT_SECONDS)
        asyncio.get_running_loop().call_later(HINT_SECONDS + 0.01, self.redraw)
        self.redraw()

    def note(self, *lines: StyledLine) -> None:
        """Print lines that are no part of the conversation."""
        self.view.print_lines("note", lines)
        self.redraw()

    # user actions

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` in the background; print the error if the gateway refuses it."""
        task = asyncio.get_running_loop().create_task(self._report_errors(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def send(
        self, text: str, options: Mapping[str, Any] | None = None, *, edits: bool = False
    ) -> None:
        """Send text: it steers the running task, or becomes the next task with these options.

        With `edits` it replaces the last message, in a branch of the session.
        """
        self._sending += 1
        self.attention("")
        replaced = self.last_run if edits else ""
        self.start(self._send_in_order(text, options or {}, replaced, seen=self.written))

    def run_shell(self, command: str) -> None:
        """Run a shell command of the person in the folder, unless one is running."""
        if self.shell.command:
            self.hint(self.messages("shell_busy"))
            self.restore_input(f"!{command}")
            return
        self.shell.command = command  # at once: the next one is refused from here on
        self.view.print_lines("you", [StyledLine((("class:you", f"! {sanitize(command)}"),))])
        self.start(self._run_shell(command))

    def paste(self, text: str) -> str:
        """Return the text to insert for a paste; paths of existing files become placeholders."""
        placeholders: list[str] = []
        for path in pasted_paths(text):
            try:
                placeholders.append(self.pastes.add_file(check_file(path)))
            except CliExit as error:
                self.hint(str(error))
        return " ".join(placeholders) + " " if placeholders else self.pastes.add(text)

    def paste_picture(self) -> None:
        """Insert a placeholder for the picture in the clipboard."""
        self.start(self._paste_picture())

    def queue_text(self, text: str) -> None:
        """Queue text until the running task ends; send it at once if none runs."""
        self.queue.append(text)
        self._send_queued()

    def unqueue(self) -> str | None:
        """Remove the last queued text and return it, or None.

        Without one the last message that the run has not read is taken back, and put into the
        input once that is certain; "" is returned then.
        """
        if self.queue or not self.view.waiting:
            return self.queue.pop() if self.queue else None
        number, text = self.view.waiting.popitem()
        self.start(self._take_back(number, text))
        return ""

    def stop(self) -> None:
        """Stop the running task, else the waiting one. Queued text goes back into the input."""
        run = self.view.runs.stoppable
        if run is None:
            self.stop_upload()
            return
        self.stopping = True
        if self.queue:
            self.restore_input("\n".join(self.queue))
            self.queue.clear()
        self.view.stopped.add(run.task_id)
        self.start(self._stop(run.task_id))
        self.redraw()

    def move_to_background(self) -> None:
        """Move the running task to the background; the next one can start immediately.

        A task that is being sent is moved as soon as it is stored.
        """
        self.start(self._move_to_background())

    def ending_tasks(self) -> str:
        """Return the sentence about the background tasks that end with this terminal, or "".

        A gateway executes them regardless of the terminal.
        """
        services, count = self.services, len(self.view.moved) + self.view.subtasks.count
        if not count or services is None or services.client.transport.via == "gateway":
            return ""
        return self.messages("tasks_end" if count > 1 else "task_ends", count=count)

    @property
    def has_task(self) -> bool:
        """Whether a foreground task is being sent or has not ended."""
        return bool(self._sending) or self.view.current is not None

    def stop_upload(self) -> bool:
        """Stop sending files; their text goes back into the input. False if none are sent."""
        self._stops_upload = self._uploading
        return self._uploading

    # the client

    async def ready(self) -> ReplServices:
        """Wait for the services and return them."""
        return await wait_shielded(self._services)

    @property
    def services(self) -> ReplServices | None:
        """The services, None until they are ready."""
        return self._services.result() if self._services.done() else None

    def set_services(self, services: ReplServices) -> None:
        """Set the services and use their language."""
        self.messages = MessageCatalog("repl", services.language)
        self.view.set_messages(self.messages)
        self.view.key_page = services.client.key_page
        self._services.set_result(services)

    async def open(self, session_id: str, *, keeps_choices: bool = False) -> None:
        """Resume a session: show its last messages, then its new events.

        With `keeps_choices` the options of the command line stay; otherwise the options of the
        session's newest task are used.
        """
        client = (await self.ready()).client
        mode, reviews_plans = await client.session_choices(session_id)
        after = await client.head(session_id)
        messages = (await client.transcript(session_id))[-_MAX_RESUMED_MESSAGES:]
        tasks = await client.tasks(session_id)
        last = (await client.task(tasks[0].task_id)).run_id if tasks else ""
        questions = await client.questions("open", session_id)
        self.leave_session()
        self.session_id = session_id
        if not keeps_choices:
            self.choices.enter_session(mode, reviews_plans=reviews_plans)
        for one in messages:
            self.view.add_message(one.role, one.text, one.unwritten)
        for task in reversed([one for one in tasks if one.status in _OPEN]):
            self._adopt(task, (await client.task(task.task_id)).run_id)
        for question in reversed(questions):
            self.view.open_question(question.view)
        for waiting in await client.waiting(session_id):
            if waiting.is_given_back:
                self.view.add_given_back(waiting.text)
        self._asked = len(self.view.questions)
        self.view.cost.is_old = True
        self.last_sent, self.last_run = (tasks[0].task if tasks else ""), last
        self._watch(session_id, after)
        await self._read_cost()
        await self._mark_read()
        self.redraw()

    def begin_session(self) -> None:
        """Leave the session for a new one, which has the default mode."""
        self.leave_session()
        self.choices.enter_session(None, reviews_plans=False)

    def leave_session(self) -> None:
        """Detach from the session: its events are no longer shown."""
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        self.session_id, self.last_run = None, ""
        self.view.reset()

    async def close(self) -> None:
        """Cancel everything that is in progress."""
        left = [*self._tasks, *([self._watching] if self._watching else [])]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)

    async def _report_errors(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except GatewayError as error:
            self.view.print_lines("row", [self.view.rows.failed(str(error))])
        except Exception as error:  # noqa: BLE001 - the session goes on, and says so
            self._print_unforeseen(error)
        finally:
            self.redraw()

    async def _paste_picture(self) -> None:
        try:
            picture = await read_picture()
        except NoPicture as error:
            self.view.print_lines("note", [self.view.rows.note(self.messages(error.reason))])
        else:
            self.insert_text(f"{self.pastes.add_picture(picture)} ")

    async def _run_shell(self, command: str) -> None:
        try:
            code = await self.shell.run(command, self.choices.fixed.get("workspace") or ".")
        except OSError as error:
            raise GatewayError(FAILED, error.strerror or str(error)) from None
        if code:
            stopped = code == -SIGKILL  # the person ended it
            label = self.messages("stopped") if stopped else self.messages("exit_code", code=code)
            self.view.print_lines("row", [self.view.rows.faint(f"{self._glyphs.failed} {label}")])

    def _show_shell_lines(self, lines: Sequence[str]) -> None:
        indent = (("", "  "),)
        self.view.print_lines(
            "row",
            [
                StyledLine((("", sanitize(line.rstrip("\r"))),), indent, indent, verbatim=True)
                for line in lines
            ],
        )
        self.redraw()

    async def _send_in_order(
        self, text: str, options: Mapping[str, Any], replaced: str, *, seen: str
    ) -> None:
        try:
            async with self._send_lock:
                if replaced:
                    await self._branch(replaced)
                self.last_sent = text
                folder = Path(self.choices.fixed.get("workspace") or ".")
                mentioned = mentioned_files(text, folder)
                whole, pasted = self.pastes.expand_to_files(text)
                await self._send(whole, [*mentioned, *pasted], options, seen=seen)
        except CliExit as error:
            self.restore_input(text)
            raise GatewayError(error.code, str(error)) from None
        except GatewayError:
            self.restore_input(text)
            raise
        finally:
            self._sending -= 1

    async def _branch(self, run_id: str) -> None:
        """Continue in a new session with the conversation before a run."""
        client, origin = (await self.ready()).client, self.session_id
        if origin is None:
            return
        branch = await client.fork(origin, run_id)
        self.leave_session()
        self.session_id = branch
        self._watch(branch, "")
        self.view.print_lines("note", [self.view.rows.note(self.messages("branched"))])

    async def _send(
        self, text: str, pasted: list[InputFile], options: Mapping[str, Any], *, seen: str
    ) -> None:
        client, run = (await self.ready()).client, self.view.current
        first, self.files = self.files, []
        files = [*first, *pasted]
        kept = self.shell.take_kept()
        if run is not None and not files:
            try:
                # who sent a task need not have seen its events
                is_own = self.view.is_own_task(run.task_id)
                steered = await client.steer(run.task_id, text, "" if is_own else seen, kept)
            except GatewayError:
                self.shell.keep(kept)
                raise
            self.last_run = ""
            remark = self.messages("noted") if steered else self.messages("becomes_next")
            self.view.add_sent(text, f"{self._glyphs.noted} {remark}")
            return
        self.view.add_sent(text)
        self.redraw()
        chosen = {**self.choices.options(), **options}
        request = TaskRequest(
            text, chosen, self.session_id, self.choices.profile, tuple(files), commands=kept
        )
        self._uploading = bool(files)
        try:
            ids = await client.submit(request, self._check_upload)
        except GatewayError:
            self.view.remove_sent(text)
            self.shell.keep(kept)
            self.files = first
            raise
        finally:
            self._uploading = self._stops_upload = False
        self.last_run = ids.run_id
        self.view.add_own_task(ids.task_id)
        self.view.runs.expect(ids.run_id, ids.task_id, "queued")
        if self.session_id is None:
            self.session_id = ids.session_id
            self._watch(ids.session_id, "")
        if self.title is not None:
            title, self.title = self.title, None
            await client.rename(ids.session_id, title)

    def _check_upload(self) -> None:
        if self._stops_upload:
            raise GatewayError(INTERRUPTED, self.messages("sending_stopped"))

    async def _take_back(self, number: int, text: str) -> None:
        """Take a message back and put it into the input, unless the run has read it."""
        if self.session_id is None:
            return
        if await (await self.ready()).client.take_back(self.session_id, number):
            self.view.remove_sent(text)
            self.restore_input(text)
        else:
            self.hint(self.messages("already_read"))

    async def _stop(self, task_id: str) -> None:
        await (await self.ready()).client.stop(task_id)

    async def _move_to_background(self) -> None:
        client = (await self.ready()).client
        async with self._send_lock:
            run = self.view.current
        if run is None:
            return
        task_id = run.task_id
        await client.move_to_background(task_id)
        text = (await client.task(task_id)).item.task
        self.view.move_to_background(task_id, text)
        moved = self.messages("moved_to_background", id=short_id(task_id))
        self.view.print_lines("note", [self.view.rows.note(moved)])
        self._send_queued()

    def _adopt(self, task: TaskItem, run_id: str) -> None:
        awaits = task.stop_reason == AWAITS_TASKS
        self.view.runs.expect(run_id, task.task_id, AWAITS_TASKS if awaits else task.status)

    def _watch(self, session_id: str, after: str) -> None:
        self._watching = asyncio.get_running_loop().create_task(
            self._report_errors(self._show(session_id, after))
        )

    async def _show(self, session_id: str, after: str) -> None:
        client = (await self.ready()).client
        while True:
            async with aclosing(client.watch(session_id, after)) as batches:
                async for batch in batches:
                    if batch.reset:
                        break
                    self._is_disconnected = not batch.is_connected
                    for row in batch.rows:
                        self._add_event(row.envelope)
                        self.seen = row.id or self.seen
                    while self.view.given_back:
                        self.start(self._take_back(*self.view.given_back.popitem()))
                    self._send_queued()
                    self._call_attention()
                    if self.view.cost.is_old:
                        self.start(self._read_cost())
            # the event log was reset: continue from its current end
            after = await client.head(session_id)

    def _call_attention(self) -> None:
        """Call for the person if something waits, or if a long run has ended."""
        asked, before = len(self.view.questions), self._asked
        seconds, self.view.ended_after = self.view.ended_after, 0.0
        self._asked = asked
        if asked > before:
            self.attention(self.messages("attention_waiting"))
        elif asked < before:
            self.attention("")
        elif seconds >= MIN_LONG_RUN_SECONDS:
            self.attention(self.messages("attention_done"))
        if seconds:
            self.start(self._mark_read())

    async def _read_cost(self) -> None:
        """Read the cost of the session; keep the previous value if the gateway fails."""
        self.view.cost.is_old, session_id = False, self.session_id
        if session_id is None:
            return
        with suppress(GatewayError):
            used = await (await self.ready()).client.usage("session", session_id)
            if self.session_id == session_id:
                self.view.cost.dollars = sum(one.cost or 0.0 for one in used)
                self.redraw()

    async def _mark_read(self) -> None:
        """Record that the session was read here; without the gateway it stays unread."""
        if self.session_id is not None:
            with suppress(GatewayError):
                await (await self.ready()).client.mark_read(self.session_id)

    def _add_event(self, envelope: bytes) -> None:
        try:
            self.view.add_event(envelope)
        except Exception as error:  # noqa: BLE001 - one event must not end the stream
            self._print_unforeseen(error)

    def _print_unforeseen(self, error: Exception) -> None:
        sentence = self.messages("unforeseen", reason=f"{type(error).__name__}: {error}")
        self.view.print_lines("row", [self.view.rows.failed(sentence)])

    def _send_queued(self) -> None:
        if self.view.current is None:
            self.stopping = False
            if self.queue and not self._sending:
                self.send(self.queue.popleft())
        self.redraw()

    def _label_paste(self, number: int, lines: int) -> str:
        return self.messages("pasted", number=number, lines=lines)
