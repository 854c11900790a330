"""`larkspur`: a session in the terminal. Drawn first; what it stands on comes behind it."""

import asyncio
import os
import sys
from argparse import Namespace
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from prompt_toolkit.output.color_depth import ColorDepth

from internal.channels.cli.exit_codes import BROKEN_PIPE, USAGE, CliExit
from internal.channels.cli.http_client import Door
from internal.channels.cli.repl.app import ReplOptions, run_repl_session
from internal.channels.cli.repl.dependencies import ReplServices
from internal.channels.cli.repl.request_threads import in_thread
from internal.channels.cli.repl.session import TaskChoices
from internal.channels.cli.task_request import read_files
from internal.config import home as home_folder
from internal.config.terminal_env import TerminalFacts, terminal_facts
from internal.i18n.catalog import resolve_language
from larkspur.oneshot import gateway_of, working_folder
from larkspur.version import VERSION

Remote = tuple[Door, Callable[[], Door | None]] | None
_FIXED = ("max_iterations", "max_cost", "timeout_seconds", "plan_review")


def run_repl(wanted: Namespace) -> int:
    """Run a session and return the exit code.

    Raises:
        Leave: there is no terminal for it, or what it stands on cannot be had.
    """
    facts = terminal_facts()
    _check_terminal(facts, wanted.prompt)
    home = home_folder.locate()
    remote = gateway_of(wanted)
    address = None if remote is None else home_folder.find_gateway(home)
    folder = working_folder()
    fixed = {name: getattr(wanted, name) for name in _FIXED}
    choices = TaskChoices(
        fixed={"workspace": folder, **{name: one for name, one in fixed.items() if one}},
        mode=wanted.permission_mode or "ask",
        allow=list(wanted.allow),
        deny=list(wanted.deny),
        model=wanted.model,
        profile=wanted.profile,
        chose_mode=wanted.permission_mode is not None,
    )
    start = ReplOptions(
        choices=choices,
        folder=Path(folder),
        history=home / "history",
        language=resolve_language(facts.language or "auto", facts.locale),
        version=VERSION,
        model="" if address is None else address.model,
        prompt=wanted.prompt,
        session_id="" if wanted.last else wanted.resume,
        lists=wanted.resume == "",
        title=wanted.session_name,
        files=read_files(wanted.files),
        ascii_only=wanted.ascii,
        colours=_colours(facts),
        term=facts.term,
    )

    @asynccontextmanager
    async def opened(trouble: Callable[[str], None]) -> AsyncGenerator[ReplServices]:
        # the one import point of all that a first frame does not need
        behind: Any = await in_thread(lambda: import_module("larkspur.behind"))
        async with behind.open_kit(wanted.config, remote, facts, trouble) as kit:
            yield kit

    return asyncio.run(run_repl_session(start, opened))


def _check_terminal(facts: TerminalFacts, prompt: str | None) -> None:
    """Refuse what cannot show a session, and say what does the work there.

    Raises:
        Leave: it is no terminal, or one that cannot move its cursor.
    """
    if sys.stdout is None:
        raise CliExit(BROKEN_PIPE)
    instead = f'larkspur -p "{prompt or "…"}" does one task without it.'
    if not (os.isatty(0) and os.isatty(1)):
        raise CliExit(USAGE, f"A session needs a terminal to read from and write to; {instead}")
    if facts.term in {"", "dumb"}:
        raise CliExit(USAGE, f"This terminal (TERM={facts.term}) cannot show a session; {instead}")


def _colours(facts: TerminalFacts) -> ColorDepth | None:
    if facts.no_colour:
        return ColorDepth.DEPTH_1_BIT
    return ColorDepth.DEPTH_24_BIT if facts.true_colour else None
