"""What a session in the terminal stands on: imported once its first frame is drawn."""

import logging
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from internal.agent.domain.permissions.rules import RuleError, parse_allow_rule, parse_rule
from internal.agent.domain.plans import read_steps
from internal.agent.domain.tools import targets_by_tool
from internal.channels.cli.answer_parser import DecisionText, parse_answer
from internal.channels.cli.client import GatewayClient
from internal.channels.cli.exit_codes import CliExit
from internal.channels.cli.http_client import Door
from internal.channels.cli.repl.dependencies import ReplServices, ToolItem
from internal.channels.cli.repl.local_client import LocalHost
from internal.channels.cli.repl.remote_client import RemoteHost
from internal.channels.cli.repl.request_threads import in_thread
from internal.config.home import prepare
from internal.config.loader import Loaded, load
from internal.config.terminal_env import TerminalFacts
from internal.config.types import ConfigError
from internal.i18n.catalog import resolve_language
from internal.observability.logs import configure_logging
from internal.tools.registry import TOOLS
from larkspur.build import terminal_house
from larkspur.doctor import checks, line_of
from larkspur.failing import sentences

_LARGEST_LOG = 1024 * 1024


@asynccontextmanager
async def open_kit(
    config: str | None,
    remote: tuple[Door, Callable[[], Door | None]] | None,
    facts: TerminalFacts,
    trouble: Callable[[str], None],
) -> AsyncGenerator[ReplServices]:
    """Open the gateway's side, or the house of this process.

    Raises:
        Leave: the settings, the key or the database cannot be used.
    """
    if remote is not None:
        logging.getLogger().addHandler(logging.NullHandler())  # the screen is not for logs
        host = RemoteHost(*remote)
        yield _kit(host, await in_thread(partial(_wanted_language, config)), config, facts)
        return
    with sentences():
        loaded = await in_thread(partial(load, config=config))
        prepare(loaded.home)
        _log_beside(loaded)
        async with (
            terminal_house(loaded) as house,
            LocalHost(house, house, trouble) as local,
        ):
            for sentence in house.news:
                trouble(sentence)
            yield _kit(local, loaded.settings.ui.language, config, facts)


def _kit(
    host: GatewayClient, language: str, config: str | None, facts: TerminalFacts
) -> ReplServices:
    return ReplServices(
        client=host,
        language=resolve_language(language, facts.locale),
        tools=lambda: [
            ToolItem(each.spec.name, each.spec.risk, each.spec.description) for each in TOOLS
        ],
        doctor=lambda: [line_of(check) for check in checks(config)],
        check_rule=_check_rule,
        decide=_decide,
        read_steps=read_steps,
    )


def _wanted_language(config: str | None) -> str:
    try:
        return load(config=config).settings.ui.language
    except ConfigError:
        return "auto"  # the gateway has settings of its own: ours do not matter to the session


def _check_rule(rule: str, allows: bool) -> None:
    targets = targets_by_tool(each.spec for each in TOOLS)
    try:
        if allows:
            parse_allow_rule(rule, targets)
        else:
            parse_rule(rule, targets)
    except RuleError as error:
        raise ValueError(str(error)) from error


def _decide(question: Mapping[str, Any], words: str) -> dict[str, Any]:
    try:
        return parse_answer(question, DecisionText(words))
    except CliExit as error:
        raise ValueError(str(error)) from error


def _log_beside(loaded: Loaded) -> None:
    """Log into a file: the screen belongs to the session."""
    path = loaded.home / "session.log"
    key = loaded.settings.llm.api_key
    how = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    if path.exists() and path.stat().st_size > _LARGEST_LOG:
        how |= os.O_TRUNC
    opened = os.open(Path(path), how, 0o600)
    stream = os.fdopen(opened, "a", encoding="utf-8", buffering=1)
    configure_logging(stream, [] if key is None else [key.get_secret_value()])
    for name in ("internal", "larkspur"):
        logging.getLogger(name).setLevel(logging.ERROR)
