"""`larkspur` without a command: start a session. Services open after the first frame."""

import asyncio
import os
import sys
from argparse import Namespace
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from prompt_toolkit.output.color_depth import ColorDepth

from internal.channels.cli.commands.confirmation import confirmed_folder
from internal.channels.cli.commands.context import CommandContext
from internal.channels.cli.commands.first_key import offer_key
from internal.channels.cli.commands.gateway import find_gateway
from internal.channels.cli.exit_codes import BROKEN_PIPE, USAGE, CliExit
from internal.channels.cli.input_files import check_files
from internal.channels.cli.repl.app import ReplOptions, run_repl_session
from internal.channels.cli.repl.services import ReplServices
from internal.channels.cli.repl.session import TaskChoices
from internal.channels.cli.transports.threaded import in_thread
from internal.config import home as home_folder
from internal.config.terminal_env import TerminalFacts, terminal_facts

_FIXED_OPTIONS = ("max_iterations", "max_cost", "timeout_seconds", "plan_review")


def run_repl(args: Namespace, context: CommandContext) -> int:
    """Run a session and return the exit code.

    Raises:
        CliExit: there is no suitable terminal, the working folder is not confirmed, or the services
            cannot be opened.
    """
    facts = terminal_facts()
    _check_terminal(facts, args.prompt)
    home = home_folder.locate()
    running = find_gateway(args)
    address = None if running is None else home_folder.find_gateway(home)
    folder = confirmed_folder(args, context)
    if running is None:
        offer_key(args, context)
    fixed = {name: getattr(args, name) for name in _FIXED_OPTIONS}
    choices = TaskChoices(
        fixed={"workspace": folder, **{name: value for name, value in fixed.items() if value}},
        mode=args.permission_mode or "ask",
        allow=list(args.allow),
        deny=list(args.deny),
        model=args.model,
        profile=args.profile,
        chose_mode=args.permission_mode is not None,
        network=args.network,
    )
    options = ReplOptions(
        choices=choices,
        folder=Path(folder),
        history=home / "history",
        language=context.language,
        version=context.version,
        model="" if address is None else address.model,
        prompt=args.prompt,
        session_id="" if args.last else args.resume,
        lists=args.resume == "",
        title=args.session_name,
        files=check_files(args.files),
        ascii_only=args.ascii,
        colours=_color_depth(facts),
        terminal=facts,
    )

    @asynccontextmanager
    async def open_services(notify: Callable[[str], None]) -> AsyncGenerator[ReplServices]:
        # imports everything that the first frame does not need
        name = "internal.channels.cli.commands.session_services"
        connection: Any = await in_thread(partial(import_module, name))
        async with connection.open_services(args.config, running, context, notify) as services:
            yield services

    return asyncio.run(run_repl_session(options, open_services))


def _check_terminal(facts: TerminalFacts, prompt: str | None) -> None:
    """Check that the terminal can show a session.

    Raises:
        CliExit: standard input or output is not a terminal, or it has no cursor movement.
    """
    if sys.stdout is None:
        raise CliExit(BROKEN_PIPE)
    instead = f'Without a session: larkspur -p "{prompt or "…"}"'
    if not (os.isatty(0) and os.isatty(1)):
        raise CliExit(USAGE, f"Standard input or output is not a terminal. {instead}")
    if facts.term in {"", "dumb"}:
        raise CliExit(USAGE, f"This terminal (TERM={facts.term}) cannot show a session. {instead}")


def _color_depth(facts: TerminalFacts) -> ColorDepth | None:
    if facts.no_colour:
        return ColorDepth.DEPTH_1_BIT
    return ColorDepth.DEPTH_24_BIT if facts.true_colour else None
