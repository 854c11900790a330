"""Runs a session: the first frame is drawn at once, services are opened afterwards."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count
from pathlib import Path

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.output.color_depth import ColorDepth

from internal.channels.cli.client import GatewayError
from internal.channels.cli.command_output import short_id
from internal.channels.cli.exit_codes import BROKEN_PIPE, FAILED, USAGE, CliExit
from internal.channels.cli.id_lookup import find_session
from internal.channels.cli.input_files import InputFile
from internal.channels.cli.records import AgentDefaults
from internal.channels.cli.render.theme import ASCII, UNICODE
from internal.channels.cli.repl.commands.context import SlashContext
from internal.channels.cli.repl.completion import SessionCompleter
from internal.channels.cli.repl.file_mentions import mention_start
from internal.channels.cli.repl.history import HistoryFile
from internal.channels.cli.repl.keybindings import KeyActions, KeyHandlers
from internal.channels.cli.repl.prompt import QUESTIONS_POLL_SECONDS, Prompt
from internal.channels.cli.repl.screen import TerminalScreen
from internal.channels.cli.repl.services import ReplServices
from internal.channels.cli.repl.session import ReplSession, TaskChoices
from internal.channels.cli.repl.signals import SessionSignals
from internal.channels.cli.repl.slash_commands import SlashCommands
from internal.channels.cli.repl.terminal_io import FrameOutput, PasteInput, TerminalRestorer
from internal.config.terminal_env import TerminalFacts, terminal_facts
from internal.i18n.catalog import MessageCatalog
from internal.i18n.language import Language
from internal.i18n.quantities import format_cost
from internal.i18n.runs import RunMessages

_CLOSE_TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True)
class ReplOptions:
    """Options of a session. `session_id` resumes one, "" the newest of the terminal or the page."""

    choices: TaskChoices
    folder: Path
    history: Path
    language: Language
    version: str
    model: str = ""
    prompt: str | None = None
    session_id: str | None = None
    lists: bool = False
    """List the sessions that can be resumed."""
    title: str | None = None
    files: tuple[InputFile, ...] = ()
    ascii_only: bool = False
    colours: ColorDepth | None = None
    terminal: TerminalFacts = field(default_factory=terminal_facts)


ServicesOpener = Callable[[Callable[[str], None]], AbstractAsyncContextManager[ReplServices]]
"""Opens the services. Its argument reports errors of runs that do not report them themselves."""


async def run_repl_session(start: ReplOptions, opened: ServicesOpener) -> int:
    """Run a session on the terminal of this process and return the exit code.

    The terminal is always restored.

    Raises:
        CliExit: the session cannot be opened.
    """
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CliExit(USAGE, "Standard input or output is not a terminal.")
    restorer = TerminalRestorer(sys.stdin.fileno(), sys.stdout.fileno())
    try:
        return await _ReplApp(start, opened, restorer).run()
    finally:
        restorer.restore()


class _ReplApp:
    """Wires the parts of a session together and runs them."""

    def __init__(
        self, start: ReplOptions, opened: ServicesOpener, restorer: TerminalRestorer
    ) -> None:
        self._start = start
        self._opened = opened
        self._glyphs = ASCII if start.ascii_only else UNICODE
        self.session = ReplSession(start.choices, self._glyphs, start.language)
        self.session.model = start.choices.model or start.model
        self.session.place = _shown_folder(start.folder)
        self.session.title, self.session.files = start.title, [*start.files]
        self._over = asyncio.Event()
        self._context = SlashContext(
            self.session,
            start.folder,
            self._set_theme,
            self.leave,
            clear_screen=self._clear,
            pick=self._pick,
            write=self._write,
        )
        self._commands = SlashCommands(self._context, start.history.with_name("commands"))
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
            restorer,
            interrupted=self._interrupted,
            ended=self.leave,
            suspended=self._suspended,
            resumed=self._resumed,
        )
        self.keyboard = KeyHandlers(
            KeyActions(
                self.session,
                self.prompt,
                self.box,
                self._commands.run,
                self.leave,
                self.signals.exit_now,
            )
        )
        streams = (
            PasteInput(sys.stdin),
            FrameOutput(sys.stdout, start.terminal, start.colours, self._gone),
        )
        self.screen = TerminalScreen(
            self.prompt,
            self.box,
            self.keyboard.bindings(),
            streams=streams,
            looks=(self._glyphs, self._context.theme),
        )
        self.session.redraw = self.screen.refresh
        self.session.restore_input = self._put_back
        self.session.insert_text = self._insert
        self.session.attention = self.screen.call_attention

    async def run(self) -> int:
        """Run the screen and the services until the session ends. Return the exit code."""
        with self.signals:
            services = asyncio.create_task(self._serve())
            ticking = asyncio.create_task(self._poll())
            try:
                code = await self.screen.app.run_async(
                    handle_sigint=False, set_exception_handler=False
                )
            except EOFError:
                code = FAILED  # the terminal was closed
            finally:
                self._over.set()
                self.screen.call_attention("")
                ticking.cancel()
                done, _ = await asyncio.wait({services}, timeout=_CLOSE_TIMEOUT_SECONDS)
            if not done:
                self.signals.exit_now(code)
            services.result()
            return self.signals.code or code

    def leave(self, code: int) -> None:
        """End the session."""
        app, session = self.screen.app, self.session
        if app.is_running and not app.is_done:
            if session.session_id is not None:
                resume = session.messages("resume_command", id=short_id(session.session_id))
                session.note(session.view.rows.note(resume))
                if ends := session.ending_tasks():
                    session.note(session.view.rows.note(ends.partition(" · ")[0]))
                for name in session.view.questions:
                    text = session.messages("question_open", id=short_id(name))
                    session.note(session.view.rows.note(text))
            app.exit(result=code)

    async def _serve(self) -> None:
        """Open the services, greet, and keep them open until the session ends."""
        try:
            async with self._opened(self._report_error) as services:
                try:
                    await self._greet(services)
                    await self._over.wait()
                finally:
                    await self._close(services)
        except BaseException:
            self.leave(FAILED)
            raise

    async def _greet(self, services: ReplServices) -> None:
        session, start = self.session, self._start
        session.set_services(services)
        self.screen.notifies = services.ui.notify
        session.status_parts = services.ui.status_line
        about = await services.client.defaults()
        session.model = start.choices.model or about.model
        session.choices.set_default_mode(about.mode)
        messages, rows = session.messages, session.view.rows
        session.default_network = about.network
        isolation = messages("not_isolated")
        if about.isolated:
            isolation = messages("isolated", network=session.network_label())
        session.note(rows.faint(messages("banner", version=start.version, isolation=isolation)))
        session.note(rows.faint(_limits(messages, about)))
        if about.offline:
            session.note(rows.note(messages("offline")))
        self._commands.load_custom()
        wanted = start.session_id
        if wanted == "":
            newest = [
                one for one in await services.client.sessions() if one.channel in {"cli", "web"}
            ]
            wanted = newest[0].session_id if newest else None
        if wanted is not None and not start.lists:
            found = await find_session(services.client, wanted)
            await session.open(found, keeps_choices=session.choices.chose_mode)
        if start.lists:
            self._commands.run("/resume")
        if start.prompt:
            session.send(start.prompt)
        session.start(self._commands.refresh_sessions())
        session.start(_load_renderer())

    async def _close(self, services: ReplServices) -> None:
        """Stop the run that is still active."""
        run = self.session.view.current
        if run is not None:
            try:
                await services.client.stop(run.task_id)
            except GatewayError as error:
                self._report_error(str(error))
        await self.session.close()

    async def _poll(self) -> None:
        """Update the elapsed time, and poll for questions of other sessions."""
        for second in count(1):
            await asyncio.sleep(1)
            if self.session.services is not None and not second % QUESTIONS_POLL_SECONDS:
                self.session.start(self.prompt.load_questions())
            if self.session.view.current is not None:
                self.screen.refresh()

    def _report_error(self, sentence: str) -> None:
        self.session.view.print_lines("row", [self.session.view.rows.failed(sentence)])
        self.session.redraw()

    def _interrupted(self) -> None:
        self.keyboard.interrupt()
        self.screen.refresh()

    def _resumed(self) -> None:
        if not self.keyboard.is_editor_open:
            self.screen.wake()  # the terminal settings may have changed meanwhile

    def _suspended(self) -> None:
        # signal handlers run outside the context of the application
        context = self.screen.app.context
        if context is not None:
            context.copy().run(self.keyboard.suspend)

    def _gone(self, _error: OSError) -> None:
        self.leave(BROKEN_PIPE)

    def _set_theme(self, theme: str) -> None:
        self.screen.set_theme(theme)

    def _clear(self) -> None:
        self.screen.clear()

    def _pick(self, name: str) -> None:
        self.prompt.pick(name)

    def _write(self, sequence: str) -> None:
        self.screen.write(sequence)

    def _insert(self, text: str) -> None:
        self.box.insert_text(text)
        self.screen.refresh()

    def _put_back(self, text: str) -> None:
        if not self.box.text:
            self.box.insert_text(text)

    def _completes(self) -> bool:
        text = self.box.document.text_before_cursor
        return text.startswith("/") or mention_start(text) >= 0


async def _load_renderer() -> None:
    """Import rich, which the first frame does not need, before the first reply needs it."""
    await asyncio.to_thread(import_module, "internal.channels.cli.render.markdown")


def _limits(messages: MessageCatalog, about: AgentDefaults) -> str:
    """Return the line with the limits at which a run ends."""
    unpriced = RunMessages(messages.language).cost_limit(
        about.model, about.max_cost, about.max_tokens, is_priced=about.is_priced
    )
    has_cost = about.max_cost is not None and not unpriced
    line = messages(
        "limits" if has_cost else "limits_of_time" if unpriced else "limits_without_cost",
        iterations=about.max_iterations,
        minutes=f"{about.timeout_seconds / 60:g}",
        cost=format_cost(about.max_cost or 0.0),
    )
    return f"{line}. {unpriced}" if unpriced else line


def _shown_folder(folder: Path) -> str:
    try:
        return str(Path("~") / folder.relative_to(Path.home()))
    except (ValueError, RuntimeError):
        return str(folder)
