"""A session: what a person says goes to the client, what happens there goes to the screen."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from internal.channels.cli.client import GatewayError, TaskItem, TaskRequest
from internal.channels.cli.render.text import Fragments, StyledLine
from internal.channels.cli.render.theme import Glyphs
from internal.channels.cli.repl.dependencies import ReplServices
from internal.channels.cli.repl.paste import PasteChips
from internal.channels.cli.repl.status_line import RunState, render_status
from internal.channels.cli.repl.view import SessionView
from internal.channels.cli.task_request import File
from internal.i18n.catalog import Language, MessageCatalog

CYCLED_MODES = ("ask", "plan", "accept-edits")
"""Through these Shift+Tab goes."""


@dataclass
class TaskChoices:
    """`fixed` are the options of the command line, without what stands here."""

    fixed: Mapping[str, Any]
    mode: str = CYCLED_MODES[0]
    allow: list[str] = field(default_factory=list)
    deny: list[str] = field(default_factory=list)
    model: str | None = None
    profile: str | None = None
    plan_review: str | None = None
    """Which plans wait for the person: `always` or `off`; without a choice the settings decide."""
    chose_mode: bool = False
    """Without a choice the settings decide."""

    def next_mode(self) -> str:
        """Step to the next mode and return it."""
        at = CYCLED_MODES.index(self.mode) if self.mode in CYCLED_MODES else -1
        return self.set_mode(CYCLED_MODES[(at + 1) % len(CYCLED_MODES)])

    def set_mode(self, mode: str) -> str:
        """Choose a mode and return it."""
        self.mode, self.chose_mode = mode, True
        return mode

    def options(self) -> dict[str, Any]:
        """Return the options of a task, as `POST /api/tasks` takes them."""
        chosen = {
            "permission_mode": self.mode if self.chose_mode else None,
            "allow": list(self.allow),
            "deny": list(self.deny),
            "model": self.model,
            "plan_review": self.plan_review,
        }
        return {**self.fixed, **{name: value for name, value in chosen.items() if value}}


HINT_SECONDS = 2.0
_SHOWN_AGAIN = 6
"""How many messages of a session that goes on are shown again."""
_OPEN = {"queued", "running", "waiting"}


class ReplSession:
    """The state of a session. `redraw` is called whenever something to be shown has changed."""

    def __init__(self, choices: TaskChoices, glyphs: Glyphs, language: Language) -> None:
        self.choices = choices
        self.messages: MessageCatalog = MessageCatalog("repl", language)
        self.session_id: str | None = None
        self.queue: deque[str] = deque()
        self.chips = PasteChips(self._pasted)
        self.model = choices.model or ""
        self.place = ""
        self.title: str | None = None
        self.files: list[File] = []
        """What the first task of this session is called, and what goes along with it."""
        self.stopping = False
        self.redraw: Callable[[], None] = lambda: None
        self.put_back: Callable[[str], None] = lambda _text: None
        self._glyphs = glyphs
        self._kit: asyncio.Future[ReplServices] = asyncio.get_running_loop().create_future()
        self._order = asyncio.Lock()
        self._sending = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._watching: asyncio.Task[None] | None = None
        self._away = False
        self._hint = ("", 0.0)
        self.view = SessionView(self.messages, glyphs, asks=True)

    # what the screen asks

    def print(self, width: int) -> tuple[list[Fragments], list[Fragments]]:
        """Return the rows to print above now, and those below that still move."""
        return self.view.print(width)

    def status(self, waiting: Fragments = (), hint: str = "") -> tuple[Fragments, str]:
        """Return the line of status and the hint at its end.

        `waiting` is shown when nothing is at work, `hint` in place of the usual one.
        """
        messages, run = self.messages, self.view.current
        hint = hint or (messages("running_hint") if run else messages("idle_hint"))
        if self._hint[1] > time.monotonic():
            hint = self._hint[0]
        if self._away:
            return (("class:need", f"{self._glyphs.note} {messages('away')}"),), hint
        if run is not None:
            return self._running_status(run), hint
        if self._sending:
            ready = self._kit.done()
            return (
                ("class:faint", messages("sending") if ready else messages("getting_ready")),
            ), hint
        if waiting:
            return waiting, hint
        style = "class:need" if self.choices.mode == "full" else "class:accent"
        about = " · ".join(one for one in (self.model, self.place) if one)
        return ((style, self.choices.mode), ("class:faint", f" · {about}" if about else "")), hint

    def _running_status(self, run: RunState) -> Fragments:
        return render_status(
            run,
            self.view.plan,
            self._glyphs,
            self.messages,
            stopping=self.stopping,
            queued=len(self.queue),
        )

    def hint(self, text: str) -> None:
        """Show a hint for two seconds."""
        self._hint = (text, time.monotonic() + HINT_SECONDS)
        asyncio.get_running_loop().call_later(HINT_SECONDS + 0.01, self.redraw)
        self.redraw()

    def note(self, *lines: StyledLine) -> None:
        """Print lines that are nobody's words."""
        self.view.put("note", lines)
        self.redraw()

    # what a person does

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside the rest; what the client refuses is printed."""
        task = asyncio.get_running_loop().create_task(self._answered(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def say(self, text: str) -> None:
        """Send words: steering while a task runs, else the next task."""
        opened, files = self.chips.open(text)
        self._sending += 1
        self.start(self._say(opened, files))

    def later(self, text: str) -> None:
        """Queue words for when the task at work is over; without one they are the next task."""
        self.queue.append(text)
        self._settle()

    def take_back(self) -> str | None:
        """Return the words that were queued last, which are not queued any more."""
        return self.queue.pop() if self.queue else None

    def stop(self) -> None:
        """Stop the task at work, else the one that waits. What was queued comes into the box."""
        run = self.view.work.stoppable
        if run is None:
            return
        self.stopping = True
        if self.queue:
            self.put_back("\n".join(self.queue))
            self.queue.clear()
        self.view.stopped.add(run.task_id)
        self.start(self._stop(run.task_id))
        self.redraw()

    # the client

    async def ready(self) -> ReplServices:
        """Return the services once it is there."""
        return await asyncio.shield(self._kit)

    @property
    def services(self) -> ReplServices | None:
        """The services, if it is there."""
        return self._kit.result() if self._kit.done() else None

    def arrived(self, services: ReplServices) -> None:
        """Take the services."""
        self.messages = MessageCatalog("repl", services.language)
        self.view.speak(self.messages)
        self._kit.set_result(services)

    async def open(self, session_id: str) -> None:
        """Go on with a session: show its end, then what happens from now on."""
        client = (await self.ready()).client
        after = await client.head(session_id)
        said = (await client.transcript(session_id))[-_SHOWN_AGAIN:]
        tasks = [one for one in await client.tasks(session_id) if one.status in _OPEN]
        questions = await client.questions("open", session_id)
        self.leave_session()
        self.session_id = session_id
        for one in said:
            self.view.again(one.role, one.text)
        for task in reversed(tasks):
            self._adopt(task, (await client.task(task.task_id)).run_id)
        for asked in reversed(questions):
            self.view.ask(asked.view)
        self._watch(session_id, after)
        self.redraw()

    def leave_session(self) -> None:
        """Forget the session; what it does is not shown any more."""
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        self.session_id = None
        self.view.forget()

    async def close(self) -> None:
        """Stop watching and whatever else is under way."""
        left = [*self._tasks, *([self._watching] if self._watching else [])]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)

    async def _answered(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except GatewayError as error:
            self.view.put("row", [self.view.rows.failed(str(error))])
        finally:
            self.redraw()

    async def _say(self, text: str, files: list[File]) -> None:
        try:
            async with self._order:
                await self._send(text, files)
        except GatewayError:
            self.put_back(text)
            raise
        finally:
            self._sending -= 1

    async def _send(self, text: str, files: list[File]) -> None:
        client, run = (await self.ready()).client, self.view.current
        files, self.files = [*self.files, *files], []
        if run is not None and not files:
            taken = await client.steer(run.task_id, text)
            remark = self.messages("noted") if taken else self.messages("becomes_next")
            self.view.sent(text, f"{self._glyphs.noted} {remark}")
            return
        self.view.sent(text)
        self.redraw()
        wish = TaskRequest(
            text, self.choices.options(), self.session_id, self.choices.profile, tuple(files)
        )
        try:
            ids = await client.submit(wish)
        except GatewayError:
            self.view.unsent(text)
            self.files = files
            raise
        self.view.owns(ids.task_id)
        self.view.work.expect(ids.run_id, ids.task_id, "queued")
        if self.session_id is None:
            self.session_id = ids.session_id
            self._watch(ids.session_id, "")
        if self.title is not None:
            title, self.title = self.title, None
            await client.rename(ids.session_id, title)

    async def _stop(self, task_id: str) -> None:
        await (await self.ready()).client.stop(task_id)

    def _adopt(self, task: TaskItem, run_id: str) -> None:
        self.view.work.expect(run_id, task.task_id, task.status)

    def _watch(self, session_id: str, after: str) -> None:
        self._watching = asyncio.get_running_loop().create_task(
            self._answered(self._show(session_id, after))
        )

    async def _show(self, session_id: str, after: str) -> None:
        client = (await self.ready()).client
        while True:
            async with aclosing(client.watch(session_id, after)) as batches:
                async for batch in batches:
                    if batch.reset:
                        break
                    self._away = not batch.is_connected
                    for envelope in batch.envelopes:
                        self.view.take(envelope)
                    self._settle()
            # the log was made anew: what was shown stays, what comes is shown from here
            after = await client.head(session_id)

    def _settle(self) -> None:
        if self.view.current is None:
            self.stopping = False
            if self.queue and not self._sending:
                self.say(self.queue.popleft())
        self.redraw()

    def _pasted(self, number: int, lines: int) -> str:
        return self.messages("pasted", number=number, lines=lines)
