"""Runs a session: the screen is drawn at once, everything else comes behind it."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.output.color_depth import ColorDepth

from internal.channels.cli.client import GatewayError
from internal.channels.cli.exit_codes import BROKEN_PIPE, FAILED, USAGE, CliExit
from internal.channels.cli.render.theme import ASCII, UNICODE
from internal.channels.cli.repl.completion import SessionCompleter
from internal.channels.cli.repl.dependencies import ReplServices
from internal.channels.cli.repl.history import HistoryFile
from internal.channels.cli.repl.keybindings import Doing, KeyHandlers
from internal.channels.cli.repl.prompt import QUESTIONS_POLL_SECONDS, Prompt
from internal.channels.cli.repl.screen import TerminalScreen
from internal.channels.cli.repl.session import ReplSession, TaskChoices
from internal.channels.cli.repl.signals import SessionSignals
from internal.channels.cli.repl.slash_commands import SlashCommands, SlashContext
from internal.channels.cli.repl.terminal_io import FrameOutput, PasteInput, TerminalRestorer
from internal.channels.cli.task_request import File
from internal.i18n.catalog import Language

_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True)
class ReplOptions:
    """How a session begins. `session_id` goes on with one, "" with the newest of the terminal."""

    choices: TaskChoices
    folder: Path
    history: Path
    language: Language
    version: str
    model: str = ""
    prompt: str | None = None
    session_id: str | None = None
    lists: bool = False
    """Show the sessions that can be gone on with."""
    title: str | None = None
    files: tuple[File, ...] = ()
    ascii_only: bool = False
    colours: ColorDepth | None = None
    term: str = ""


KitOpener = Callable[[Callable[[str], None]], AbstractAsyncContextManager[ReplServices]]
"""Opens the services; it is given what to call when a run fails without a report of its own."""


async def run_repl_session(start: ReplOptions, opened: KitOpener) -> int:
    """Run a session on the terminal of this process and return the exit code.

    The terminal is left as it was found, whatever happens.

    Raises:
        Leave: the session cannot be had.
    """
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CliExit(USAGE, "There is no terminal to talk in.")
    restorer = TerminalRestorer(sys.stdin.fileno(), sys.stdout.fileno())
    try:
        return await _Running(start, opened, restorer).run()
    finally:
        restorer.restore()


class _Running:
    """Puts the parts together for as long as the session lasts."""

    def __init__(self, start: ReplOptions, opened: KitOpener, restorer: TerminalRestorer) -> None:
        self._start = start
        self._opened = opened
        self._glyphs = ASCII if start.ascii_only else UNICODE
        self.session = ReplSession(start.choices, self._glyphs, start.language)
        self.session.model = start.choices.model or start.model
        self.session.place = _shown_folder(start.folder)
        self.session.title, self.session.files = start.title, [*start.files]
        self._over = asyncio.Event()
        self._context = SlashContext(self.session, start.folder, self._wear, self.leave)
        self._commands = SlashCommands(self._context)
        self.box = Buffer(
            multiline=True,
            history=HistoryFile(start.history),
            completer=SessionCompleter(start.folder, self._commands.menu, self._commands.values),
            complete_while_typing=Condition(self._completes),
            enable_history_search=False,
            tempfile_suffix=".md",
        )
        self.prompt = Prompt(self.session, self.box)
        self.signals = SessionSignals(
            restorer, self._interrupted, self.leave, self._suspended, self._resumed
        )
        self.keyboard = KeyHandlers(
            Doing(
                self.session,
                self.prompt,
                self.box,
                self._commands.run,
                self.leave,
                self.signals.leave_at_once,
            )
        )
        streams = (
            PasteInput(sys.stdin),
            FrameOutput(sys.stdout, start.term, start.colours, self._gone),
        )
        self.screen = TerminalScreen(
            self.prompt,
            self.box,
            self.keyboard.bindings(),
            streams,
            (self._glyphs, self._context.theme),
        )
        self.session.redraw = self.screen.refresh
        self.session.put_back = self._put_back

    async def run(self) -> int:
        """Draw, then bring up what stands behind."""
        with self.signals:
            behind = asyncio.create_task(self._behind())
            ticking = asyncio.create_task(self._tick())
            try:
                code = await self.screen.app.run_async(
                    handle_sigint=False, set_exception_handler=False
                )
            except EOFError:
                code = FAILED  # the terminal is gone
            finally:
                self._over.set()
                ticking.cancel()
                done, _ = await asyncio.wait({behind}, timeout=_PATIENCE_SECONDS)
            if not done:
                self.signals.leave_at_once(code)
            behind.result()
            return self.signals.code or code

    def leave(self, code: int) -> None:
        """End the session."""
        app, session = self.screen.app, self.session
        if app.is_running and not app.is_done:
            if session.session_id is not None:
                told = session.messages("goes_on", id=session.session_id)
                session.note(session.view.rows.note(told))
                for name in session.view.questions:
                    waits = session.messages("still_waits", id=name)
                    session.note(session.view.rows.note(waits))
            app.exit(result=code)

    async def _behind(self) -> None:
        """Bring up the client, greet, and keep it until the session is over."""
        try:
            async with self._opened(self._trouble) as services:
                try:
                    await self._greet(services)
                    await self._over.wait()
                finally:
                    await self._close(services)
        except (GatewayError, CliExit) as error:
            self.leave(FAILED)
            if isinstance(error, CliExit):
                raise
            raise CliExit(FAILED, str(error)) from error
        except BaseException:
            self.leave(FAILED)
            raise

    async def _greet(self, services: ReplServices) -> None:
        session, start = self.session, self._start
        session.arrived(services)
        about = await services.client.about()
        session.model = start.choices.model or about.model
        messages, rows = session.messages, session.view.rows
        session.note(rows.faint(messages("head", version=start.version)))
        if about.offline:
            session.note(rows.note(messages("offline")))
        wanted = start.session_id
        if wanted == "":
            newest = [
                one for one in await services.client.sessions() if one.channel in {"cli", "web"}
            ]
            wanted = newest[0].session_id if newest else None
        if wanted is not None and not start.lists:
            await session.open(wanted)
        if start.lists:
            self._commands.run("/resume")
        if start.prompt:
            session.say(start.prompt)
        session.start(self._commands.refresh_sessions())
        session.start(_load_renderer())

    async def _close(self, services: ReplServices) -> None:
        """Stop what this terminal started and is still at work."""
        run = self.session.view.current
        if run is not None:
            try:
                await services.client.stop(run.task_id)
            except GatewayError as error:
                self._trouble(str(error))
        await self.session.close()

    async def _tick(self) -> None:
        """Count the seconds while something is at work, and look for questions elsewhere."""
        for second in count(1):
            await asyncio.sleep(1)
            if self.session.services is not None and not second % QUESTIONS_POLL_SECONDS:
                self.session.start(self.prompt.look())
            if self.session.view.current is not None:
                self.screen.refresh()

    def _trouble(self, sentence: str) -> None:
        self.session.view.put("row", [self.session.view.rows.failed(sentence)])
        self.session.redraw()

    def _interrupted(self) -> None:
        self.keyboard.interrupt()
        self.screen.refresh()

    def _resumed(self) -> None:
        if not self.keyboard.lent:
            self.screen.wake()  # whoever stopped us may have changed the terminal

    def _suspended(self) -> None:
        # a signal is handled outside of the screen's own context
        context = self.screen.app.context
        if context is not None:
            context.copy().run(self.keyboard.suspend)

    def _gone(self, _error: OSError) -> None:
        self.leave(BROKEN_PIPE)

    def _wear(self, theme: str) -> None:
        self.screen.wear(theme)

    def _put_back(self, text: str) -> None:
        if not self.box.text:
            self.box.insert_text(text)

    def _completes(self) -> bool:
        text = self.box.document.text_before_cursor
        return text.startswith("/") or "@" in text.split(" ")[-1]


async def _load_renderer() -> None:
    """Import rich, which the first frame does not need, before the first reply needs it."""
    await asyncio.to_thread(import_module, "internal.channels.cli.render.markdown")


def _shown_folder(folder: Path) -> str:
    try:
        return str(Path("~") / folder.relative_to(Path.home()))
    except (ValueError, RuntimeError):
        return str(folder)
